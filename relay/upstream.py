"""The relay's side towards the provider: a small pooled HTTP/1.1 client on httptools.

Written here, and not taken from a library, because it is what every model call pays for: the
usual clients cost twelve to thirty times the CPU of this one per call. What it promises:

- one TLS context per process and connections reused, the warmest first;
- a request is sent once. A pooled connection is checked for life before its first byte goes out,
  and after that byte nothing is ever sent again;
- the caller gets what one read delivered, joined, and the end of the message with its last piece;
- both directions are held back when the other side is slow;
- a body that stops before its end is an error, never an end.
"""

from __future__ import annotations

import asyncio
import functools
import os
import ssl
from collections.abc import Mapping
from pathlib import Path

from relay.asgi import Headers
from relay.connection import (
    Connection,
    UpstreamBroken,
    UpstreamTLSFailed,
    UpstreamUnreachable,
    os_words,
)
from relay.endpoints import Endpoint
from relay.proxies import open_tunnel, proxy_for
from relay.sockets import connected_unix

_MAX_IDLE = 64  # connections kept for the next call
# Local model servers close an idle connection after 5 s; providers keep theirs for minutes, and
# there a new one costs three round trips.
_KEEP_PLAIN_S = 4.0
_KEEP_TLS_S = 45.0


@functools.cache
def tls_context() -> ssl.SSLContext:
    """The one client context of this process. Reading the CA bundle costs 20 ms of CPU.

    OpenSSL takes the authorities from SSL_CERT_FILE and SSL_CERT_DIR, and says nothing when they
    cannot be read: every certificate would be strange, and nobody would know why.

    Raises:
        ssl.SSLError: what these variables name is not there or holds no certificate.
    """
    file, directory = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
    context = ssl.create_default_context()
    if file:
        try:
            context.load_verify_locations(file)
        except OSError as error:
            raise _bad_authorities("SSL_CERT_FILE names a file that", error) from None
    if directory and not any(Path(part).is_dir() for part in directory.split(os.pathsep)):
        raise _bad_authorities("SSL_CERT_DIR names a directory that", FileNotFoundError())
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


def _bad_authorities(what: str, error: OSError) -> ssl.SSLError:
    missing = isinstance(error, FileNotFoundError)
    words = "does not exist" if missing else "holds no certificate that can be read"
    return ssl.SSLError(0, f"{what} {words}")


class UpstreamClient:
    """Connections to one endpoint, for one event loop.

    Args:
        connect_timeout_s: for look-up, connection and TLS handshake together.
        idle_timeout_s: how long nothing may move during a call; there is no total timeout.
        environ: where the proxy variables are looked up; this process's own unless given.

    Raises:
        InvalidProxy: a proxy variable that applies to the endpoint cannot be used.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        connect_timeout_s: float = 10.0,
        idle_timeout_s: float = 300.0,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.endpoint = endpoint
        self.proxy = proxy_for(endpoint, os.environ if environ is None else environ)
        self.connect_timeout_s = connect_timeout_s
        self.idle_timeout_s = idle_timeout_s
        self.opened = 0  # connections made so far
        self._keep_s = _KEEP_TLS_S if endpoint.is_tls else _KEEP_PLAIN_S
        self._idle: list[Connection] = []
        self._all: set[Connection] = set()

    def exchange(self) -> Exchange:
        """A request and its response, not yet started."""
        return Exchange(self)

    async def aclose(self) -> None:
        """Close every connection; a call still under way ends with an error."""
        self._idle.clear()
        for connection in list(self._all):
            connection.abort(UpstreamBroken("the relay is closing"))
        await asyncio.sleep(0)

    async def acquire(self) -> Connection:
        """A connection that is alive as far as this machine knows."""
        while self._idle:
            connection = self._idle.pop()
            if connection.wake():
                return connection
        try:
            async with asyncio.timeout(self.connect_timeout_s):
                return await self._connect()
        except TimeoutError:
            raise UpstreamUnreachable(
                f"no connection to {self._described()} within {self.connect_timeout_s:g} s"
            ) from None
        except OSError as error:
            kind = UpstreamTLSFailed if isinstance(error, ssl.SSLError) else UpstreamUnreachable
            raise kind(f"no connection to {self._described()}: {os_words(error)}") from error

    def release(self, connection: Connection) -> None:
        """Take back a connection whose last exchange ended well."""
        connection.rest(min(self._keep_s, connection.keep_hint_s))
        self._idle.append(connection)
        if len(self._idle) > _MAX_IDLE:
            self._idle[0].close()

    def forget(self, connection: Connection) -> None:
        """Called when a connection is gone."""
        self._all.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)

    def _described(self) -> str:
        by = f" by the proxy {self.proxy.url}" if self.proxy else ""
        return f"{self.endpoint.url}{by}"

    async def _connect(self) -> Connection:
        loop = asyncio.get_running_loop()
        connection = Connection(self.forget, self.idle_timeout_s)
        endpoint = self.endpoint
        if endpoint.unix_path:
            await loop.create_unix_connection(
                lambda: connection, sock=connected_unix(endpoint.unix_path)
            )
        elif endpoint.is_tls:
            context = await asyncio.to_thread(tls_context)
            if self.proxy is None:
                await loop.create_connection(
                    lambda: connection,
                    endpoint.host,
                    endpoint.port,
                    ssl=context,
                    server_hostname=endpoint.host,
                )
            else:
                await loop.create_connection(
                    lambda: connection,
                    sock=await open_tunnel(self.proxy, endpoint),
                    ssl=context,
                    server_hostname=endpoint.host,
                )
        else:
            to = self.proxy or endpoint
            await loop.create_connection(lambda: connection, to.host, to.port)
        self.opened += 1
        self._all.add(connection)
        return connection


class Exchange:
    """One request, sent once, and its response.

    `send` returns when the final response's head is there; `read` until it says so gives the
    body; `close` is always safe and must always be called.
    """

    def __init__(self, client: UpstreamClient) -> None:
        self._client = client
        self._connection: Connection | None = None
        self._interrupted: Exception | None = None
        self._closed = False

    @property
    def status(self) -> int:
        return self._held().status

    @property
    def headers(self) -> Headers:
        """In the order they came, names in lower case, duplicates kept."""
        return self._held().headers

    @property
    def is_sent(self) -> bool:
        """Whether the provider may have seen some of the request."""
        return self._connection is not None

    @property
    def is_closed(self) -> bool:
        return self._closed

    async def send(self, method: bytes, target: bytes, headers: Headers, body: bytes) -> None:
        """Send the request and wait for the head of its response.

        Args:
            target: origin form, exactly as it will stand in the request line.
            headers: complete but for Content-Length, which is added for a body or a POST.

        Raises:
            UpstreamError: there is no answer.
        """
        client = self._client
        if client.proxy is not None and not client.endpoint.is_tls:
            # A proxy learns where a plaintext request goes from the request alone.
            target = client.endpoint.url.encode() + target
            headers = [*headers, *client.proxy.headers]
        connection = await client.acquire()
        if self._interrupted is not None or self._closed:
            client.release(connection)
            raise self._interrupted or UpstreamBroken("the exchange was closed")
        self._connection = connection
        await connection.request(method, target, headers, body)

    async def read(self) -> tuple[bytes, bool]:
        """The body bytes that have arrived, waiting for some, and whether more will come.

        Raises:
            UpstreamError: the body stopped before its end.
        """
        return await self._held().read()

    def interrupt(self, reason: Exception) -> None:
        """Make whoever waits on this exchange, now or later, get `reason`."""
        if self._closed or self._interrupted is not None:
            return
        self._interrupted = reason
        if self._connection is not None:
            self._connection.abort(reason)

    def close(self) -> None:
        """Give the connection back if its response ended well, else close it."""
        if self._closed:
            return
        self._closed = True
        connection = self._connection
        if connection is None:
            return
        if connection.reusable:
            self._client.release(connection)
        else:
            connection.abort(UpstreamBroken("the exchange was closed"))

    def _held(self) -> Connection:
        if self._connection is None:
            raise RuntimeError("the exchange was not sent")
        return self._connection
