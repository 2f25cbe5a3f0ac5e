"""Whose words a reason is made of: sanduk's own, or what an agent said in the middle of them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from runs.models import Run
from runs.models.run import Outcome
from runs.outcome import LAST_WORDS, OWN_OF_AGENTS, spoken

# only these ends repeat what an agent said of itself, or printed
_REPEATING = frozenset({Outcome.FAILED, Outcome.NEEDS_INPUT, Outcome.RATE_LIMITED})
_SILENT = re.compile(r"the agent exited with -?\d+ and no terminal record")
_OURS = re.compile(
    r"sanduk itself failed: \w+"
    r"|the agent reported success, but its container exited with -?\d+"
)


@dataclass(frozen=True, slots=True)
class Words:
    """A sentence in up to three parts.

    Args:
        own: sanduk's, or a person's.
        quoted: an agent's.
        rest: sanduk's again.
    """

    own: str = ""
    quoted: str = ""
    rest: str = ""

    def __bool__(self) -> bool:
        return bool(self.own or self.quoted or self.rest)


def of_run(outcome: str, reason: str) -> Words:
    """The reason of a run's end, as `outcome.decide` makes it."""
    if outcome not in _REPEATING or reason in OWN_OF_AGENTS or _OURS.fullmatch(reason):
        return Words(reason)
    begun, mark, said = reason.partition(LAST_WORDS)
    if _SILENT.fullmatch(begun):
        return Words(begun + mark, said)
    return Words("", reason)


def repeated(text: str, prefix: str, outcome: str, reason: str) -> Words:
    """A text that says a run's reason again behind `prefix`, and may go on in our words.

    What it could hold of an agent's words is never taken for ours, also where it was cut.
    """
    said = of_run(outcome, reason)
    if not said.quoted:
        return Words(text)
    if not text.startswith(prefix):
        return Words("", text)
    begin = len(prefix) + len(said.own)
    end = begin + len(said.quoted)
    return Words(text[:begin], text[begin:end], text[end:])


def of_change(text: str, run: Run | None) -> Words:
    """Why a change came to nothing: its run's end in a sentence, or something of our own."""
    if run is None or text == "":
        return Words(text)
    return repeated(text, f"run {run.uid} {spoken(run.outcome)}: ", run.outcome, run.reason)
