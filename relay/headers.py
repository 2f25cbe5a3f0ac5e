"""Which headers cross the relay, in each direction."""

from __future__ import annotations

import re

from relay.asgi import Headers
from relay.credential import Credential
from relay.decoding import readable_encodings
from relay.providers import Provider

_HOP = frozenset(
    b"connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer "
    b"transfer-encoding upgrade".split()
)
_CREDENTIALS = frozenset(b"authorization x-api-key api-key x-goog-api-key cookie".split())
# Some servers route by these instead of the request line that was judged.
_OVERRIDES = frozenset(
    b"x-http-method x-http-method-override x-method-override x-original-url x-rewrite-url".split()
)
_OURS = frozenset(b"host content-length accept-encoding expect".split())
_NEVER_OUT = _HOP | _CREDENTIALS | _OVERRIDES | _OURS
_NEVER_BACK = _HOP | frozenset(b"set-cookie x-accel-buffering".split())
_FIELD_VALUE = re.compile(rb"[\t\x20-\x7e\x80-\xff]*")


class Outgoing:
    """Makes the headers of requests to one provider.

    Args:
        authority: the Host header; the client's own is ignored.
        credential: the key, or None for a provider without one.
    """

    def __init__(self, provider: Provider, authority: str, credential: Credential | None) -> None:
        self._host = (b"host", authority.encode())
        self._key: Headers = []
        if credential is not None:
            scheme = f"{provider.auth_scheme} " if provider.auth_scheme else ""
            self._key = [(provider.auth_header.encode(), f"{scheme}{credential.value}".encode())]

    def __call__(self, headers: Headers) -> Headers:
        """The headers to send for the ones that came; all but Content-Length."""
        named = _named_by_connection(headers)
        dropped = _NEVER_OUT | named if named else _NEVER_OUT
        accept = [value for name, value in headers if name == b"accept-encoding"]
        encodings = readable_encodings(b",".join(accept) if accept else None)
        kept = [header for header in headers if header[0] not in dropped]
        return [self._host, *kept, (b"accept-encoding", encodings), *self._key]


def returning(headers: Headers, status: int) -> Headers:
    """The headers to give the client for the ones a provider sent."""
    named = _named_by_connection(headers)
    dropped = _NEVER_BACK | named if named else _NEVER_BACK
    if status in (204, 304):
        dropped |= {b"content-length"}
    kept = [
        (name, value)
        for name, value in headers
        if name not in dropped and _FIELD_VALUE.fullmatch(value)
    ]
    kept.append((b"x-accel-buffering", b"no"))
    return kept


def value_of(headers: Headers, name: bytes) -> bytes:
    """The values of a header, joined as the standard says; empty when it is absent."""
    return b", ".join([value for key, value in headers if key == name])


def _named_by_connection(headers: Headers) -> frozenset[bytes]:
    named = [value for name, value in headers if name == b"connection"]
    if not named:
        return frozenset()
    # Content-Length cannot be made to vanish this way: the framing is ours.
    names = {token.strip().lower() for value in named for token in value.split(b",")}
    return frozenset(names - {b"content-length", b"content-type", b"content-encoding"})
