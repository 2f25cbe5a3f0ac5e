"""Which requests may come in: token, target, method, query, framing.

Every rule is judged on the bytes of the request line and the headers as they came, and what is
sent upstream is built from what was judged: the route's own path and the query that was read.
"""

from __future__ import annotations

import hmac
import re
from dataclasses import dataclass

from relay.asgi import Headers, Scope
from relay.providers import Provider, Route, TokenHeader

_ROUTE_LIKE = re.compile(rb"/[\x21-\x7e]*")
_SUSPICIOUS = re.compile(rb"//|/\.{1,2}(?:/|$)|[\\%;]")
_QUERY_ITEM = re.compile(rb"([A-Za-z0-9_.-]+)(?:=[A-Za-z0-9_.~-]*)?")
_MODEL = rb"([A-Za-z0-9](?:[A-Za-z0-9._-]{0,126}[A-Za-z0-9])?)"  # no %, no slash, no dots alone
_CREDENTIALS: dict[bytes, TokenHeader] = {
    b"x-api-key": "x-api-key",
    b"authorization": "bearer",
    b"x-goog-api-key": "x-goog-api-key",
}
_TOKEN_WORDS: dict[TokenHeader, str] = {
    "x-api-key": "x-api-key: <run token>",
    "bearer": "authorization: Bearer <run token>",
    "x-goog-api-key": "x-goog-api-key: <run token>",
}


class Refusal(Exception):
    """A request that does not pass: the status, the rule's name, and what would be allowed."""

    def __init__(
        self,
        status: int,
        rule: str,
        message: str,
        headers: tuple[tuple[bytes, bytes], ...] = (),
    ) -> None:
        super().__init__(message)
        self.status = status
        self.rule = rule
        self.message = message
        self.headers = headers


@dataclass(frozen=True, slots=True)
class Admitted:
    """A request line that may pass, as it will be sent upstream."""

    route: Route
    target: bytes
    model: str = ""  # the one its path names


class Gate:
    """The rules of one relay that need no body.

    Args:
        token: the run token, which a client must show before it learns anything else.
        extra_routes: what may pass beside the provider's own routes.
    """

    def __init__(
        self, provider: Provider, token: str, extra_routes: tuple[Route, ...] = ()
    ) -> None:
        if not token:
            raise ValueError("a relay needs a run token")
        self._provider = provider
        self._token = token.encode()
        self._all = (*provider.routes, *extra_routes)
        self._routes = {route.path.encode(): route for route in self._all}
        self._patterns = [
            (re.compile(re.escape(path).replace(rb"\{model\}", _MODEL)), self._routes.pop(path))
            for path in list(self._routes)
            if b"{model}" in path
        ]
        # Most targets are just a route's path: canonical, and without a query.
        self._plain = {path: Admitted(route, path) for path, route in self._routes.items()}

    def admit(self, scope: Scope, headers: Headers) -> Admitted:
        """Judge a request before its body.

        Raises:
            Refusal: 401 before all else, then the first rule that is broken.
        """
        target = raw_target(scope)
        path, _, query = target.partition(b"?")
        plain = self._plain.get(target)
        route, model = (plain.route, "") if plain else self._find(path)
        self._check_token(route, headers)
        _check_host(headers)
        if _is_upgrade(headers):
            raise Refusal(
                426,
                "upgrade",
                "this relay speaks HTTP/1.1 only, no WebSocket: use the same path by POST",
                ((b"connection", b"close"),),
            )
        if plain is None:
            _check_canonical(target, path)
        if route is None:
            allowed = ", ".join(self._described())
            raise Refusal(
                403,
                "path",
                f"this path is not a route of {self._provider.name}: {allowed}; "
                "--allow-path PATH adds one",
            )
        method = scope["method"]
        if method not in route.methods:
            allowed = ", ".join(sorted(route.methods))
            raise Refusal(
                405, "method", f"{route.path} takes {allowed}", ((b"allow", allowed.encode()),)
            )
        if plain is not None:
            return plain
        _check_query(route, query, has_query=b"?" in target)
        return Admitted(route, target, model)

    def route(self, scope: Scope) -> Route | None:
        """The route a request means to take, refused or not."""
        return self._find(raw_target(scope).partition(b"?")[0])[0]

    def _find(self, path: bytes) -> tuple[Route | None, str]:
        """The route of a path, and the model the path names."""
        route = self._routes.get(path)
        if route is None:
            for pattern, candidate in self._patterns:
                match = pattern.fullmatch(path)
                if match is not None:
                    return candidate, match[1].decode()
        return route, ""

    def _check_token(self, route: Route | None, headers: Headers) -> None:
        """The token stands in a header that the route takes it in, and no other word beside it."""
        accepted = route.accepts if route else self._provider.accepts
        good, contradicted = False, False
        for name, value in headers:
            header = _CREDENTIALS.get(name)
            if header is None:
                continue
            shown = _bearer(value) if header == "bearer" else value
            is_token = hmac.compare_digest(shown, self._token)
            good |= is_token and header in accepted
            contradicted |= not is_token and value != b""
        if contradicted or not good:
            ways = " or ".join(f"'{_TOKEN_WORDS[header]}'" for header in sorted(accepted))
            raise Refusal(
                401,
                "token",
                f"the run token is missing or wrong: send {ways}, and no other credential",
            )

    def _described(self) -> list[str]:
        return [f"{'/'.join(sorted(r.methods))} {r.path}" for r in self._all]


def raw_target(scope: Scope) -> bytes:
    """The request target as it stood in the request line.

    `relay.server` puts it into the scope. Other servers have it decoded and cut already; there
    it is put together again from what they kept.
    """
    if "raw_target" in scope:
        return bytes(scope["raw_target"])
    path = bytes(scope.get("raw_path") or scope["path"].encode())
    query = bytes(scope.get("query_string", b""))
    return path + b"?" + query if query else path


def _bearer(value: bytes) -> bytes:
    scheme, _, token = value.partition(b" ")
    return token.strip() if scheme.lower() == b"bearer" else b""


def _check_host(headers: Headers) -> None:
    hosts = [name for name, _ in headers].count(b"host")
    if hosts != 1:
        raise Refusal(400, "host", f"a request has one Host header, this one has {hosts}")


def _is_upgrade(headers: Headers) -> bool:
    values = [value.strip() for name, value in headers if name == b"upgrade"]
    return any(values)


def _check_canonical(target: bytes, path: bytes) -> None:
    if not target.startswith(b"/"):
        raise Refusal(400, "target", "the request target must be a path, not an absolute URL")
    if b"#" in target:
        raise Refusal(400, "target", "the request target may hold no fragment")
    if _ROUTE_LIKE.fullmatch(target) is None or _SUSPICIOUS.search(path):
        raise Refusal(400, "target", "the path is not canonical: write it plainly, unescaped")


def _check_query(route: Route, query: bytes, *, has_query: bool) -> None:
    if not has_query:
        return
    keys: list[str] = []
    for item in query.split(b"&"):
        match = _QUERY_ITEM.fullmatch(item)
        if match is None:
            raise Refusal(400, "target", "the query is not canonical: key=value, unescaped")
        keys.append(match[1].decode())
    if len(set(keys)) != len(keys):
        raise Refusal(400, "target", "the query names a key twice")
    if not set(keys) <= route.query:
        allowed = ", ".join(sorted(route.query)) or "none"
        raise Refusal(403, "query", f"query keys that may pass on {route.path}: {allowed}")
