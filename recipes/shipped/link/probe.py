"""What can be reached from this network namespace. It records and never decides.

Every `error` is the name of an errno, `timeout`, or null. Standard library only, and little of it:
each import delays the start of a run.
"""

from __future__ import annotations

import _thread
import errno
import socket
import time
from select import POLLOUT, poll

# beside this file, in the image and here
from namespace import (  # type: ignore[import-not-found]
    interfaces,
    network_namespace,
    routes,
)

CONNECT_LIMIT_S = 0.3
DNS_LIMIT_S = 1.0
RELAY_LIMIT_S = 2.0
BATCH = 256  # sockets open at once: some engines give 1024 descriptors
METADATA = "169.254.169.254"
DOCUMENTATION = "2001:db8::1"  # RFC 3849: routed nowhere, so a route to it is a default route

# Names and numbers of linux/socket.h, with the types that open each: Python lacks some of them.
FAMILIES: tuple[tuple[str, int, tuple[tuple[int, int], ...]], ...] = (
    ("AF_UNIX", 1, ((1, 0),)),
    ("AF_INET", 2, ((1, 0), (2, 0))),
    ("AF_INET6", 10, ((1, 0), (2, 0))),
    ("AF_X25", 9, ((5, 0),)),
    ("AF_KEY", 15, ((3, 2),)),
    ("AF_NETLINK", 16, ((3, 0),)),
    ("AF_PACKET", 17, ((3, 0), (2, 0))),
    ("AF_RDS", 21, ((5, 0),)),
    ("AF_TIPC", 30, ((5, 0), (1, 0))),
    ("AF_BLUETOOTH", 31, ((3, 1), (5, 0), (1, 3))),
    ("AF_ALG", 38, ((5, 0),)),
    ("AF_VSOCK", 40, ((1, 0), (2, 0))),
    ("AF_XDP", 44, ((3, 0),)),
)
AF_VSOCK, VSOCK_HOST = 40, 2

Target = tuple[str, int]
Found = dict[str, object]


def _code(number: int | None) -> str:
    return errno.errorcode.get(number or 0, str(number))


def _ms(since: float) -> float:
    return round((time.monotonic() - since) * 1000, 2)


def connect_all(targets: list[Target], limit_s: float = CONNECT_LIMIT_S) -> list[Found]:
    """Try TCP connections, all at once; each batch takes `limit_s` at most."""
    found: list[Found] = []
    for start in range(0, len(targets), BATCH):
        found += _connect_batch(targets[start : start + BATCH], limit_s)
    return found


def _connect_batch(targets: list[Target], limit_s: float) -> list[Found]:
    found: list[Found] = []
    waiting: dict[int, tuple[socket.socket, Found]] = {}
    poller = poll()
    for address, port in targets:
        result: Found = {"address": address, "port": port, "open": False, "error": None}
        found.append(result)
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        try:
            socket.inet_pton(family, address.split("%")[0])  # connect would look a name up
            tried = socket.socket(family)
        except (OSError, ValueError) as error:
            result["error"] = _code(getattr(error, "errno", None) or errno.EINVAL)
            continue
        tried.setblocking(False)
        try:
            code = tried.connect_ex((address, port))
        except OSError:  # a scope that names no device here
            code = errno.EINVAL
        if code == errno.EINPROGRESS:
            waiting[tried.fileno()] = tried, result
            poller.register(tried, POLLOUT)
            continue
        _settle(result, code)
        tried.close()
    deadline = time.monotonic() + limit_s
    while waiting and (left := deadline - time.monotonic()) > 0:
        for descriptor, _ in poller.poll(left * 1000):
            tried, result = waiting.pop(descriptor)
            poller.unregister(descriptor)
            _settle(result, tried.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))
            tried.close()
    for tried, result in waiting.values():
        result["error"] = "timeout"
        tried.close()
    return found


def _settle(result: Found, code: int) -> None:
    result["open"] = code == 0
    result["error"] = None if code == 0 else _code(code)


def ipv6() -> Found:
    """Whether the kernel would send a datagram to a global IPv6 address. It sends none."""
    result: Found = {"address": DOCUMENTATION, "port": 80, "open": False, "error": None}
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as tried:
            _settle(result, tried.connect_ex((DOCUMENTATION, 80)))
    except OSError as error:
        result["error"] = _code(error.errno)
    return result


def families() -> dict[str, bool]:
    """Which socket families this process may open."""
    return {name: _opens(number, kinds) for name, number, kinds in FAMILIES}


def _opens(family: int, kinds: tuple[tuple[int, int], ...]) -> bool:
    for kind, protocol in kinds:
        try:
            socket.socket(family, kind, protocol).close()
        except OSError:
            continue
        return True
    return False


def vsock() -> Found:
    """A connection to the hypervisor: any error but a refusal to try means the way exists."""
    result: Found = {"open": False, "error": None}
    try:
        tried = socket.socket(AF_VSOCK, socket.SOCK_STREAM)
    except OSError as error:
        result["error"] = _code(error.errno)
        return result
    with tried:
        tried.settimeout(CONNECT_LIMIT_S)
        try:
            tried.connect((VSOCK_HOST, 1))
            result["open"] = True
        except TimeoutError:
            result["error"] = "timeout"
        except OSError as error:
            result["error"] = _code(error.errno)
    return result


class Lookup:
    """A name look-up in a thread: the resolver may take 20 seconds and cannot be interrupted."""

    def __init__(self, name: str) -> None:
        self.result: Found = {"name": name, "resolved": False, "error": "timeout", "ms": None}
        self.started = time.monotonic()
        self.done = _thread.allocate_lock()
        self.done.acquire()
        _thread.start_new_thread(self._ask, (name,))

    def _ask(self, name: str) -> None:
        answer: Found = {"name": name, "resolved": False, "error": None}
        try:
            socket.getaddrinfo(name, 443)
            answer["resolved"] = True
        except socket.gaierror as error:
            answer["error"] = _resolver_error(error.errno)
        except (OSError, UnicodeError) as error:
            answer["error"] = _code(error.errno) if isinstance(error, OSError) else "EINVAL"
        answer["ms"] = _ms(self.started)
        self.result = answer
        self.done.release()

    def wait(self) -> Found:
        if not self.done.acquire(timeout=max(0, self.started + DNS_LIMIT_S - time.monotonic())):
            return {**self.result, "ms": _ms(self.started)}
        return self.result


def _resolver_error(number: int | None) -> str:
    for name in ("EAI_AGAIN", "EAI_FAIL", "EAI_NONAME", "EAI_NODATA", "EAI_SYSTEM"):
        if getattr(socket, name, None) == number:
            return name
    return str(number)


def relay(port: int, limit_s: float = RELAY_LIMIT_S) -> Found:
    """Ask the relay without a token: the status shows that the way there works and is guarded."""
    result: Found = {"status_without_token": None, "error": None, "ms": None}
    deadline = time.monotonic() + limit_s
    request = f"GET /v1/models HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n"
    while True:
        started = time.monotonic()
        try:
            with socket.socket() as asking:
                asking.settimeout(max(0.001, deadline - started))
                asking.connect(("127.0.0.1", port))
                asking.sendall(request.encode())
                answer = asking.recv(4096).split(b"\r\n")[0].split(b" ")
        except ConnectionRefusedError:  # socat does not listen yet
            if time.monotonic() < deadline:
                time.sleep(0.002)
                continue
            result["error"] = "ECONNREFUSED"
        except TimeoutError:
            result["error"] = "timeout"
        except OSError as error:
            result["error"] = _code(error.errno)
        else:
            if len(answer) > 1 and answer[0].startswith(b"HTTP/") and answer[1].isdigit():
                result["status_without_token"] = int(answer[1][:3])
            else:
                result["error"] = "EPROTO"
        result["ms"] = _ms(started)
        return result


def probe(host: list[Target], neighbours: list[Target], name: str | None, port: int) -> Found:
    """Everything the certificate wants to know of this namespace.

    Args:
        host: where the host listens; neighbours: where other containers do.
        name: must not resolve; None where look-ups are allowed.
        port: the relay's, on 127.0.0.1.
    """
    started = time.monotonic()
    lookup = None if name is None else Lookup(name)
    tried = connect_all([*host, *neighbours, (METADATA, 80)])
    found: Found = {
        "interfaces": interfaces(),
        "routes": routes(),
        "host": tried[: len(host)],
        "neighbours": tried[len(host) : -1],
        "metadata": tried[-1],
        "ipv6": ipv6(),
        "families": families(),
        "vsock": vsock(),
        "netns": network_namespace(),
        "relay": relay(port),
        "dns": lookup and lookup.wait(),
    }
    found["ms"] = _ms(started)
    return found
