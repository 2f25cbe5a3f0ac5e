"""Leaving an attempt to a worker, or to a process of its own, instead of making it here."""

from __future__ import annotations

from runs.verdicts import Person


def give(uid: str) -> bool:
    """Have a running worker make a queued change. False: there is none that would make it as this
    process would; the change is queued still, see `beside`.
    """
    raise NotImplementedError


def beside(uid: str) -> None:
    """Make a queued change in a process of its own, which outlives this one.

    Raises Refusal when it did not start.
    """
    raise NotImplementedError


def give_revision(uid: str, person: Person, task: str) -> bool:
    """Have a running worker make another attempt of a reviewed change. False: as `give`.

    Raises Refusal: the change is not in review, or the task is empty.
    """
    raise NotImplementedError


def cancel(uid: str, by: str) -> str:
    """End an attempt that waits or is being made, whoever makes it.

    Returns "cancelled" (it had not begun), "asked" (its process ends it now) or "" (nothing to
    end). An attempt that was there before is reviewed again.
    """
    raise NotImplementedError
