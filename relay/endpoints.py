"""Where the relay connects to: a fixed host and port, or a unix socket of this machine."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass

_DEFAULT_PORTS = {"http": 80, "https": 443}
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9])?"
_HOST_NAME = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
_AUTHORITY = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\[\]:]+)(?::([0-9]{1,5}))?")


class InvalidUpstream(ValueError):
    """An upstream that cannot be used; the text says why and what would do.

    The text never repeats the value: someone may have pasted a password into it.
    """


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One upstream. With `unix_path` the connection goes there, in plaintext."""

    scheme: str
    host: str  # an IPv6 address without brackets
    port: int
    unix_path: str = ""

    @property
    def authority(self) -> str:
        """The Host header: brackets where needed, the port unless it is the scheme's own."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.authority}"

    @property
    def is_tls(self) -> bool:
        return self.scheme == "https" and not self.unix_path

    @classmethod
    def at_socket(cls, path: str, host: str = "localhost") -> Endpoint:
        """An upstream behind a unix socket; `host` is what its Host header says."""
        return cls("http", host, 80, path)


def endpoint_of(scheme: str, host: str, port: int | None) -> Endpoint:
    """The endpoint of a scheme, a host and an optional port."""
    return Endpoint(scheme, host, _DEFAULT_PORTS[scheme] if port is None else port)


def parse_endpoint(text: str) -> Endpoint:
    """Read `scheme://host:port`, where the scheme is https unless given.

    Raises:
        InvalidUpstream: for anything else, a path, query, fragment or userinfo included.
    """
    scheme, separator, rest = text.partition("://")
    if not separator:
        scheme, rest = "https", text
    if scheme.lower() not in _DEFAULT_PORTS:
        raise InvalidUpstream("the upstream's scheme must be http or https")
    if "@" in rest:
        # what stands before the @ may be a secret: it is not repeated
        raise InvalidUpstream(
            "the URL may hold no user name or password (user:password@); a key goes into its own "
            "variable"
        )
    if "?" in rest or "#" in rest:
        raise InvalidUpstream("the upstream may hold no query and no fragment")
    rest = rest.removesuffix("/")
    if "/" in rest:
        raise InvalidUpstream("the upstream may hold no path: give scheme://host:port")
    match = _AUTHORITY.fullmatch(rest)
    if match is None:
        raise InvalidUpstream("the upstream must look like scheme://host:port")
    port = int(match[2]) if match[2] else None
    if port is not None and not 1 <= port <= 65535:
        raise InvalidUpstream("the upstream's port must be between 1 and 65535")
    return endpoint_of(scheme.lower(), _checked_host(match[1]), port)


def is_loopback(host: str) -> bool:
    """Whether a host is this machine by definition: `localhost` or a literal loopback address."""
    if host.lower() == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)


def _checked_host(host: str) -> str:
    if host.startswith("["):
        try:
            return str(ipaddress.IPv6Address(host[1:-1]))
        except ValueError:
            raise InvalidUpstream("the upstream's address in brackets is no IPv6 address") from None
    if len(host) > 253 or _HOST_NAME.fullmatch(host) is None:
        raise InvalidUpstream("the upstream's host is no host name")
    return host.lower()
