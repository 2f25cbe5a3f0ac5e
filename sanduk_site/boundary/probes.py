"""Every probe of the suite by name, with what it says when it held, and what its verdict may be."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

Verdict = Literal["held", "broken", "not tried"]


@dataclass(frozen=True, slots=True)
class Probe:
    """Args:
    name: as `--json` has it.
    holds: what is so when it held, as a sentence.
    """

    name: str
    holds: str


@dataclass(frozen=True, slots=True)
class Finding:
    """What became of one probe; `why` says what got through, or why it was not tried."""

    name: str
    verdict: Verdict
    sentence: str
    why: str = ""

    def as_data(self) -> dict[str, Any]:
        return asdict(self)


PROBES = tuple(
    Probe(name, holds)
    for name, holds in (
        ("host_secrets", "no file of the host's, no key and no account of it is in the box"),
        ("repository", "the host's repository is reached by no path, mount or inode"),
        ("push", "git cannot push to the host's repository"),
        ("exfiltration", "nothing can be sent out: no route, no answer"),
        ("names", "no name resolves, and look-ups fail at once"),
        ("engine_socket", "no engine's socket, and no other socket of the host's, is there"),
        ("privileges", "not root, no capability, no way to more: no mount, no namespace"),
        ("seccomp", "our filter of system calls is on and refuses what it should"),
        ("devices", "no device but the harmless ones, and none can be made"),
        ("limits", "memory and processes are limited"),
        ("clone", "the clone holds its branch alone: no remote, no hook, no borrowed object"),
        ("destroyed", "after a hostile run the host is as it was, and nothing of the box is left"),
        ("agent", "the agent's program runs in the box"),
        ("record", "the run is on record with its seal, where no box can write"),
        ("key", "no key of a provider's is in the box, whatever a program there reads"),
        ("base_url", "the model's address is the relay, which asks for the run's token"),
        ("door_refuses", "the egress door refuses what is not on its list"),
        ("door_allows", "the egress door connects what is on its list"),
        ("browser", "a browser in the image answers in the box"),
        ("browser_reach", "that browser reaches no more than the box does"),
        ("browser_gone", "that browser is gone with the box"),
        ("patch", "a hostile tree is read and landed exactly, and no trap in it springs"),
        ("artifact", "hostile artifacts are refused by name, and no link of theirs is followed"),
        ("gateway", "no address of the host answers at any port, and there is no gateway"),
        ("neighbour", "another box cannot be reached or seen"),
        ("allowed_call", "an allowed call goes through, with the key put in on the host"),
        ("streaming", "a streamed answer arrives as it is sent, byte for byte"),
    )
)
BY_NAME = {probe.name: probe for probe in PROBES}


def held(name: str) -> Finding:
    return Finding(name, "held", BY_NAME[name].holds)


def broken(name: str, reached: list[str]) -> Finding:
    more = f" (and {len(reached) - 4} more)" if len(reached) > 4 else ""
    return Finding(name, "broken", BY_NAME[name].holds, "; ".join(reached[:4]) + more)


def not_tried(name: str, why: str) -> Finding:
    return Finding(name, "not tried", BY_NAME[name].holds, why)


def judged(name: str, reached: list[str], untried: str = "") -> Finding:
    """What got through counts, even where the rest could not be tried."""
    if reached:
        return broken(name, reached)
    return not_tried(name, untried) if untried else held(name)
