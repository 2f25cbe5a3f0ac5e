"""This host as a run's probe is asked to reach it: its addresses and open ports, from /proc."""

from __future__ import annotations

import itertools
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address
from pathlib import Path

PORTS_TRIED = 12
ADDRESSES_TRIED = 20  # with every port they still are one batch of the probe's
PROC = Path("/proc/net")


@dataclass(frozen=True, slots=True)
class OwnHost:
    """Args:
    addresses: its IPv4 and IPv6 addresses but loopback's and link-local ones.
    ports: TCP ports something listens on, wildcard listeners first.
    untried: what of it is left out although it may be there, in a few words each.
    """

    addresses: tuple[str, ...]
    ports: tuple[int, ...]
    untried: tuple[str, ...] = ()


def look(proc: Path = PROC) -> OwnHost:
    """Read what there is. It can take some ms. Never raises: what cannot be read is untried."""
    untried: list[str] = []
    found = {*_ipv4(proc / "fib_trie", untried), *_ipv6(proc / "if_inet6", untried)}
    addresses = sorted(address for address in found if not is_loopback(address))
    if (left := len(addresses) - ADDRESSES_TRIED) > 0:
        untried.append(f"{left} of its {len(addresses)} addresses")
    ports = _ports([proc / "tcp", proc / "tcp6"], untried)
    return OwnHost(tuple(addresses[:ADDRESSES_TRIED]), ports, tuple(untried))


def is_loopback(address: str) -> bool:
    return address == "::1" or address.startswith("127.")


def _ipv4(file: Path, untried: list[str]) -> Iterator[str]:
    bad = 0
    for line, follower in itertools.pairwise(_lines(file, "IPv4 addresses", untried)):
        if "|--" not in line or "/32 host LOCAL" not in follower:
            continue
        try:
            yield str(IPv4Address(line.split("|--")[1].strip()))
        except AddressValueError:
            bad += 1
    _tell(bad, file, untried)


def _ipv6(file: Path, untried: list[str]) -> Iterator[str]:
    if not file.exists():  # a kernel without IPv6
        return
    bad = 0
    for line in _lines(file, "IPv6 addresses", untried):
        try:
            address = socket.inet_ntop(socket.AF_INET6, bytes.fromhex(line.split()[0]))
        except (IndexError, ValueError):
            bad += 1
            continue
        if not address.startswith("fe80"):  # link-local needs an interface, which is not there
            yield address
    _tell(bad, file, untried)


def _ports(files: list[Path], untried: list[str]) -> tuple[int, ...]:
    wildcard: set[int] = set()
    bound: set[int] = set()
    for file in files:
        bad = 0
        for line in _lines(file, "open ports", untried)[1:] if file.exists() else ():
            try:
                local, _, state = line.split()[1:4]
                address, _, port = local.partition(":")
                number = int(port, 16)
            except ValueError:
                bad += 1
                continue
            if state == "0A":
                (bound if address.strip("0") else wildcard).add(number)
        _tell(bad, file, untried)
    # 22 is asked in any case, so that a host that listens nowhere is still a question
    ports = [*sorted(wildcard), *sorted(bound - wildcard), 22]
    return tuple(dict.fromkeys(ports))[:PORTS_TRIED]


def _lines(file: Path, what: str, untried: list[str]) -> list[str]:
    try:
        return file.read_text(errors="replace").splitlines()
    except OSError as exc:
        untried.append(f"its {what}, as {file} cannot be read ({exc.strerror})")
        return []


def _tell(bad: int, file: Path, untried: list[str]) -> None:
    if bad:
        untried.append(f"{bad} line{'s' if bad > 1 else ''} of {file} that cannot be understood")
