"""The proxy a network makes its machines use for what leaves it, by the usual variables.

`HTTPS_PROXY` and `HTTP_PROXY` name the proxy for upstreams of that scheme, `ALL_PROXY` the one
for both, `NO_PROXY` the hosts that are reached without; a lower-case name outranks its twin. An
https upstream is reached through a CONNECT tunnel, so the proxy sees neither key nor call; a
plaintext one by requests in absolute form. This machine is never reached through a proxy.
"""

from __future__ import annotations

import asyncio
import base64
import ipaddress
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote_to_bytes

from relay.connection import UpstreamUnreachable, os_words
from relay.endpoints import Endpoint, InvalidUpstream, is_loopback, parse_endpoint

_MAX_ANSWER_BYTES = 16 * 1024  # of the head of a proxy's answer to CONNECT
_STATUS_LINE = re.compile(rb"HTTP/1\.[01] ([0-9]{3})(?: |\r\n)")


class InvalidProxy(ValueError):
    """A proxy variable that cannot be used. The text names the variable and never its value."""


@dataclass(frozen=True, slots=True)
class Proxy:
    """One HTTP proxy, spoken to in plaintext.

    `authorization` is the value of a Proxy-Authorization header, empty for none; it never shows.
    """

    host: str
    port: int
    variable: str = ""  # where it came from, for messages
    authorization: bytes = field(default=b"", repr=False)

    @property
    def url(self) -> str:
        """Its address without the credential."""
        return Endpoint("http", self.host, self.port).url

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """What a request to it carries beside what it asks for."""
        return [(b"proxy-authorization", self.authorization)] if self.authorization else []


def proxy_for(endpoint: Endpoint, environ: Mapping[str, str]) -> Proxy | None:
    """The proxy by which an upstream is reached, or None when it is reached directly.

    Raises:
        InvalidProxy: the variable that applies holds no usable proxy.
    """
    if endpoint.unix_path or is_loopback(endpoint.host):
        return None
    for name in (f"{endpoint.scheme}_proxy", "all_proxy"):
        variable = next((key for key in (name, name.upper()) if environ.get(key)), "")
        if variable:
            break
    else:
        return None
    exempt = environ.get("no_proxy") or environ.get("NO_PROXY") or ""
    return None if _is_exempt(endpoint, exempt) else _parse(environ[variable].strip(), variable)


async def open_tunnel(proxy: Proxy, endpoint: Endpoint) -> socket.socket:
    """A connected socket whose other end, by way of the proxy, is the endpoint.

    There is no timeout here: the caller's holds.

    Raises:
        UpstreamUnreachable: the proxy is not there, or does not want to; nothing reached the
            endpoint.
    """
    sock = await _connected(proxy)
    try:
        host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
        authority = f"{host}:{endpoint.port}".encode()
        lines = [b"CONNECT %b HTTP/1.1\r\nhost: %b\r\n" % (authority, authority)]
        lines += [b"%b: %b\r\n" % header for header in proxy.headers]
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(sock, b"".join([*lines, b"\r\n"]))
        answer = b""
        while b"\r\n\r\n" not in answer:
            piece = await loop.sock_recv(sock, 4096)
            answer += piece
            if not piece or len(answer) > _MAX_ANSWER_BYTES:
                raise UpstreamUnreachable(f"the proxy {proxy.url} did not answer as one")
        _check_answer(proxy, answer)
    except OSError as error:
        sock.close()
        words = os_words(error)
        raise UpstreamUnreachable(f"the proxy {proxy.url} failed: {words}") from error
    except BaseException:
        sock.close()
        raise
    return sock


def _check_answer(proxy: Proxy, answer: bytes) -> None:
    status = _STATUS_LINE.match(answer)
    if status is None:
        raise UpstreamUnreachable(f"the proxy {proxy.url} did not answer as one")
    if status[1] == b"407":
        where = f" in {proxy.variable}" if proxy.variable else ""
        raise UpstreamUnreachable(
            f"the proxy {proxy.url} asks for another user name and password{where} (407)"
        )
    if not status[1].startswith(b"2"):
        code = status[1].decode()
        raise UpstreamUnreachable(f"the proxy {proxy.url} refused the connection ({code})")
    if not answer.endswith(b"\r\n\r\n"):
        # A TLS server never speaks first, so these bytes are the proxy's own.
        raise UpstreamUnreachable(f"the proxy {proxy.url} did not answer as one")


async def _connected(proxy: Proxy) -> socket.socket:
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(proxy.host, proxy.port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise UpstreamUnreachable(f"no proxy at {proxy.url}: {os_words(error)}") from error
    failure: OSError = OSError("it has no address")
    for family, kind, protocol, _, address in found:
        sock = socket.socket(family, kind, protocol)
        sock.setblocking(False)
        try:
            await loop.sock_connect(sock, address)
        except OSError as error:
            sock.close()
            failure = error
        except BaseException:
            sock.close()
            raise
        else:
            return sock
    raise UpstreamUnreachable(f"no proxy at {proxy.url}: {os_words(failure)}") from failure


def _parse(value: str, variable: str) -> Proxy:
    scheme, separator, rest = value.partition("://")
    if not separator:
        scheme, rest = "http", value
    if scheme.lower() != "http":
        raise InvalidProxy(
            f"{variable}: only proxies that are themselves at http:// can be used "
            "(https upstreams pass them in a tunnel)"
        )
    login, _, address = rest.rpartition("@")
    try:
        endpoint = parse_endpoint(f"http://{address}")
    except InvalidUpstream:
        raise InvalidProxy(f"{variable} must look like http://user:password@host:port") from None
    return Proxy(endpoint.host, endpoint.port, variable, _basic(login))


def _basic(login: str) -> bytes:
    if not login:
        return b""
    user, _, password = login.partition(":")
    pair = unquote_to_bytes(user) + b":" + unquote_to_bytes(password)
    return b"Basic " + base64.b64encode(pair)


def _is_exempt(endpoint: Endpoint, exempt: str) -> bool:
    return any(_matches(endpoint, item.strip().lower()) for item in exempt.split(","))


def _matches(endpoint: Endpoint, item: str) -> bool:
    """One entry of NO_PROXY: `*`, a name and all below it, an address or a network, a port."""
    if not item or item == "*":
        return item == "*"
    host, separator, port = item.rpartition(":")
    if separator and port.isdigit() and (":" not in host or host.endswith("]")):
        if int(port) != endpoint.port:
            return False
        item = host
    item = item.removeprefix("[").removesuffix("]")
    try:
        network = ipaddress.ip_network(item, strict=False)
    except ValueError:
        name = item.removeprefix("*").removeprefix(".")
        return endpoint.host == name or endpoint.host.endswith(f".{name}")
    try:
        return ipaddress.ip_address(endpoint.host) in network
    except ValueError:
        return False
