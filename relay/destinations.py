"""Which hosts of the outside a sealed run may reach, and which nobody may.

A list names exact hosts and ports. A name is only half of a destination: what it resolves to is
judged too, so that no listed name can be pointed at this machine, its network, or the service
that hands out a cloud machine's credentials.
"""

from __future__ import annotations

import errno
import ipaddress
import re
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

HostPort = tuple[str, int]
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Mode = Literal["refuse", "warn"]

DEFAULT_PORT = 443
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
# What the system's resolver takes for an IPv4 address, however it is written: 0x7f000001, 127.1.
_NUMBER_AT_END = re.compile(r"(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)")
_HOST_PORT = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\[\]:]+)(?::([0-9]{1,5}))?")
_GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")  # all that IANA has handed out of IPv6
# Special by RFC 6890 and its registry, where Python's own table depends on its patch level; and
# the address of Azure's metadata service, in public space unlike those of other clouds.
_SPECIAL = (
    ipaddress.ip_network("192.0.0.0/24"),
    ipaddress.ip_network("192.88.99.0/24"),
    ipaddress.ip_network("168.63.129.16/32"),
    ipaddress.ip_network("2001::/23"),
    ipaddress.ip_network("2001:db8::/32"),
    ipaddress.ip_network("3fff::/20"),
)
# Addresses that carry an IPv4 one, and the bits below it: RFC 6052, RFC 3056.
_CARRIERS = (
    (ipaddress.IPv6Network("64:ff9b::/96"), 0),
    (ipaddress.IPv6Network("2002::/16"), 80),
)
# Those that no public address is among: RFC 8215, 2765, 4291 and, for its server, 4380.
_LOCAL_CARRIERS = (
    (ipaddress.IPv6Network("64:ff9b:1::/48"), 0),
    (ipaddress.IPv6Network("::ffff:0:0:0/96"), 0),
    (ipaddress.IPv6Network("::/96"), 0),
    (ipaddress.IPv6Network("2001::/32"), 64),
)
_TEREDO = ipaddress.IPv6Network("2001::/32")
# Where clouds hand out a machine's credentials, beside 169.254.0.0/16: Alibaba, Azure, Oracle,
# Amazon (twice), Google, Scaleway.
_METADATA = frozenset(
    map(
        ipaddress.ip_address,
        (
            "100.100.100.200", "168.63.129.16", "192.0.0.192",
            "fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254", "fd00:42::42",
        ),
    )
)  # fmt: skip


class InvalidHost(ValueError):
    """A host that cannot stand on the list; the text says why."""


@dataclass(frozen=True, slots=True)
class EgressRules:
    """What the egress door lets through.

    Args:
        hosts: exact names or addresses, each with its port.
        mode: `warn` lets unlisted hosts pass, recorded, so that a list can be made from them.
        provider_host: the model provider's, never reachable here: its calls go by the relay.
        admit: addresses with ports that pass although they are private. For the operator alone,
            who tests against a server of his own; nothing of a run may set it.
    """

    hosts: frozenset[HostPort] = frozenset()
    mode: Mode = "refuse"
    provider_host: str = ""
    admit: frozenset[HostPort] = frozenset()

    def __post_init__(self) -> None:
        if self.mode not in ("refuse", "warn"):
            raise ValueError(f"the egress mode is refuse or warn, not {self.mode!r}")
        for host, _ in self.hosts:
            if self.is_provider(host):
                raise InvalidHost(
                    f"--allow-host {host}: the model provider is reached by the relay alone"
                )

    def lists(self, host: str, port: int) -> bool:
        return (host, port) in self.hosts

    def is_provider(self, host: str) -> bool:
        """Whether a host is the model provider's."""
        return bool(self.provider_host) and host == self.provider_host.lower().rstrip(".")

    def is_reachable(self, address: str, port: int) -> bool:
        """Whether a resolved address may be connected to, whatever its name."""
        if (address, port) in self.admit:
            return True
        return is_public(address) and not is_this_machine(address)


def egress_rules(
    allow_hosts: Iterable[str],
    *,
    mode: Mode = "refuse",
    provider_host: str = "",
    admit: Iterable[str] = (),
) -> EgressRules:
    """Rules from the texts of flags: `HOST`, `HOST:PORT`, and `ADDRESS:PORT` for `admit`.

    Raises:
        InvalidHost: for a wildcard, a URL, a private address, the provider's own host.
    """
    return EgressRules(
        hosts=frozenset(parse_allowed_host(text) for text in allow_hosts),
        mode=mode,
        provider_host=provider_host,
        admit=frozenset(_parse_admitted(text) for text in admit),
    )


def parse_allowed_host(text: str) -> HostPort:
    """Read `HOST[:PORT]`, where the port is 443 unless given.

    Raises:
        InvalidHost: it is no exact host, or one that is never reachable.
    """
    if "*" in text:
        raise InvalidHost(f"--allow-host {text}: no wildcards, name each host")
    if "/" in text or "@" in text:
        raise InvalidHost(f"--allow-host {text}: give HOST or HOST:PORT, not a URL")
    found = read_host_port(text, DEFAULT_PORT)
    if found is None:
        raise InvalidHost(f"--allow-host {text}: give HOST or HOST:PORT")
    host, port = found
    literal = _literal(host)
    if literal is None and _NUMBER_AT_END.fullmatch(host):
        raise InvalidHost(
            f"--allow-host {text}: no name ends in a number; an address is four decimal numbers"
        )
    is_local = host == "localhost" or host.endswith(".localhost")
    if is_local or (literal is not None and not is_public(host)):
        raise InvalidHost(f"--allow-host {text}: private addresses are never reachable")
    return host, port


def read_host_port(text: str, default_port: int | None = None) -> HostPort | None:
    """A host in its one spelling and its port, or None when the text is no such pair."""
    match = _HOST_PORT.fullmatch(text)
    if match is None:
        return None
    port = int(match[2]) if match[2] else default_port
    if port is None or not 1 <= port <= 65535:
        return None
    host = match[1].lower()
    if host.startswith("["):
        try:
            return str(ipaddress.IPv6Address(host[1:-1])), port
        except ValueError:
            return None
    host = host.removesuffix(".")
    if len(host) > 253 or _NAME.fullmatch(host) is None:
        return None
    return host, port


def show_host_port(host: str, port: int) -> str:
    """The pair as `--allow-host` takes it."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def flag_for(host: str, port: int) -> str:
    """The flag that puts the pair on the list; empty when no flag may."""
    text = show_host_port(host, port)
    try:
        parse_allowed_host(text)
    except InvalidHost:
        return ""
    return f"--allow-host {text}"


def is_public(address: str) -> bool:
    """Whether an address belongs to the public internet, as far as its number tells."""
    found = _literal(address)
    if found is None or getattr(found, "scope_id", None):
        return False
    return _is_public(_carried(found))


def is_never_asked(address: str) -> bool:
    """Whether nobody's flag admits an address: a link's, a cloud's credentials, no single host.

    The addresses that it carries inside count as itself. What is no address is never asked.
    """
    found = _literal(address.partition("%")[0])
    return found is None or any(
        each.is_link_local or each.is_multicast or each.is_unspecified or each in _METADATA
        for each in (found, *_inside(found))
    )


def is_this_machine(address: str) -> bool:
    """Whether an address is one of this machine's own: a server often has a public one."""
    found = _literal(address)
    address = str(_carried(found)) if found is not None else address
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((address, 0))
    except OSError as error:
        # Nobody else's address can be bound; any other failure leaves the question open.
        return error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
    return True


def _literal(text: str) -> Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _is_public(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv6Address) and address not in _GLOBAL_UNICAST:
        return False
    return (
        address.is_global
        and not address.is_multicast
        and not address.is_reserved
        and not any(address in network for network in _SPECIAL)
    )


def _carried(address: Address) -> Address:
    """The address that counts: the one wrapped in another stands for it."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    for network, shift in _CARRIERS:
        if address in network:
            return ipaddress.IPv4Address((int(address) >> shift) & 0xFFFFFFFF)
    return address


def _inside(address: Address) -> list[Address]:
    """Every IPv4 address that an address may stand for."""
    if isinstance(address, ipaddress.IPv4Address):
        return []
    number = int(address)
    shifts = [low for network, low in (*_CARRIERS, *_LOCAL_CARRIERS) if address in network]
    found = [ipaddress.IPv4Address((number >> low) & 0xFFFFFFFF) for low in shifts]
    if address in _TEREDO:
        found.append(ipaddress.IPv4Address(~number & 0xFFFFFFFF))
    if address in _LOCAL_CARRIERS[0][0]:  # below 48 bits of prefix, around eight of zero
        found.append(ipaddress.IPv4Address(number >> 48 & 0xFFFF0000 | number >> 40 & 0xFFFF))
    mapped = [] if address.ipv4_mapped is None else [address.ipv4_mapped]
    return [*mapped, *(each for each in found if int(each))]  # zeros are no address there


def _parse_admitted(text: str) -> HostPort:
    found = read_host_port(text)
    if found is None or _literal(found[0]) is None:
        raise InvalidHost(f"an admitted address is ADDRESS:PORT, not {text!r}")
    return found
