"""The keys of `assistant.toml`: what each takes, what it means, and what leaving it out means."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from runs import duration
from runs.order import MODES

YEAR_S = 366 * 86400
_SMALLEST_USD = 0.000001  # as it is handed to a run
_DURATION = "a duration"
_UNITS = (("d", 86400), ("h", 3600), ("m", 60))


class WrongValue(ValueError):
    """What a key takes, and what it was given instead."""


@dataclass(frozen=True, slots=True)
class Kind:
    """How a value is read, strictly, and written again."""

    takes: str
    read: Callable[[Any], Any]
    write: Callable[[Any], Any] = lambda value: value


@dataclass(frozen=True, slots=True)
class Key:
    """Args:
    field: of Config, or of a schedule's Timing; "" for one that is neither.
    absent: what leaving it out amounts to, as stored. For an old file this is the old meaning.
    default: the same as the page of documents says it.
    """

    name: str
    kind: Kind
    field: str
    absent: Any
    default: str
    meaning: str


def _typed(value: Any) -> str:
    """What was given, in TOML's words."""
    names = {bool: "true or false", str: "a string", int: "a whole number", float: "a number",
             list: "a list", dict: "a table"}  # fmt: skip
    name = names.get(type(value), "a date or time")
    return f"{name}: {str(value)[:60]!r}" if isinstance(value, str) else name


def _refuse(takes: str, value: Any) -> WrongValue:
    return WrongValue(f"it takes {takes}, not {_typed(value)}")


def _text(takes: str = "a string") -> Kind:
    def read(value: Any) -> str:
        if not isinstance(value, str):
            raise _refuse(takes, value)
        if not value.strip():
            raise WrongValue("it is empty; leave the key out instead")
        if not value.isprintable():
            raise WrongValue("it holds a line feed or a control character")
        return value

    return Kind(takes, read)


def _texts(takes: str, *, once: bool = False) -> Kind:
    def read(value: Any) -> tuple[str, ...]:
        if not isinstance(value, list):
            raise _refuse(takes, value)
        for each in value:
            if not isinstance(each, str) or not each:
                raise WrongValue(f"it takes {takes}; one of its items is {_typed(each)}")
            if "\0" in each:
                raise WrongValue("one of its items holds a NUL character")
        twice = next((each for each in value if value.count(each) > 1), None)
        if once and twice is not None:
            raise WrongValue(f"{twice!r} is in it twice")
        return tuple(value)

    return Kind(takes, read, list)


def _flag() -> Kind:
    takes = "true or false, without quotes"

    def read(value: Any) -> bool:
        if not isinstance(value, bool):
            raise _refuse(takes, value)
        return value

    return Kind(takes, read)


def _whole(low: int, high: int) -> Kind:
    takes = f"a whole number from {low} to {high:,}"

    def read(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise _refuse(takes, value)
        if not low <= value <= high:
            raise WrongValue(f"it takes {takes}, not {value}")
        return value

    return Kind(takes, read)


def _money() -> Kind:
    takes = "US dollars above 0, as 0.50"

    def read(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise _refuse(takes, value)
        if not (math.isfinite(value) and 0 < value < 10**9):
            raise WrongValue(f"it takes {takes}, not {value}")
        if value < _SMALLEST_USD:
            raise WrongValue(f"it takes {takes}, and no less than a millionth of one, not {value}")
        return float(value)

    return Kind(takes, read)


def _duration(
    longest_s: int = duration.LONGEST_S, *, off: bool = False, zero: bool = False
) -> Kind:
    takes = f'{_DURATION} such as 90, "90s", "15m", "2h" or "7d"' + (', or "off"' if off else "")

    def read(value: Any) -> int | None:
        if isinstance(value, bool) or not isinstance(value, int | str):
            raise _refuse(takes, value)
        if off and value == "off":
            return None
        if zero and str(value) in ("0", "0s"):
            return 0
        found = re.fullmatch(r"([0-9]{1,9})([smhd]?)", str(value).strip())
        if not found:
            raise WrongValue(f"it takes {takes}, not {value!r}")
        seconds = int(found[1]) * {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}[found[2]]
        if not 0 < seconds <= longest_s:
            raise WrongValue(f"it must be more than zero and at most {longest_s // 86400}d")
        return seconds

    return Kind(takes, read, lambda seconds: "off" if seconds is None else spoken(seconds))


def spoken(seconds: int) -> str:
    """`seconds` as this file's durations are written: 90s, 15m, 2h, 7d."""
    for unit, size in _UNITS:
        if seconds and seconds % size == 0:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def is_duration(key: Key) -> bool:
    return key.kind.takes.startswith(_DURATION)


def _choice(*names: str) -> Kind:
    takes = ", ".join(f'"{name}"' for name in names[:-1]) + f' or "{names[-1]}"'

    def read(value: Any) -> str:
        if not isinstance(value, str):
            raise _refuse(takes, value)
        if value not in names:
            raise WrongValue(f"it takes {takes}, not {value!r}")
        return value

    return Kind(takes, read)


def _missed() -> Kind:
    takes = '"skip", "once" or "once-if-younger-than 6h"'

    def read(value: Any) -> tuple[str, int | None]:
        if not isinstance(value, str):
            raise _refuse(takes, value)
        if value in ("skip", "once"):
            return value, None
        word, _, age = value.partition(" ")
        if word != "once-if-younger-than" or not age.strip():
            raise WrongValue(f"it takes {takes}, not {value!r}")
        return word, _duration(YEAR_S).read(age)

    def write(value: tuple[str, int | None]) -> str:
        word, age_s = value
        return f"{word} {spoken(age_s)}" if age_s else word

    return Kind(takes, read, write)


NAME, DESTINATIONS, PROXY, SCHEDULES = "name", "destinations", "proxy", "schedules"

SCHEDULE_KEYS = (
    Key("every", _duration(YEAR_S), "every_s", None, "`30m`, unless there is `cron`",
        "wake it so often, counted in real time from when it was added"),
    Key("cron", _text(), "cron", "", "", "wake it by a cron expression of five fields instead"),
    Key("timezone", _text(), "timezone", "UTC", "`UTC`",
        "whose clock `cron` and `quiet_hours` are read on, as `Europe/Berlin`"),
    Key("missed", _missed(), "missed", ("once", None), "`once`",
        "what becomes of slots the host slept through: `skip`, `once`, or "
        "`once-if-younger-than 6h`"),
    Key("jitter", _duration(86400, zero=True), "jitter_s", 0, "none",
        "start up to so much later, by an amount that is fixed for each slot; it is "
        "shorter than the time from any slot to the next"),
    Key("quiet_hours", _text(), "quiet_hours", "", "none",
        "no wakeups then, as `22:00-07:00`; a slot in them is recorded as quiet"),
)  # fmt: skip

KEYS = (
    Key(NAME, _text(), "", None, "the directory's name",
        "lower-case letters, digits and hyphens; one assistant per name"),
    Key("agent", _text(), "agent", "", "`codex`, or the recipe's", "one of `sanduk list agents`"),
    Key("recipe", _text(), "recipe", "", "the agent's",
        "a recipe's name, or its path from this directory"),
    Key("provider", _text(), "provider", "", "`openai`, or the first the agent can speak to",
        "one of `sanduk list providers`"),
    Key("model", _text(), "model", "", "the agent's", "a model's id"),
    Key("runtime", _text(), "runtime", "", "the first installed", "the container engine"),
    Key("mode", _choice(*MODES), "mode", "sealed", "`sealed`",
        "[which protection](modes.md); `open` is warned about"),
    Key("timeout", _duration(), "timeout_s", 900, "`15m`", "a wakeup's run is ended after this"),
    Key("idle_timeout", _duration(off=True), "idle_timeout_s", 600, "`10m`",
        "… or after so long without output or model traffic; `off`"),
    *SCHEDULE_KEYS,
    Key("overlap", _choice("skip", "wait"), "overlap", "skip", "`skip`",
        "what a slot does while the wakeup before it still runs"),
    Key("brief", _text(), "brief", "brief.md", "`brief.md`",
        "the task, a file of this directory that must be there"),
    Key("gate", _text(), "gate", "", "none",
        "a program of this directory; when it fails, the slot is skipped"),
    Key("gate_timeout", _duration(86400), "gate_timeout_s", 60, "`60s`", "how long that may take"),
    Key("max_failures", _whole(1, 1000), "max_failures", 3, "3",
        "so many failures in a row disable it"),
    Key("budget", _money(), "budget_usd", None, "none", "US dollars one wakeup may spend"),
    Key("daily_budget", _money(), "daily_budget_usd", None, "none",
        "US dollars all wakeups of one day may spend"),
    Key("allow_hosts", _texts("a list of strings, as [\"x.example\"]", once=True), "allow_hosts",
        (), "none",
        "hosts a sealed wakeup may reach, as `--allow-host`"),
    Key("mounts", _texts("a list of strings, as [\"~/data:/data\"]"), "mounts", (), "none",
        "directories lent to it, as `--mount`, from this directory"),
    Key("args", _texts("a list of strings, as [\"--effort\", \"high\"]"), "args", (), "none",
        "further flags of `sanduk run`"),
    Key("approval", _flag(), "hold", False, "`false` ¹",
        "what it wants to say waits until a person approves it"),
    Key("approvals", _whole(1, 20), "approvals", 1, "1", "so many people have to"),
    Key("exclude_author", _flag(), "exclude_author", False, "`false`",
        "whoever told it something does not count among them"),
    Key("expires", _duration(YEAR_S), "expires_s", None, "never",
        "what nobody decided on ends as expired after this"),
    Key(DESTINATIONS, _texts("a list of names, as [\"team-mail\"]", once=True), "", None,
        "those of `destination add --for`",
        "where approved items go: names from `sanduk destination list`"),
    Key("deliver_failures", _flag(), "deliver_failures", False, "`false`",
        "a failed wakeup puts something in the outbox, too"),
    Key("memory_review", _flag(), "memory_review", False, "`false` ¹",
        "the next wakeup starts from the last memory a person accepted"),
    Key("memory_max_mb", _whole(1, 1_000_000), "memory_max_mb", 512, "512",
        "how much of its workspace a snapshot keeps"),
)  # fmt: skip

BY_NAME = {key.name: key for key in KEYS}
SCHEDULE_NAMES = tuple(key.name for key in SCHEDULE_KEYS)


def table() -> str:
    """The keys as a table in Markdown, for docs/assistants.md."""
    lines = ["| key | when left out | meaning |", "|---|---|---|"]
    lines += [f"| `{key.name}` | {key.default} | {key.meaning} |" for key in KEYS]
    return "\n".join(lines) + "\n"
