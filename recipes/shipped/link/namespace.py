"""What this process's network namespace has: its devices, addresses and routes, from the kernel."""

from __future__ import annotations

import array
import fcntl
import os
import socket
import struct

SIOCGIFCONF, SIOCGIFFLAGS, IFF_UP = 0x8912, 0x8913, 0x1

Found = dict[str, object]


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
