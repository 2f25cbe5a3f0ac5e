"""Delivers by POST: signed, with a key that the receiver tells doubles by, to a checked address.

Names and signature are those of Standard Webhooks 1.0.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
import json
import socket
import ssl
from urllib.parse import SplitResult, urlsplit

import httpx

from assistants.delivery.kinds import WebhookSettings, check_url, may_ask, secret_named
from assistants.delivery.parcel import OUTPUT_MAX, Failed, Parcel
from runs import clock
from runs.refusal import Refusal

_TRY_AGAIN = {408, 425, 429}
_CONTEXT: list[ssl.SSLContext] = []  # made once: it reads every certificate authority


def send(parcel: Parcel, settings: WebhookSettings, timeout_s: float) -> str:
    """POST it; what the receiver answered. Raises Failed.

    No answer in time is a failure like others: the key lets a receiver drop the next attempt.
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
        status, said = asyncio.run(
            _post(urlsplit(url), headers, body, allow_lan=settings.allow_lan, timeout_s=timeout_s)
        )
    except TimeoutError:
        raise Failed(f"no answer within {timeout_s:g} s") from None
    except (httpx.HTTPError, httpx.InvalidURL, OSError, UnicodeError) as exc:
        # its text may hold the URL
        raise Failed(f"it could not be asked ({type(exc).__name__})") from None
    if 200 <= status < 300:
        return said
    if 300 <= status < 400:
        raise Failed(f"it redirects ({status}), which is not followed", output=said, lasting=True)
    lasting = status < 500 and status not in _TRY_AGAIN
    raise Failed(f"it answered {status}", output=said, lasting=lasting)


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
) -> tuple[int, str]:
    """Ask the address that was checked, so that no second look at the name can change it."""
    host = str(url.hostname)
    port = url.port or (443 if url.scheme == "https" else 80)
    async with asyncio.timeout(timeout_s):
        address = await _checked(host, port, allow_lan=allow_lan)
        target = httpx.URL(
            scheme=url.scheme,
            host=address,
            port=port,
            raw_path=(f"{url.path or '/'}?{url.query}" if url.query else url.path or "/").encode(),
        )
        # no proxy, no .netrc: the environment decides nothing here
        async with (
            httpx.AsyncClient(trust_env=False, verify=_context(), timeout=timeout_s) as client,
            client.stream(
                "POST",
                target,
                headers={**headers, "Host": url.netloc},
                content=body,
                extensions={"sni_hostname": host},
                follow_redirects=False,
            ) as response,
        ):
            return response.status_code, await _beginning(response)


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


async def _beginning(response: httpx.Response) -> str:
    data = bytearray()
    async for piece in response.aiter_bytes():
        data += piece
        if len(data) > OUTPUT_MAX:
            break
    return bytes(data).decode("utf-8", "replace")


def _context() -> ssl.SSLContext:
    if not _CONTEXT:
        _CONTEXT.append(ssl.create_default_context())
    return _CONTEXT[0]
