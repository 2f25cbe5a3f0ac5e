"""How a run ended, decided from everything that was seen. Pure: no clock, no engine, no rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from runs.agents.base import Result
from runs.models.run import Outcome

Halt = Literal["cancelled", "interrupted", "timed_out", "stalled", "link_lost", "lease_lost"]


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen of one run.

    Args:
        halt: why we ended it ourselves; None when the container ended by itself.
        halt_reason: that in words.
        exit_code: of the container, from `inspect`; None when it could not be asked.
        oom_killed: the engine's flag. It alone proves nothing: a child may have died.
        result: the agent's own terminal record, or None.
        checks_calls: this agent must have completed a relayed call to have succeeded.
        calls_completed: how many the relay saw complete.
        memory: the limit, for the sentence.
    exhausted: the relay refused a call because the budget had nothing left; in words.
    last_words: the last line of the container's standard error, printable.
    not_started: why the engine could not start the container; "" when it did.
    """

    halt: Halt | None = None
    halt_reason: str = ""
    exit_code: int | None = None
    oom_killed: bool = False
    result: Result | None = None
    checks_calls: bool = False
    calls_completed: int = 0
    memory: str = ""
    exhausted: str = ""
    last_words: str = ""
    not_started: str = ""


HALTED = {
    "cancelled": Outcome.CANCELLED,
    "interrupted": Outcome.INTERRUPTED,
    "timed_out": Outcome.TIMED_OUT,
    "stalled": Outcome.STALLED,
    "link_lost": Outcome.INTERRUPTED,
    "lease_lost": Outcome.INTERRUPTED,
}


LAST_WORDS = "; its last words: "
_WAITS, _LIMITED = "the agent waits for an answer", "the provider's rate limit"
_FAILED = "the agent reported a failure"
_UNSEEN = "the agent reported success, but the relay saw no completed model call"
# what is said in the place of an agent that says nothing
OWN_OF_AGENTS = frozenset({_WAITS, _LIMITED, _FAILED, _UNSEEN})


def spoken(outcome: str) -> str:
    return outcome.replace("_", " ")


def decide(seen: Seen) -> tuple[Outcome, str]:
    """The outcome and one sentence. An exit status alone never means interrupted or cancelled."""
    if seen.halt is not None:
        return HALTED[seen.halt], seen.halt_reason
    if seen.not_started:
        return Outcome.REFUSED, f"the container did not start: {seen.not_started}"
    if seen.exit_code is None:
        return Outcome.INTERRUPTED, "the engine no longer knows the container"
    if seen.oom_killed and seen.exit_code == 137:
        return Outcome.OUT_OF_MEMORY, f"the container used up its {seen.memory} of memory"
    if seen.exhausted:  # whatever the agent says of it: the work was cut short
        claims = bool(seen.result and seen.result.ok and seen.exit_code == 0)
        told = "; the agent reported success all the same" if claims else ""
        return Outcome.BUDGET_EXHAUSTED, f"{seen.exhausted}{told}"
    if seen.result is None:
        words = f"{LAST_WORDS}{seen.last_words}" if seen.last_words else ""
        return Outcome.FAILED, f"{_without_record(seen.exit_code)}{words}"
    return _by_record(seen, seen.result)


def _without_record(exit_code: int) -> str:
    return f"the agent exited with {exit_code} and no terminal record"


def _by_record(seen: Seen, result: Result) -> tuple[Outcome, str]:
    if result.needs_input:
        return Outcome.NEEDS_INPUT, result.error or _WAITS
    if result.rate_limited and not result.ok:
        return Outcome.RATE_LIMITED, result.error or _LIMITED
    if not result.ok:
        return Outcome.FAILED, result.error or _FAILED
    if seen.exit_code != 0:
        return (
            Outcome.FAILED,
            f"the agent reported success, but its container exited with {seen.exit_code}",
        )
    if seen.checks_calls and not seen.calls_completed:
        return Outcome.FAILED, _UNSEEN
    return Outcome.SUCCEEDED, ""
