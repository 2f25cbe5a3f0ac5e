"""Delivers by POST: signed, with a key that the receiver tells doubles by, to a checked address.

Names and signature are those of Standard Webhooks 1.0.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import datetime as dt
import hashlib
import hmac
import json
import socket
import ssl
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from urllib.parse import SplitResult, urlsplit

import httpx

from assistants.delivery.kinds import WebhookSettings, check_url, may_ask, secret_named
from assistants.delivery.parcel import OUTPUT_MAX, Doubtful, Failed, Parcel
from runs import clock
from runs.refusal import Refusal

_TRY_AGAIN = {408, 425, 429}
_WAITS = {429, 503}  # answers whose Retry-After is obeyed
_ALL_SENT = "http11.send_request_body.complete"  # of httpcore's trace
_CONTEXT: list[ssl.SSLContext] = []  # made once: it reads every certificate authority


@dataclass(frozen=True, slots=True)
class _Answer:
    """`said` and `retry_after` are the receiver's words: hostile."""

    status: int
    said: str
    retry_after: str


def send(parcel: Parcel, settings: WebhookSettings, timeout_s: float) -> str:
    """POST it; what the receiver answered. Raises Failed, Doubtful.

    The status decides, however the rest of the answer goes on. No answer in time is a failure like
    others: the key lets a receiver drop the next attempt. One that had it all and hung up without
    a word may have taken it.
    """
    try:
        url = settings.url or secret_named(settings.url_secret)
        check_url(url, what=settings.url_secret or "the URL")
        signing = secret_named(settings.secret) if settings.secret else ""
    except Refusal as exc:
        raise Failed(str(exc), lasting=True) from None
    body = json.dumps(parcel.facts(), ensure_ascii=False).encode()
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "sanduk",
        "Idempotency-Key": parcel.key,
        **signature(parcel.key, int(clock.now().timestamp()), body, signing),
    }
    try:
        answer = asyncio.run(
            _post(urlsplit(url), headers, body, allow_lan=settings.allow_lan, timeout_s=timeout_s)
        )
    except TimeoutError:
        raise Failed(f"no answer within {timeout_s:g} s") from None
    except (httpx.HTTPError, httpx.InvalidURL, OSError, UnicodeError) as exc:
        # its text may hold the URL
        raise Failed(f"it could not be asked ({type(exc).__name__})") from None
    return _judged(answer)


def _judged(answer: _Answer) -> str:
    status, said = answer.status, answer.said
    if 200 <= status < 300:
        return said
    if 300 <= status < 400:
        raise Failed(f"it redirects ({status}), which is not followed", output=said, lasting=True)
    lasting = status < 500 and status not in _TRY_AGAIN
    wait_s = _asked_wait(answer.retry_after) if status in _WAITS else 0
    raise Failed(f"it answered {status}", output=said, lasting=lasting, wait_s=wait_s)


def _asked_wait(text: str) -> float:
    """The seconds of a Retry-After, which are a number or a date; 0 when it is neither."""
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        at = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return 0
    if at.tzinfo is None:
        at = at.replace(tzinfo=dt.UTC)
    return max(0.0, (at - clock.now()).total_seconds())


def signature(key: str, timestamp: int, body: bytes, secret: str) -> dict[str, str]:
    """The headers that name and sign one delivery; without a secret they only name it."""
    headers = {"webhook-id": key, "webhook-timestamp": str(timestamp)}
    if secret:
        signed = f"{key}.{timestamp}.".encode() + body
        digest = hmac.new(_key_bytes(secret), signed, hashlib.sha256).digest()
        headers["webhook-signature"] = f"v1,{base64.b64encode(digest).decode()}"
    return headers


def _key_bytes(secret: str) -> bytes:
    """`whsec_` and base64, as the standard writes them, or the secret's own bytes."""
    if not secret.startswith("whsec_"):
        return secret.encode()
    try:
        return base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except binascii.Error:
        raise Failed(
            "the signing secret begins with whsec_ and is no base64", lasting=True
        ) from None


async def _post(
    url: SplitResult, headers: dict[str, str], body: bytes, *, allow_lan: bool, timeout_s: float
) -> _Answer:
    """Ask the address that was checked, so that no second look at the name can change it."""
    host = str(url.hostname)
    port = url.port or (443 if url.scheme == "https" else 80)
    deadline = asyncio.get_running_loop().time() + timeout_s
    done: set[str] = set()

    async def trace(event: str, _: object) -> None:
        done.add(event)

    async with asyncio.timeout_at(deadline):
        address = await _checked(host, port, allow_lan=allow_lan)
    target = httpx.URL(
        scheme=url.scheme,
        host=address,
        port=port,
        raw_path=(f"{url.path or '/'}?{url.query}" if url.query else url.path or "/").encode(),
    )
    # no proxy, no .netrc: the environment decides nothing here
    async with httpx.AsyncClient(
        trust_env=False, verify=_context(), timeout=timeout_s, follow_redirects=False
    ) as client:
        request = client.build_request(
            "POST",
            target,
            headers={**headers, "Host": url.netloc},
            content=body,
            extensions={"sni_hostname": host, "trace": trace},
        )
        try:
            async with asyncio.timeout_at(deadline):
                response = await client.send(request, stream=True)
        except (httpx.RemoteProtocolError, httpx.ReadError) as exc:
            if _ALL_SENT not in done:
                raise
            why = f"it took all of it and gave no answer that can be read ({type(exc).__name__})"
            raise Doubtful(why) from None
        said = await _beginning(response, deadline)
        return _Answer(response.status_code, said, response.headers.get("retry-after", "").strip())


async def _checked(host: str, port: int, *, allow_lan: bool) -> str:
    """One address of the host, when every one of them may be asked. Raises Failed."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = list(dict.fromkeys(str(each[4][0]) for each in found))
    for address in addresses:
        if not may_ask(address, allow_lan=allow_lan):
            hint = "" if allow_lan else "; --allow-lan admits private addresses"
            where = host if host == address else f"{host} is at {address}, which"
            raise Failed(f"{where} is not public{hint}", lasting=True)
    return addresses[0]


async def _beginning(response: httpx.Response, deadline: float) -> str:
    """As much of an answer as is kept, and as comes in time: it decides nothing."""
    data = bytearray()
    with contextlib.suppress(TimeoutError, httpx.HTTPError, OSError):
        async with asyncio.timeout_at(deadline):
            async for piece in response.aiter_bytes():
                data += piece
                if len(data) > OUTPUT_MAX:
                    break
    with contextlib.suppress(httpx.HTTPError, OSError):
        await response.aclose()
    return bytes(data).decode("utf-8", "replace")


def _context() -> ssl.SSLContext:
    if not _CONTEXT:
        _CONTEXT.append(ssl.create_default_context())
    return _CONTEXT[0]
