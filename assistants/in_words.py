"""An assistant's schedules and settings in words, for pages; as its file has them on hover."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from assistants import schedules
from assistants.keys import spoken

_DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_FIXED = re.compile(r"(\d{1,2}) (\d{1,2}) (\*|\d{1,2}) \* (\*|[0-7](?:[,-][0-7])*)")
_NAMES = {
    "timeout": "time limit",
    "idle_timeout": "silence limit",
    "allow_hosts": "further hosts",
    "args": "further flags",
    "runtime": "engine",
    "gate": "program asked first",
    "gate_timeout": "time limit of that",
    "overlap": "a slot while it still works",
    "max_failures": "failures in a row that disable it",
    "budget": "budget of a wakeup",
    "daily_budget": "budget of a day",
    "approval": "what it wants to send",
    "approvals": "people who must approve",
    "exclude_author": "who told or woke it",
    "expires": "undecided items expire after",
    "memory_review": "what it remembers",
    "memory_max_mb": "most that it remembers, in MB",
    "deliver_failures": "a failure",
}
_SAID = {
    ("approval", "true"): "waits for a decision",
    ("approval", "false"): "is sent without a decision",
    ("exclude_author", "true"): "does not approve it",
    ("exclude_author", "false"): "may approve it",
    ("memory_review", "true"): "is reviewed first",
    ("memory_review", "false"): "is used as it is",
    ("deliver_failures", "true"): "is sent, too",
    ("deliver_failures", "false"): "is not sent",
    ("overlap", "skip"): "is left out",
    ("overlap", "wait"): "waits",
}


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: what it is called and is, and the same as the file has it."""

    name: str
    value: str
    raw: str


def settings(pairs: Iterable[tuple[str, str]]) -> list[Setting]:
    """In words.

    Args:
        pairs: keys of the file, and their values in its spelling.
    """
    return [
        Setting(
            _NAMES.get(key, key.replace("_", " ")), _SAID.get((key, value), value), f"{key} {value}"
        )
        for key, value in pairs
    ]


def schedule(timing: schedules.Timing) -> str:
    """When it is woken, and what becomes of a slot that was missed."""
    when = f"every {spoken(timing.every_s)}" if timing.every_s else _of_cron(timing.cron)
    zone = "" if timing.every_s and not timing.quiet_hours else f" ({timing.timezone})"
    words = [f"{when}{zone}", _missed(timing)]
    if timing.jitter_s:
        words.append(f"up to {spoken(timing.jitter_s)} later")
    if timing.quiet_hours:
        words.append(f"not within {timing.quiet_hours}")
    return ", ".join(words)


def _missed(timing: schedules.Timing) -> str:
    if timing.missed == schedules.SKIP:
        return "a missed one is left out"
    if timing.missed_within_s:
        return f"a missed one is made up for within {spoken(timing.missed_within_s)}"
    return "missed ones are made up for once"


def _of_cron(text: str) -> str:
    """The usual ones in words; the others as they are."""
    found = _FIXED.fullmatch(" ".join(text.split()))
    if found is None or (found[3] != "*" and found[4] != "*"):
        return f"by the rule {text}"
    time = f"at {int(found[2]):02}:{int(found[1]):02}"
    if found[3] != "*":
        return f"{time} on day {found[3]} of each month"
    if found[4] == "*":
        return f"{time} every day"
    parts = [
        " to ".join(_DAYS[int(day)] for day in part.split("-")) for part in found[4].split(",")
    ]
    return f"{time} on {', '.join(parts)}"
