"""Making an attempt: an agent's run on a throw-away clone, and what came of it put at the gate."""

from __future__ import annotations

from collections.abc import Callable

from changes.asking import Options, ask
from changes.models import Change
from runs.console import Console
from runs.models import Run
from runs.plan import Plan
from runs.verdicts import Person

__all__ = ["Options", "ask", "make", "revise", "session"]


def make(uid: str, owner: str = "", tell: Console | None = None) -> Change:
    """Make the first attempt of a queued change in this process; its row as it is then.

    It never raises because of the agent, its files or its run: the change is `failed` then, with
    the reason, and a change that another process took, or that is over, is returned as it is.
    Ctrl-C during the run ends it as `failed` too; before and after it the change is ended and
    KeyboardInterrupt goes on.

    Args:
        owner: this process, as `runs.lease.owner` names it, which is the default.
        tell: where progress and the agent's trace go.
    """
    raise NotImplementedError


def revise(uid: str, person: Person, task: str, tell: Console | None = None) -> Change:
    """Make another attempt, on top of the one that is reviewed; it stays unless this one succeeds.

    Raises Refusal: the change is not in review, or the task is empty.
    """
    raise NotImplementedError


def session(uid: str, run_in_box: Callable[[Plan], Run], tell: Console | None = None) -> Change:
    """Make the attempt of a `shell` change: a person works in the box, and however that ends what
    is in the clone goes to the gate.

    Args:
        run_in_box: runs the plan to its end in this process and returns the ended row, as
            `runs.lifecycle.run_here` does; the row is written by `runs.lifecycle.start_here`.
    """
    raise NotImplementedError
