"""A site elsewhere that this account is logged in to: where it is, its token, and asking it.

The token is in a file of this account alone. It goes to that site and nowhere else: no redirect is
followed and no proxy is asked.
"""

from __future__ import annotations

import http.client
import json
import os
import ssl
import stat
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import quote, urlencode, urlsplit

from runs.refusal import Refusal
from runs.visible import visible

VERSION = 1
TIMEOUT_S = 30
ANSWER_MAX = 64 * 2**20  # bytes
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class Site:
    """Where it is, as https://sanduk.example, and what lets this terminal in."""

    url: str
    token: str = field(repr=False)

    def get(self, *parts: str | int, **asked: Any) -> Any:
        """What it answers. Raises Refusal with its reason, or why it cannot be asked."""
        given = urlencode(
            {name: value for name, value in asked.items() if value not in ("", False)}
        )
        return self._asked("GET", parts, f"?{given}" if given else "", None)

    def post(self, *parts: str | int, **sent: Any) -> Any:
        return self._asked("POST", parts, "", json.dumps(sent).encode())

    def _asked(
        self, method: str, parts: tuple[str | int, ...], query: str, body: bytes | None
    ) -> Any:
        place = "/".join(quote(str(part), safe="") for part in parts)
        request = urllib.request.Request(  # noqa: S310 - `checked_url` has seen to the scheme
            f"{self.url}/api/{VERSION}/{place}{query}",
            data=body,
            method=method,
            headers={"Authorization": f"Bearer {self.token}", "Accept": "application/json"}
            | ({"Content-Type": "application/json"} if body is not None else {}),
        )
        try:
            with _opener().open(request, timeout=TIMEOUT_S) as answer:
                return _parsed(self.url, answer.read(ANSWER_MAX + 1))
        except urllib.error.HTTPError as exc:
            with exc:
                self._refused(exc.code, exc.read(64 * 1024))
        except urllib.error.URLError as exc:
            raise Refusal(f"{self.url} cannot be asked: {_reason(exc.reason)}") from None
        except (OSError, http.client.HTTPException) as exc:
            raise Refusal(f"{self.url} did not answer: {_reason(exc)}") from None

    def _refused(self, code: int, body: bytes) -> NoReturn:
        try:
            why = json.loads(body)["error"]
        except (ValueError, KeyError, TypeError, RecursionError):
            why = f"it answered {code}, and not as a sanduk does"
        raise Refusal(f"{self.url}: {visible(str(why), limit=500)}")


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


def _opener() -> urllib.request.OpenerDirector:
    return urllib.request.build_opener(
        urllib.request.ProxyHandler({}),
        urllib.request.HTTPSHandler(context=ssl.create_default_context()),
        _NoRedirect(),
    )


def _parsed(url: str, body: bytes) -> Any:
    try:
        if len(body) <= ANSWER_MAX:
            return json.loads(body)
    except (ValueError, RecursionError):
        pass
    raise Refusal(f"{url} did not answer as a sanduk does")


def _reason(error: object) -> str:
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return visible(text or type(error).__name__, limit=200)


def checked_url(text: str) -> str:
    """The address of a site, without what it does not need. Raises Refusal."""
    try:
        parts = urlsplit(text if "://" in text else f"https://{text}")
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port, parts = "", None, urlsplit("")
    plain = not (parts.query or parts.fragment or parts.username or parts.password)
    if (
        parts.scheme not in ("http", "https")
        or not host
        or not plain
        or parts.path not in ("", "/")
    ):
        raise Refusal(
            f"{visible(text, limit=200)!r} is no address of a site, as https://sanduk.example"
        )
    if not all(char.isalnum() or char in "-._:" for char in host):
        raise Refusal(f"{visible(host, limit=200)!r} is no name of a host")
    name = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{name}{f':{port}' if port else ''}"


def is_readable_on_the_way(url: str) -> bool:
    """Whether others on the network could read what goes there."""
    parts = urlsplit(url)
    return parts.scheme == "http" and parts.hostname not in _LOOPBACK


def path(environment: Mapping[str, str] = os.environ) -> Path:
    base = environment.get("XDG_CONFIG_HOME", "")
    root = Path(base) if base.startswith("/") else Path.home() / ".config"
    return root / "sanduk" / "site.json"


def kept() -> Site | None:
    """The site this account is logged in to; None for none.

    Raises Refusal when the file is not what we wrote, or others could have read or written it.
    """
    file = path()
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as exc:
        raise Refusal(f"{file} cannot be read: {exc.strerror}") from None
    with os.fdopen(descriptor, "rb") as opened:
        facts = os.fstat(descriptor)
        content = opened.read(16 * 1024)
    if facts.st_uid != os.geteuid() or stat.S_IMODE(facts.st_mode) & 0o077:
        raise Refusal(f"{file} holds a token and is not this account's alone: chmod 600 {file}")
    try:
        found = json.loads(content)
        url, token = found["url"], found["token"]
        if not (isinstance(url, str) and isinstance(token, str) and token.isascii()):
            raise ValueError(url)
        if not token.isprintable() or " " in token:
            raise ValueError(url)
        return Site(checked_url(url), token)
    except (ValueError, KeyError, TypeError, RecursionError, Refusal):
        raise Refusal(f"{file} is damaged; remove it, and sanduk login again") from None


def keep(site: Site) -> None:
    """Log this account in to a site, in place of another. Raises OSError."""
    file = path()
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = file.with_name(f".site.json.{os.getpid()}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(draft, flags, 0o600), "w") as opened:
            json.dump({"url": site.url, "token": site.token}, opened)
        draft.replace(file)
    finally:
        draft.unlink(missing_ok=True)


def forget() -> bool:
    """Log out here; False when it was so. Raises OSError."""
    try:
        path().unlink()
    except FileNotFoundError:
        return False
    return True
