"""The seal certificate: what a probe inside the run's own network namespace found.

The probe records, this module judges. A check that could not be made is said as such, never
counted as passed.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import msgspec

from runs.own_host import OwnHost, is_loopback

Verdict = Literal["closed", "open", "unknown"]
# families that reach nothing outside a namespace that has only loopback
HARMLESS_FAMILIES = {"AF_INET", "AF_INET6", "AF_UNIX", "AF_NETLINK"}
ENTRIES_LOOKED_AT = 20_000


@dataclass(frozen=True, slots=True)
class Check:
    """One question, its answer, and the sentence a person reads."""

    name: str
    verdict: Verdict
    sentence: str


@dataclass(frozen=True, slots=True)
class Certificate:
    """Args:
    mode: sealed or key-safe.
    checks: every question that was asked.
    holes: sentences of what was found open although the mode says closed.
    vsock: AF_VSOCK sockets open in there, in spite of everything.
    netns: inode of the probed network namespace; the agent's must be the same.
    door: where the egress door leads, in words; "" without one.
    """

    mode: str
    checks: tuple[Check, ...]
    holes: tuple[str, ...] = ()
    vsock: bool = False
    netns: int | None = None
    probe_ms: float | None = None
    raw: Mapping[str, Any] = field(default_factory=dict)
    door: str = ""

    @property
    def headline(self) -> str:
        if self.holes:
            return f"not {self.mode}: " + "; ".join(self.holes)
        unknown = [check for check in self.checks if check.verdict == "unknown"]
        doubt = (
            f"; {len(unknown)} of {len(self.checks)} checks could not be made" if unknown else ""
        )
        if self.mode != "sealed":
            return f"key-safe: the key stays on the host; LAN and internet are reachable{doubt}"
        gaps = ["VSOCK: a socket to the hypervisor can be opened"] if self.vsock else []
        if any(check.name == "sockets" and check.verdict == "open" for check in self.checks):
            gaps.append("a socket in a directory you lent it")
        if self.door:
            gaps.append(f"the egress door, which lets it reach {self.door}")
        if gaps:
            return f"sealed, but for {', and for '.join(gaps)}{doubt}"
        return f"sealed: nothing answers but the relay{doubt}"

    def as_stored(self) -> dict[str, Any]:
        return {**asdict(self), "headline": self.headline}


class ProbeFailed(Exception):
    """The probe did not say what it must say; the run is not sealed as far as anybody knows."""


def questions(
    *,
    mode: str,
    socket_path: str,
    egress_path: str | None = None,
    port: int,
    limit_s: int,
    host: OwnHost,
    neighbours: list[list[Any]],
) -> str:
    """The probe's one argument: what to look at, as JSON.

    Where a mode gives name look-ups, none is tried: it would only bother a resolver outside.
    """
    name = f"{secrets.token_hex(8)}.sanduk-probe.example.com"
    return msgspec.json.encode(
        {
            "socket": socket_path,
            "egress_socket": egress_path,
            "port": port,
            "host_addresses": host.addresses,
            "host_ports": host.ports,
            "neighbours": neighbours,
            "name": name if mode == "sealed" else None,
            "limit_s": limit_s,
        }
    ).decode()


def lent_sockets(directories: Iterable[str]) -> tuple[list[str], bool]:
    """Unix sockets in directories that the container gets, and whether all of them was looked at.

    No network namespace keeps a process from connecting to a socket it finds in a file system.
    """
    found: list[str] = []
    looked = 0
    for directory in directories:
        for folder, _, names in os.walk(directory):
            for name in names:
                looked += 1
                if looked > ENTRIES_LOOKED_AT:
                    return found, False
                path = f"{folder}/{name}"
                try:
                    if stat.S_ISSOCK(os.lstat(path).st_mode):
                        found.append(path)
                except OSError:
                    continue
    return found, True


def with_untried(certificate: Certificate, untried: Sequence[str]) -> Certificate:
    """The certificate, with what of this host the probe was not asked to reach."""
    if not untried:
        return certificate
    check = Check("untried", "unknown", f"of this host, not tried: {'; '.join(untried)}")
    return replace(certificate, checks=(*certificate.checks, check))


def with_sockets(certificate: Certificate, sockets: list[str], *, all_seen: bool) -> Certificate:
    """The certificate, with what the lent directories hold."""
    if sockets:
        shown = ", ".join(sockets[:3]) + (" and others" if len(sockets) > 3 else "")
        sentence = f"a socket lies in a lent directory, and may be answered on this host: {shown}"
        check = Check("sockets", "open", sentence)
    elif all_seen:
        check = Check("sockets", "closed", "no socket lies in the workspace or another mount")
    else:
        sentence = f"sockets in the lent directories: only {ENTRIES_LOOKED_AT:,} files looked at"
        check = Check("sockets", "unknown", sentence)
    return replace(certificate, checks=(*certificate.checks, check))


def with_door(certificate: Certificate, hosts: Sequence[str], *, warn_only: bool) -> Certificate:
    """The certificate of a run with an egress door.

    Args:
        hosts: the `host:port` it is open for.
        warn_only: it records what is not listed, and lets it pass.
    """
    if warn_only:
        where = "every public host (--egress warn)"
    else:
        where = ", ".join(hosts[:3]) + (f" and {len(hosts) - 3} more" if len(hosts) > 3 else "")
    check = Check("egress", "open", f"the egress door is open for {where}, as you asked")
    return replace(certificate, checks=(*certificate.checks, check), door=where)


def read_probe(line: bytes) -> dict[str, Any]:
    """The probe's one line. Raises ProbeFailed when it is no such object."""
    try:
        found = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError) as exc:
        raise ProbeFailed(f"the probe's answer is not JSON: {exc}") from None
    if not isinstance(found, dict):
        raise ProbeFailed("the probe's answer is no object")
    return found


def judge(found: dict[str, Any], *, mode: str) -> Certificate:
    """Turn what the probe recorded into a certificate. Never raises on a strange answer."""
    checks = [
        _interfaces(found),
        _routes(found),
        *([_name(found)] if mode == "sealed" else []),
        _targets(found, "host", "the host's own addresses and ports"),
        _targets(found, "neighbours", "a neighbouring container"),
        _targets(found, "metadata", "the metadata address 169.254.169.254"),
        _ipv6(found),
        _families(found),
        _relay(found),
    ]
    sealed = mode == "sealed"
    # off the seal, only what the mode itself promises is a hole: the relay must ask for the token
    must_hold = {c.name for c in checks} - {"families"} if sealed else {"relay"}
    holes = tuple(c.sentence for c in checks if c.verdict == "open" and c.name in must_hold)
    unproved = tuple(
        c.sentence
        for c in checks
        if c.verdict == "unknown" and c.name in ({"interfaces", "routes", "relay"} & must_hold)
    )
    netns = found.get("netns")
    return Certificate(
        mode=mode,
        checks=tuple(checks),
        holes=holes + unproved,
        vsock=sealed and "AF_VSOCK" in _open_families(found),
        netns=netns if isinstance(netns, int) and not isinstance(netns, bool) else None,
        probe_ms=_milliseconds(found.get("ms")),
        raw=found,
    )


def _interfaces(found: dict[str, Any]) -> Check:
    entries = found.get("interfaces")
    if not isinstance(entries, list) or not entries or not all(map(_is_interface, entries)):
        return Check("interfaces", "unknown", "the network interfaces could not be listed")
    addressed = [
        str(e.get("name", "?"))[:32]
        for e in entries
        if not all(is_loopback(address) for address in e["addresses"])
    ]
    if addressed:
        return Check("interfaces", "open", f"it has an address on {', '.join(addressed)}")
    return Check("interfaces", "closed", "no address but loopback's")


def _is_interface(entry: Any) -> bool:
    addresses = entry.get("addresses") if isinstance(entry, dict) else None
    return isinstance(addresses, list) and all(isinstance(a, str) for a in addresses)


def _routes(found: dict[str, Any]) -> Check:
    tables = found.get("routes")
    # a kernel without one of the two protocols says None of it
    lists = [t for t in tables.values() if t is not None] if isinstance(tables, dict) else []
    if not lists or not all(isinstance(each, list) for each in lists):
        return Check("routes", "unknown", "the routes could not be listed")
    count = sum(len(each) for each in lists)
    if count:
        return Check("routes", "open", f"it has {count} route(s) out")
    return Check("routes", "closed", "no route out")


def _name(found: dict[str, Any]) -> Check:
    dns = found.get("dns")
    if not isinstance(dns, dict) or not isinstance(dns.get("resolved"), bool):
        return Check("dns", "unknown", "a name look-up could not be tried")
    if dns["resolved"]:
        return Check("dns", "open", "a made-up name resolves, so look-ups leave the box")
    took = _milliseconds(dns.get("ms"))
    spoken = "" if took is None else f" after {took:.0f} ms"
    return Check("dns", "closed", f"a made-up name does not resolve, and fails{spoken}")


def _targets(found: dict[str, Any], name: str, what: str) -> Check:
    tried = found.get(name)
    tried = [tried] if isinstance(tried, dict) else tried
    entries: list[Any] = tried if isinstance(tried, list) else [None]
    sound = all(isinstance(t, dict) and isinstance(t.get("open"), bool) for t in entries)
    if not sound or (not entries and name != "neighbours"):
        return Check(name, "unknown", f"{what}: could not be tried")
    if not entries:
        return Check(name, "closed", "no neighbouring container was there to be tried")
    reached = [f"{t.get('address')!s:.45}:{t.get('port')!s:.5}" for t in entries if _answers(t)]
    if reached:
        return Check(name, "open", f"{what}: answers at {', '.join(reached[:4])}")
    return Check(name, "closed", f"{what}: no answer ({len(entries)} tried)")


def _answers(tried: dict[str, Any]) -> bool:
    """A refused connection is an answer too: the way there exists, only the port is closed."""
    return tried.get("open") is True or tried.get("error") == "ECONNREFUSED"


def _milliseconds(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < 1e9 else None


def _ipv6(found: dict[str, Any]) -> Check:
    seen = found.get("ipv6")
    if not isinstance(seen, dict) or not isinstance(seen.get("open"), bool):
        return Check("ipv6", "unknown", "IPv6 could not be tried")
    if seen["open"]:
        return Check("ipv6", "open", "an IPv6 address outside can be reached")
    return Check("ipv6", "closed", "no IPv6 way out")


def _open_families(found: dict[str, Any]) -> list[str]:
    families = found.get("families")
    if not isinstance(families, dict):
        return []
    return sorted(str(name)[:32] for name, opens in families.items() if opens is True)


def _families(found: dict[str, Any]) -> Check:
    if not isinstance(found.get("families"), dict):
        return Check("families", "unknown", "the socket families could not be tried")
    strange = [name for name in _open_families(found) if name not in HARMLESS_FAMILIES]
    if strange:
        return Check("families", "open", f"sockets of {', '.join(strange)} can be opened")
    return Check("families", "closed", "no socket family but IP, Unix and netlink opens")


def _relay(found: dict[str, Any]) -> Check:
    relay = found.get("relay")
    status = relay.get("status_without_token") if isinstance(relay, dict) else None
    if status == 401:
        return Check("relay", "closed", "the relay answers, and refuses whoever has no token")
    if isinstance(status, int) and not isinstance(status, bool):
        return Check("relay", "open", f"the relay answers {status} to whoever has no token")
    return Check("relay", "unknown", "the relay could not be reached through the link")


def same_namespace(certificate: Certificate, pid: int | None) -> bool | None:
    """Whether process `pid` lives in the probed namespace; None when this cannot be looked up."""
    if pid is None or certificate.netns is None:
        return None
    try:
        return Path(f"/proc/{pid}/ns/net").stat().st_ino == certificate.netns
    except OSError:
        return None


def with_namespace_check(certificate: Certificate) -> Certificate:
    """The certificate, now that the agent was seen in the probed namespace."""
    check = Check("namespace", "closed", "the agent runs in the network namespace that was probed")
    return replace(certificate, checks=(*certificate.checks, check))


def namespace_checked(certificate: Certificate) -> Certificate:
    """The certificate of a run that went on: a namespace that was not seen leaves a doubt."""
    if any(check.name == "namespace" for check in certificate.checks):
        return certificate
    sentence = "the agent's network namespace could not be looked at while it ran"
    return replace(
        certificate, checks=(*certificate.checks, Check("namespace", "unknown", sentence))
    )
