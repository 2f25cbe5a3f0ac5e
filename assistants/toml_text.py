"""Writing `assistant.toml`: how an assistant leaves. What is written reads back as the same."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from assistants.config import Config
from assistants.keys import DESTINATIONS, KEYS, NAME, SCHEDULE_KEYS, SCHEDULE_NAMES, SCHEDULES
from assistants.schedules import Timing

_ALWAYS = ("approval", "memory_review")  # leaving them out is a decision, so they are said
_USUAL_EVERY_S = 1800


def written(
    name: str, config: Config, timings: Iterable[Timing], destinations: Iterable[str]
) -> str:
    """A whole document. Keys at what leaving them out means are left out."""
    stored = {key.field: getattr(config, key.field) for key in KEYS if hasattr(config, key.field)}
    lines = [f"{NAME} = {_value(name)}"]
    for key in KEYS:
        if key.name in (NAME, *SCHEDULE_NAMES):
            continue
        value = (tuple(destinations) or None) if key.name == DESTINATIONS else stored[key.field]
        if value != key.absent or key.name in _ALWAYS:
            lines.append(f"{key.name} = {_value(key.kind.write(value))}")
    tables = [_schedule(timing) for timing in timings]
    if len(tables) == 1:
        return "\n".join([lines[0], *tables[0], *lines[1:]]) + "\n"
    for table in tables:
        lines += ["", f"[[{SCHEDULES}]]", *table]
    return "\n".join(lines) + "\n"


def _schedule(timing: Timing) -> list[str]:
    lines = []
    for key in SCHEDULE_KEYS:
        if key.name == "missed":
            value: Any = (timing.missed, timing.missed_within_s)
        else:
            value = getattr(timing, key.field)
        if value != key.absent:
            lines.append(f"{key.name} = {_value(key.kind.write(value))}")
    return lines


def _value(value: Any) -> str:
    """One value in TOML's notation."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # JSON's strings are TOML's, but for a character JSON lets stand
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(each) for each in value) + "]"
    return repr(value)
