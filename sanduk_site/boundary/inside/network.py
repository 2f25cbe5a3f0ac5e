"""Ways out: the host, its names, another box, an engine's socket, the egress door."""

from __future__ import annotations

import os
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator

from .box import Box, Untried, said

ENGINE_SOCKETS = (
    "/var/run/docker.sock", "/run/docker.sock", "/run/podman/podman.sock",
    "/run/containerd/containerd.sock", "/run/crio/crio.sock", "/run/buildkit/buildkitd.sock",
)  # fmt: skip


def answers(address: str, port: int) -> bool:
    """Whether anything is there: a refusal is an answer too, the way there exists."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family) as tried:
            tried.settimeout(1)
            tried.connect((address, port))
    except ConnectionRefusedError:
        return True
    except OSError:
        return False
    return True


def has_route(address: str) -> bool:
    """Asked of the kernel alone: a datagram socket that connects sends nothing."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as tried:
            tried.connect((address, 53))
    except OSError:
        return False
    return True


def exfiltration(box: Box) -> list[str]:
    # addresses that are nobody's (RFC 5737, RFC 3849), and the one clouds tell secrets at
    outside = ("192.0.2.1", "198.51.100.1", "2001:db8::1", "169.254.169.254")
    reached = [f"there is a route to {address}" for address in outside if has_route(address)]
    for address in box.order["hosts"]:
        shown = f"[{address}]" if ":" in address else address
        url = f"http://{shown}:{box.order['port']}/exfiltration-{box.order['nonce']}"
        try:
            urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=2)
            reached.append(f"a request to {shown}:{box.order['port']} was answered")
        except (OSError, ValueError):
            pass
        try:
            if said("curl", "-sS", "--noproxy", "*", "-m", "2", url).returncode == 0:
                reached.append(f"curl reached {shown}:{box.order['port']}")
        except (Untried, subprocess.TimeoutExpired):
            pass
    return reached


def gateway(box: Box) -> list[str]:
    reached = []
    for address in box.order["hosts"]:
        open_ports = [p for p in box.order["ports"] if answers(address, p)]
        if open_ports:
            reached.append(f"{address} answers at port {', '.join(map(str, open_ports[:4]))}")
    for line in open("/proc/net/route").read().splitlines()[1:]:
        fields = line.split()
        if len(fields) > 2 and fields[1] == "00000000":
            number = bytes.fromhex(fields[2])[::-1]
            reached.append(f"there is a gateway, {socket.inet_ntoa(number)}")
    # /sys may be the host's, as rootless Podman has it: its list is not of this namespace
    for line in open("/proc/net/dev").read().splitlines()[2:]:
        name = line.partition(":")[0].strip()
        if name != "lo" and "eth" in name:
            reached.append(f"there is the interface {name}")
    reached += own_word("127.0.0.1", box.order["port"], box.order["nonce"], "the host's loopback")
    return reached


def own_word(address: str, port: int, word: str, what: str) -> list[str]:
    heard = b""
    try:
        with socket.create_connection((address, port), 1) as there:
            there.sendall(b"GET / HTTP/1.0\r\n\r\n")
            while len(heard) < 4096 and (piece := there.recv(4096)):
                heard += piece
    except OSError:
        pass  # what was heard till then counts
    return [f"{what} answers at {address}:{port}"] if word.encode() in heard else []


def neighbour(box: Box) -> list[str]:
    there = box.order["neighbour"]
    if not there:
        raise Untried("no second box could be started beside it")
    reached = []
    for address in there["addresses"]:
        reached += own_word(address, there["port"], there["word"], "the box beside it")
    reached += abstract(there["word"], "the box beside it")
    if any(there["word"].encode() in process for process in commands()):
        reached.append("the processes of the box beside it can be seen")
    return reached


def commands() -> Iterator[bytes]:
    for number in os.listdir("/proc"):
        if number.isdigit() and int(number) != os.getpid():
            try:
                yield open(f"/proc/{number}/cmdline", "rb").read()
            except OSError:
                continue


def abstract(name: str, what: str) -> list[str]:
    try:
        with socket.socket(socket.AF_UNIX) as tried:
            tried.connect("\0" + name)
    except OSError:
        return []
    return [f"an abstract socket of {what}"]


def names(box: Box) -> list[str]:
    reached = []
    for name in (
        f"{box.order['nonce']}.sanduk-boundary.example.com",
        "host.docker.internal",
        "host.containers.internal",
        "gateway.docker.internal",
    ):
        begun = time.monotonic()
        try:
            found = socket.getaddrinfo(name, 80)
            reached.append(f"{name} resolves to {found[0][4][0]}")
        except OSError:
            if time.monotonic() - begun > 5:
                reached.append(f"the look-up of {name} took {time.monotonic() - begun:.0f} s")
    for line in open("/etc/resolv.conf"):
        words = line.split()
        if words[:1] == ["nameserver"] and not words[1].startswith("127."):
            reached.append(f"/etc/resolv.conf names the server {words[1]}")
    return reached


def engine_socket(box: Box) -> list[str]:
    reached = [f"{path} is there" for path in ENGINE_SOCKETS if os.path.exists(path)]
    for path in box.sockets:
        try:
            with socket.socket(socket.AF_UNIX) as tried:
                tried.settimeout(2)
                tried.connect(path)
            reached.append(f"something answers at the socket {path}")
        except OSError:
            pass
    reached += abstract(box.order["abstract"], "the host")
    reached += [
        f"the variable {n} is set" for n in ("DOCKER_HOST", "CONTAINER_HOST") if os.environ.get(n)
    ]
    return reached


def through_door(where: str) -> int:
    host, _, port = os.environ.get("HTTPS_PROXY", "")[7:].rstrip("/").partition(":")
    if not port:
        raise Untried("no egress door in this box")
    with socket.create_connection((host, int(port)), 5) as door:
        door.settimeout(10)
        door.sendall(f"CONNECT {where} HTTP/1.1\r\nhost: {where}\r\n\r\n".encode())
        heard = door.recv(4096)
        return int(heard.split()[1]) if len(heard.split()) > 1 else 0


def door_refuses(box: Box) -> list[str]:
    return [
        f"{where} was connected through the egress door"
        for where in box.order["refused"]
        if through_door(where) == 200
    ]


def door_allows(box: Box) -> list[str]:
    answers = {where: through_door(where) for where in box.order["allowed"]}
    return [
        f"{where} is on the list, and the egress door answers {status}"
        for where, status in answers.items()
        if status != 200
    ]
