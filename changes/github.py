"""Asking GitHub, or a GitHub Enterprise server, over its REST API.

Which one is the operator's word (SANDUK_GITHUB_API), never a repository's. What comes back is
hostile: cut, read strictly, and without the token wherever it is told.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import ssl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import httpx
import msgspec
from django.conf import settings

from relay.endpoints import endpoint_of
from relay.proxies import InvalidProxy, Proxy, proxy_for
from runs import keys
from runs.refusal import HostRefusal
from runs.visible import visible

TOKEN = keys.GITHUB_TOKEN
VERSION = "2022-11-28"  # of the API
ANSWER_MAX = 1 << 20  # bytes
TIMEOUT_S = 30.0  # of one question, to its whole answer
_TOLD = 300  # characters of what it says of a refusal
_CONTEXT: list[ssl.SSLContext] = []  # made once: it reads every certificate authority


class NoAnswer(HostRefusal):
    """It was asked, and nothing that can be understood came back: it may have done it."""


class NotAsked(HostRefusal):
    """It was not reached: nothing happened there."""


@dataclass(frozen=True, slots=True)
class Site:
    """One GitHub.

    Attributes:
        api: where its API begins, without a slash at the end.
        address: what people and git know it by, as `https://github.com`.
    """

    api: str
    address: str

    @property
    def host(self) -> str:
        """Its name, and the port where that is not the usual one."""
        return urlsplit(self.address).netloc

    @property
    def scheme(self) -> str:
        return urlsplit(self.address).scheme


def proxy_to(url: str) -> Proxy | None:
    """The proxy this host has to use for what is at a URL. Raises HostRefusal."""
    parts = urlsplit(url)
    try:
        return proxy_for(endpoint_of(parts.scheme, str(parts.hostname), parts.port), os.environ)
    except InvalidProxy as exc:
        raise HostRefusal(str(exc)) from None


@dataclass(frozen=True, slots=True)
class Answer:
    """`data` is JSON as it came, hostile."""

    status: int
    data: bytes
    token: str = field(repr=False, default="")

    def said(self) -> str:
        """Its own words on what it did not do, to be shown; "" when there are none."""
        try:
            found = msgspec.json.decode(self.data, type=_Trouble)
        except (msgspec.DecodeError, RecursionError):
            return ""
        words = [found.message]
        words += [each.message for each in found.errors if isinstance(each, _Detail)]
        text = "; ".join(dict.fromkeys(filter(None, words)))
        return visible(without(text, self.token), limit=_TOLD)


class _Detail(msgspec.Struct):
    message: str = ""


class _Trouble(msgspec.Struct):
    message: str = ""
    errors: list[_Detail | str] = msgspec.field(default_factory=list)


def site() -> Site:
    """The one the operator of this host names."""
    api: str = settings.SANDUK_GITHUB_API
    parts = urlsplit(api)
    # GitHub's own has a host for its API; an Enterprise server has a path on its one host
    host = parts.netloc.removeprefix("api.") if not parts.path else parts.netloc
    return Site(api, f"{parts.scheme}://{host}")


def token() -> str:
    """What proves to GitHub who we are. Raises HostRefusal, which never holds any of it."""
    value = keys.value_of(TOKEN)
    if not value:
        raise HostRefusal(
            f"a draft pull request needs a token of GitHub: sanduk auth set {TOKEN}, or export "
            f"{TOKEN}; it has to read and write contents and pull requests of the repository"
        )
    if fault := keys.fault_of(value):
        raise HostRefusal(f"{TOKEN} {fault}; it was not used")
    return value


def basic(value: str) -> str:
    """The token as git's side of GitHub takes it."""
    return base64.b64encode(f"x-access-token:{value}".encode()).decode()


def without(text: str, value: str) -> str:
    """`text` with nothing of the token in it."""
    for each in (value, basic(value)) if value else ():
        text = text.replace(each, "[the token]")
    return text


def ask(
    where: Site,
    secret: str,
    method: str,
    path: str,
    *,
    query: Iterable[tuple[str, str]] = (),
    body: Mapping[str, Any] | None = None,
) -> Answer:
    """One question and its answer, whatever its status.

    Args:
        path: below the API, its parts quoted; it begins with a slash.

    Raises:
        NotAsked: it was not reached.
        NoAnswer: it was, and then it was too slow, too long, or broke off.
    """
    request = httpx.Request(
        method,
        f"{where.api}{path}",
        params=list(query) or None,
        headers={
            "Accept": "application/vnd.github+json",
            "Accept-Encoding": "identity",
            "Authorization": f"Bearer {secret}",
            "User-Agent": "sanduk",
            "X-GitHub-Api-Version": VERSION,
            **({"Content-Type": "application/json"} if body is not None else {}),
        },
        content=json.dumps(body).encode() if body is not None else b"",
    )
    name = where.host
    try:
        status, data = asyncio.run(_asked(request, proxy_to(where.api)))
    except (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError) as exc:
        why = type(exc).__name__
        raise NotAsked(f"{name} could not be reached ({why}); try again later") from None
    except TimeoutError:
        raise NoAnswer(f"{name} gave no whole answer within {TIMEOUT_S:g} s") from None
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as exc:
        raise NoAnswer(f"{name} gave no answer that can be read ({type(exc).__name__})") from None
    if len(data) > ANSWER_MAX:
        raise NoAnswer(f"{name} answered with more than {ANSWER_MAX >> 10} KiB")
    return Answer(status, data, secret)


async def _asked(request: httpx.Request, proxy: Proxy | None) -> tuple[int, bytes]:
    # no .netrc and no setting of the environment but the proxy's; a redirect gets no token
    through = httpx.Proxy(proxy.url, headers=proxy.headers) if proxy is not None else None
    async with (
        asyncio.timeout(TIMEOUT_S),
        httpx.AsyncClient(
            trust_env=False, verify=_context(), follow_redirects=False, timeout=TIMEOUT_S,
            proxy=through,
        ) as client,
    ):  # fmt: skip
        response = await client.send(request, stream=True)
        data = bytearray()
        async for piece in response.aiter_raw():
            data += piece
            if len(data) > ANSWER_MAX:
                break
        await response.aclose()
    return response.status_code, bytes(data)


def _context() -> ssl.SSLContext:
    if not _CONTEXT:
        _CONTEXT.append(ssl.create_default_context())
    return _CONTEXT[0]
