"""Whose model API a run may call: host, routes, protocol, credential header.

The records are in `providers.toml`, beside this file, with the meaning of each key.
"""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import resources
from typing import Any, Literal, get_args

from relay.endpoints import InvalidUpstream, is_loopback, parse_endpoint
from relay.records import Protocol

TokenHeader = Literal["x-api-key", "bearer", "x-goog-api-key"]

_NAME = re.compile(r"[a-z][a-z0-9-]{0,40}")
_SEGMENT = r"/[A-Za-z0-9_-][A-Za-z0-9._-]*"
_PREFIX = re.compile(rf"(?:{_SEGMENT})+")
# One segment may be the model's name, with an operation behind it: {model}:generateContent
_PATH = re.compile(rf"(?:{_SEGMENT})*(?:{_SEGMENT}|/\{{model\}}(?::[A-Za-z]+)?(?:{_SEGMENT})*)")
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,100}")
_HEADER_NAME = re.compile(r"[a-z0-9-]+")
_METHODS = frozenset({"GET", "POST"})
_ENDPOINT_KEYS = frozenset({"scheme", "host", "port"})


class UnknownProvider(ValueError):
    """There is no provider of that name; the text lists those there are."""


class InvalidProvider(ValueError):
    """A provider record that cannot be read; the text names the record and the key."""


@dataclass(frozen=True, slots=True)
class Route:
    """Methods of one path that may pass.

    The path is exact, but for one `{model}` segment it may have, which stands for a model's name.
    """

    path: str
    methods: frozenset[str] = frozenset({"POST"})
    protocol: Protocol | None = None
    query: frozenset[str] = frozenset()  # the query keys that may pass
    accepts: frozenset[TokenHeader] = frozenset({"bearer"})  # where the run token may stand


@dataclass(frozen=True, slots=True)
class Provider:
    name: str
    scheme: str
    host: str
    port: int | None
    prefix: str  # the path under which its API lives: /v1
    routes: tuple[Route, ...]
    auth_header: str = "authorization"
    auth_scheme: str = "Bearer"  # empty: the bare value
    key_env: str = ""  # the variable its key is read from; empty: no variable is looked at
    needs_key: bool = True
    base_url_env: str = ""
    default_model: str = ""
    reports_cost: bool = False  # its usage holds what the call cost, in USD
    preflight: str = ""  # a path that only a good key gets an answer from; empty: it is not asked
    preflight_headers: tuple[tuple[str, str], ...] = ()
    adds_usage_option: bool = False  # streamed Chat Completions tell usage only when asked to

    @property
    def protocols(self) -> tuple[Protocol, ...]:
        """The protocols it serves, in the order of its routes."""
        return tuple(dict.fromkeys(r.protocol for r in self.routes if r.protocol))

    @property
    def accepts(self) -> frozenset[TokenHeader]:
        """Every header some route takes the run token in."""
        return frozenset().union(*(route.accepts for route in self.routes))


def provider_names() -> tuple[str, ...]:
    """The providers sanduk knows, in the order of its file."""
    return tuple(_shipped())


def get_provider(name: str) -> Provider:
    """The provider of that name.

    Raises:
        UnknownProvider: there is none.
    """
    try:
        return _shipped()[name]
    except KeyError:
        known = ", ".join(provider_names())
        raise UnknownProvider(f"no provider {name!r}; there are {known}") from None


def with_upstream(
    provider: Provider, upstream: str, *, insecure: bool = False, key_env: str | None = None
) -> Provider:
    """The same provider at another address.

    A provider that needs a key keeps its own: whoever moves it means that key. One that needs none
    has no variable, so that a key that happens to be exported goes nowhere unasked.

    Args:
        upstream: `scheme://host:port`, https unless a scheme is given; no path, query or userinfo.
        insecure: allow plaintext to a host that is not this machine.
        key_env: the variable that holds the key for this address, which then needs that key;
            None: the provider's own.

    Raises:
        InvalidUpstream: the address is none, or would send the key in plaintext over a network.
    """
    if key_env and not _ENV_NAME.fullmatch(key_env):
        raise InvalidUpstream("--upstream-key-env takes the name of an environment variable")
    endpoint = parse_endpoint(upstream)
    if endpoint.scheme == "http" and not insecure and not is_loopback(endpoint.host):
        raise InvalidUpstream(
            "plaintext http to another machine shows the key to the network: use https, "
            "or --insecure-upstream if you trust that network"
        )
    return replace(
        provider,
        scheme=endpoint.scheme,
        host=endpoint.host,
        port=endpoint.port,
        key_env=provider.key_env if key_env is None else key_env,
        needs_key=provider.needs_key or bool(key_env),
    )


def load_providers(text: str) -> dict[str, Provider]:
    """Read provider records from TOML: sanduk's own, or an operator's of the same form.

    Raises:
        InvalidProvider: for a key that is unknown, missing or of another type.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidProvider(f"the provider file is no TOML: {error}") from None
    return {name: _provider(name, record) for name, record in document.items()}


def route_at(path: str, protocol: str | None, accepts: frozenset[TokenHeader]) -> Route:
    """A route that an operator adds by hand.

    Args:
        protocol: what its calls speak; None when they are no model calls.
        accepts: where the run token may stand.

    Raises:
        InvalidProvider: the path is not canonical, or there is no such protocol.
    """
    methods = ["POST"] if protocol else ["GET", "POST"]
    record: dict[str, Any] = {"path": path, "methods": methods, "accepts": sorted(accepts)}
    if protocol is not None:
        record["protocol"] = protocol
    return _route("", record)


@functools.cache
def _shipped() -> Mapping[str, Provider]:
    return load_providers(resources.files("relay").joinpath("providers.toml").read_text("utf-8"))


_PROVIDER_TYPES: dict[str, type] = {
    "scheme": str,
    "host": str,
    "port": int,
    "prefix": str,
    "routes": list,
    "auth_header": str,
    "auth_scheme": str,
    "key_env": str,
    "needs_key": bool,
    "base_url_env": str,
    "default_model": str,
    "reports_cost": bool,
    "preflight": str,
    "preflight_headers": dict,
    "adds_usage_option": bool,
}
_ROUTE_TYPES: dict[str, type] = {
    "path": str,
    "methods": list,
    "protocol": str,
    "query": list,
    "accepts": list,
}


def _provider(name: str, record: object) -> Provider:
    if not _NAME.fullmatch(name):
        raise InvalidProvider(f"provider {name!r}: a name is lower-case letters, digits and dashes")
    values = _checked(f"provider {name}: ", record, _PROVIDER_TYPES, ("scheme", "host", "routes"))
    try:
        text = f"{values['scheme']}://{values['host']}"
        endpoint = parse_endpoint(text if "port" not in values else f"{text}:{values['port']}")
    except InvalidUpstream as error:
        raise InvalidProvider(f"provider {name}: {error}") from None
    prefix = values.setdefault("prefix", "")
    if prefix and not _PREFIX.fullmatch(prefix):
        raise InvalidProvider(f"provider {name}: prefix {prefix!r} is no canonical path")
    for key in ("key_env", "base_url_env"):
        if values.get(key) and not _ENV_NAME.fullmatch(values[key]):
            raise InvalidProvider(f"provider {name}: {key} is the name of an environment variable")
    if not _HEADER_NAME.fullmatch(values.get("auth_header", "authorization")):
        raise InvalidProvider(f"provider {name}: auth_header is a header name in lower case")
    if values.get("preflight") and not _PREFIX.fullmatch(values["preflight"]):
        raise InvalidProvider(f"provider {name}: preflight is a canonical path")
    values["preflight_headers"] = _headers(name, values.get("preflight_headers", {}))
    routes = tuple(_route(f"a route of provider {name}: ", one) for one in values.pop("routes"))
    if not routes or len({route.path for route in routes}) != len(routes):
        raise InvalidProvider(f"provider {name}: it needs routes, each path once")
    rest = {key: value for key, value in values.items() if key not in _ENDPOINT_KEYS}
    port = values.get("port")
    return Provider(
        name=name, scheme=endpoint.scheme, host=endpoint.host, port=port, routes=routes, **rest
    )


def _headers(name: str, record: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    for header, value in record.items():
        is_text = isinstance(value, str) and value.isascii() and value.isprintable()
        if not _HEADER_NAME.fullmatch(header) or not is_text:
            raise InvalidProvider(
                f"provider {name}: preflight_headers are names in lower case and plain texts"
            )
    return tuple((header, str(value)) for header, value in record.items())


def _route(where: str, record: object) -> Route:
    """Read a route. `where` stands before what is said of it: "a route of provider x: "."""
    values = _checked(where, record, _ROUTE_TYPES, ("path",))
    path = values["path"]
    if not _PATH.fullmatch(path):
        raise InvalidProvider(
            f"{where}{path!r} is no canonical path: it begins with /, as /v1/files, and needs no "
            "escapes"
        )
    if values.get("protocol") not in (None, *get_args(Protocol)):
        raise InvalidProvider(
            f"{where}there is no protocol {values['protocol']!r}; there are "
            f"{', '.join(get_args(Protocol))}"
        )
    for key, allowed in (("methods", _METHODS), ("accepts", frozenset(get_args(TokenHeader)))):
        if key in values and not (values[key] and set(map(str, values[key])) <= allowed):
            raise InvalidProvider(f"{where}{key} are some of {', '.join(sorted(allowed))}")
    if not all(isinstance(key, str) and key.isidentifier() for key in values.get("query", [])):
        raise InvalidProvider(f"{where}query is a list of key names")
    sets: dict[str, Any] = {k: frozenset(v) for k, v in values.items() if isinstance(v, list)}
    return Route(path, protocol=values.get("protocol"), **sets)


def _checked(
    where: str, record: object, types: Mapping[str, type], required: tuple[str, ...]
) -> dict[str, Any]:
    """A copy of the record, when each key is known and of its type and none is missing."""
    if not isinstance(record, dict):
        raise InvalidProvider(f"{where}it is no table")
    for key, value in record.items():
        if key not in types:
            raise InvalidProvider(f"{where}unknown key {key!r}; known are {', '.join(types)}")
        if type(value) is not types[key]:
            raise InvalidProvider(f"{where}{key} must be a {types[key].__name__}")
    for key in required:
        if key not in record:
            raise InvalidProvider(f"{where}{key} is missing")
    return dict(record)
