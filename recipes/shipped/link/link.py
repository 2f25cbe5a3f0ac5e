"""The link: forwards 127.0.0.1 in a run's network namespace to the relay's socket, and probes it.

One argument, a JSON object:

    socket          the relay's unix socket in this container
    port            where to listen on 127.0.0.1
    egress_socket   the egress door's socket, forwarded from 127.0.0.1:3128; null without one
    limit_s         seconds after which the link ends by itself
    host_addresses  addresses of the host, each tried with every port of host_ports
    host_ports      ports that are open on the host
    neighbours      [address, port] pairs of other containers
    name            a name that must not resolve; null where look-ups are allowed

The process becomes socat under a time limit. A process of its own prints one JSON line with what
it found and ends: it records and never decides. Every `error` is the name of an errno, `timeout`,
or null. Standard library only, and little of it: each import delays the start of a run.
"""

from __future__ import annotations

import _thread
import array
import errno
import fcntl
import json
import os
import socket
import struct
import sys
import time
from select import POLLOUT, poll

CONNECT_LIMIT_S = 0.3
DNS_LIMIT_S = 1.0
RELAY_LIMIT_S = 2.0
EGRESS_PORT = 3128
BATCH = 256  # sockets open at once: some engines give 1024 descriptors
METADATA = "169.254.169.254"
DOCUMENTATION = "2001:db8::1"  # RFC 3849: routed nowhere, so a route to it is a default route
SIOCGIFCONF, SIOCGIFFLAGS, IFF_UP = 0x8912, 0x8913, 0x1

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


class Order:
    """The argument, checked."""

    def __init__(self, text: str) -> None:
        data = json.loads(text)
        if not isinstance(data, dict):
            raise ValueError("expected an object")
        self.socket = _path(data["socket"])
        self.port = _integer(data["port"], 1, 65535)
        self.limit_s = _integer(data["limit_s"], 1, 30 * 24 * 3600)
        egress = data.get("egress_socket")
        self.egress_socket = None if egress is None else _path(egress)
        self.name = None if data["name"] is None else str(data["name"])
        ports = [_integer(port, 1, 65535) for port in data["host_ports"]]
        addresses = [str(address) for address in data["host_addresses"]]
        self.host = [(address, port) for address in addresses for port in ports]
        self.neighbours = [
            (str(address), _integer(port, 1, 65535)) for address, port in data["neighbours"]
        ]


def _path(value: object) -> str:
    # socat gives `,`, `:`, `!` and quotes in an address a meaning of their own.
    plain = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-")
    if isinstance(value, str) and value.startswith("/") and plain.issuperset(value):
        return value
    raise ValueError("a socket is an absolute path of letters, digits, dots, hyphens and _")


def _integer(value: object, low: int, high: int) -> int:
    if type(value) is int and low <= value <= high:
        return value
    raise ValueError(f"expected a whole number from {low} to {high}, not {value!r}")


def _code(number: int | None) -> str:
    return errno.errorcode.get(number or 0, str(number))


def _ms(since: float) -> float:
    return round((time.monotonic() - since) * 1000, 2)


# -- what this namespace has ------------------------------------------------------------------


def interfaces() -> list[Found]:
    """Every network device with its flags and addresses, from this process's own namespace."""
    found: list[Found] = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        v4, v6 = _v4_addresses(control), _v6_addresses()
        for line in _lines("/proc/net/dev")[2:]:
            name = line.split(":")[0].strip()
            try:
                answer = fcntl.ioctl(control, SIOCGIFFLAGS, struct.pack("16s24x", name.encode()))
                up = bool(struct.unpack_from("H", answer, 16)[0] & IFF_UP)
            except OSError:
                up = True  # it exists and does not say: the worse of the two
            addresses = [address for device, address in v4 + v6 if device == name]
            found.append({"name": name, "up": up, "addresses": addresses})
    return found


def _v4_addresses(control: socket.socket) -> list[tuple[str, str]]:
    """(device, address) of every IPv4 address, aliases under the name of their device."""
    size = 40 * 256  # struct ifreq, on every 64-bit Linux
    buffer = array.array("B", bytes(size))
    try:
        asked = struct.pack("iP", size, buffer.buffer_info()[0])
        used = struct.unpack("iP", fcntl.ioctl(control, SIOCGIFCONF, asked))[0]
    except OSError:
        return []
    data = buffer.tobytes()[:used]
    return [
        (
            data[at : at + 16].split(b"\0")[0].decode("ascii", "replace").split(":")[0],
            socket.inet_ntoa(data[at + 20 : at + 24]),
        )
        for at in range(0, len(data) - 39, 40)
    ]


def _v6_addresses() -> list[tuple[str, str]]:
    rows = [line.split() for line in _lines("/proc/net/if_inet6")]
    return [(row[5], _v6(row[0])) for row in rows if len(row) == 6]


def routes() -> Found:
    """Routes that do not belong to lo. None where the kernel has no such table."""
    v4: list[Found] = []
    for line in _lines("/proc/net/route")[1:]:
        row = line.split()
        if len(row) < 8 or row[0] == "lo":
            continue
        bits = int(row[7], 16).bit_count()
        v4.append(
            {"interface": row[0], "destination": f"{_v4(row[1])}/{bits}", "gateway": _v4(row[2])}
        )
    v6: list[Found] = []
    for line in _lines("/proc/net/ipv6_route"):
        row = line.split()
        if len(row) < 10 or row[9] == "lo":
            continue
        bits = int(row[1], 16)
        v6.append(
            {"interface": row[9], "destination": f"{_v6(row[0])}/{bits}", "gateway": _v6(row[4])}
        )
    return {
        "v4": v4 if os.path.exists("/proc/net/route") else None,  # noqa: PTH110
        "v6": v6 if os.path.exists("/proc/net/ipv6_route") else None,  # noqa: PTH110
    }


def _v4(text: str) -> str:
    return socket.inet_ntoa(struct.pack("=I", int(text, 16)))  # printed in the host's byte order


def _v6(text: str) -> str:
    return socket.inet_ntop(socket.AF_INET6, bytes.fromhex(text))


def _lines(path: str) -> list[str]:
    try:
        with open(path, encoding="ascii", errors="replace") as file:  # noqa: PTH123
            return file.read().splitlines()
    except OSError:
        return []


def network_namespace() -> int | None:
    try:
        return os.stat("/proc/self/ns/net").st_ino  # noqa: PTH116
    except OSError:
        return None


# -- what can be reached from it ----------------------------------------------------------------


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


def probe(order: Order) -> Found:
    """Everything the certificate wants to know of this namespace."""
    started = time.monotonic()
    lookup = None if order.name is None else Lookup(order.name)
    targets = [*order.host, *order.neighbours, (METADATA, 80)]
    tried = connect_all(targets)
    hosts, neighbours = len(order.host), len(order.neighbours)
    found: Found = {
        "interfaces": interfaces(),
        "routes": routes(),
        "host": tried[:hosts],
        "neighbours": tried[hosts : hosts + neighbours],
        "metadata": tried[-1],
        "ipv6": ipv6(),
        "families": families(),
        "vsock": vsock(),
        "netns": network_namespace(),
        "relay": relay(order.port),
        "dns": lookup and lookup.wait(),
    }
    found["ms"] = _ms(started)
    return found


# -- becoming the link ----------------------------------------------------------------------------


def forward(port: int, path: str, limit_s: int) -> list[str]:
    """The command that forwards. Without nodelay every kept-alive call waits 43 ms."""
    listen = f"TCP-LISTEN:{port},bind=127.0.0.1,fork,reuseaddr,nodelay,backlog=512,max-children=512"
    return ["/usr/bin/timeout", str(limit_s), "/usr/bin/socat", listen, f"UNIX-CONNECT:{path}"]


def in_own_process() -> bool:
    """Fork twice, so that init and not socat inherits the child. True in the grandchild."""
    if child := os.fork():
        os.waitpid(child, 0)
        return False
    if os.fork():
        os._exit(0)
    return True


def main(arguments: list[str]) -> None:
    try:
        (text,) = arguments
        order = Order(text)
    except (KeyError, TypeError, ValueError) as error:
        sys.exit(f"link: bad order: {type(error).__name__}: {error}")
    if in_own_process():
        sys.stdout.write(json.dumps(probe(order)) + "\n")
        sys.exit()
    environment = {"PATH": "/usr/bin:/bin"}
    if order.egress_socket is not None and in_own_process():
        command = forward(EGRESS_PORT, order.egress_socket, order.limit_s)
        os.execve(command[0], command, environment)  # noqa: S606
    command = forward(order.port, order.socket, order.limit_s)
    os.execve(command[0], command, environment)  # noqa: S606


if __name__ == "__main__":
    main(sys.argv[1:])
