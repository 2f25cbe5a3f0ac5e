"""What an assistant is told to be: every setting of it, as plain data, stored with its row."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Overlap = Literal["skip", "wait"]


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One assistant's settings. Times are seconds; money is USD. It holds no secret.

    The names are those of `assistant.toml`, whose durations are words ("30m"). When it is woken is
    in its schedules' rows.
    """

    agent: str = ""  # codex, unless `recipe` is set
    recipe: str = ""
    provider: str = "openai"
    model: str = ""
    runtime: str = ""
    mode: str = "sealed"
    timeout_s: int = 900
    idle_timeout_s: int | None = 600
    brief: str = "brief.md"  # relative to the directory
    gate: str = ""  # an executable relative to the directory; "": none
    gate_timeout_s: int = 60
    mounts: tuple[str, ...] = ()
    args: tuple[str, ...] = ()  # further flags of `sanduk run`, parsed when it is added
    allow_hosts: tuple[str, ...] = ()
    max_failures: int = 3
    overlap: Overlap = "skip"  # what a slot does while the wakeup before still runs
    budget_usd: float | None = None  # of one wakeup
    daily_budget_usd: float | None = None  # of all wakeups of one day of its first zone
    hold: bool = True  # `approval`: items wait for a person
    approvals: int = 1
    exclude_author: bool = False
    expires_s: int | None = None  # an undecided item ends as expired after this long
    memory_review: bool = True
    memory_max_mb: int = 512
    deliver_failures: bool = False

    def stored(self) -> dict[str, Any]:
        """What the row keeps."""
        kept: dict[str, Any] = msgspec.to_builtins(self)
        return kept


def restored(stored: dict[str, Any]) -> Config:
    """The settings in a row. Raises msgspec.ValidationError when they are of another version."""
    return msgspec.convert(stored, Config)
