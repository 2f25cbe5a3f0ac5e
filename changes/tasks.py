"""What the workers of the `runs` cluster are asked to do with a change."""

from __future__ import annotations

from changes import handover, making
from changes.models import Change
from runs import queue
from runs.console import Silent
from runs.refusal import Refusal
from runs.verdicts import Person


def make(number: int) -> str:
    """Make the attempt that waits of this change: the state it came to, or "not ours"."""
    said = "stopped"
    with queue.told_to_stop():
        said = _made(number)
    return said


def _made(number: int) -> str:
    change = Change.objects.filter(pk=number).select_related("wanted_by").first()
    if change is None:
        return "not ours"
    if change.state == Change.State.QUEUED:
        change = making.make(change.uid, tell=Silent())
    elif change.state == Change.State.REVIEW and change.wanted_task:
        who = change.wanted_by
        person = Person(who, change.wanted_as, via="web" if who is not None else "terminal")
        try:
            change = making.revise(change.uid, person, change.wanted_task, Silent())
        except Refusal:
            return "not ours"  # it was decided, or begun by somebody else, a moment ago
    else:
        return "not ours"
    if change.batch:
        handover.ring_next(change.batch)
    return str(change.state)
