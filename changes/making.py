"""Making an attempt: an agent's run on a throw-away clone, and what came of it put at the gate."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, NoReturn

from django.conf import settings

from changes import batching, gate
from changes.asking import Options, ask
from changes.attempt import Attempting, Over, execute_here
from changes.attempts import Lost
from changes.models import Change
from runs import lease
from runs.console import Console, Silent
from runs.holding import Holding
from runs.interrupts import Interrupts
from runs.models import Run
from runs.plan import Plan
from runs.refusal import Refusal
from runs.verdicts import Person

__all__ = ["Options", "ask", "make", "revise", "session"]

RunInBox = Callable[[Run, Plan, Console, Interrupts], Run]


def make(uid: str, owner: str = "", tell: Console | None = None) -> Change:
    """Make the first attempt of a queued change in this process; its row as it is then.

    It never raises because of the agent, its files or its run: the change is `failed` then, with
    the reason, and a change that another process took, that its batch has no room for now, or
    that is over, is returned as it is. Ctrl-C during the run ends it as `failed` too; before and
    after it the change is ended and KeyboardInterrupt goes on.

    Args:
        owner: this process, as `runs.lease.owner` names it, which is the default.
        tell: where progress and the agent's trace go.
    """
    return _first(uid, owner or lease.owner(), tell or Silent(), execute_here)


def session(uid: str, tell: Console | None = None, run_in_box: RunInBox = execute_here) -> Change:
    """Make the attempt of a `shell` change: a person works in the box, and however that ends what
    is in the clone goes to the gate.

    Args:
        tell: such as `runs.console.BesideShell`.
        run_in_box: executes the claimed run in this process and returns its ended row.
    """
    return _first(uid, lease.owner(), tell or Silent(), run_in_box)


def revise(uid: str, person: Person, task: str, tell: Console | None = None) -> Change:
    """Make another attempt, on top of the one that is reviewed; it stays unless this one succeeds.

    Raises Refusal: the change is not in review, or the task is empty.
    """
    owner = lease.owner()
    with _stoppable():
        lease_s = settings.SANDUK_LEASE_SECONDS
        change = gate.revise(uid, person, task, owner=owner, lease_s=lease_s)
        _live(change, owner, task, tell or Silent(), execute_here)
    return found(uid)


def found(uid: str) -> Change:
    """A change by its whole id. Raises Refusal."""
    change = Change.objects.select_related("repository", "attempt", "run").filter(uid=uid).first()
    if change is None:
        raise Refusal(f"there is no change {uid}; sanduk change list shows them")
    return change


def _first(uid: str, owner: str, tell: Console, run_in_box: RunInBox) -> Change:
    change = found(uid)
    with _stoppable():
        if batching.claim(change, owner):
            change = found(uid)
            _live(change, owner, change.task, tell, run_in_box)
    return found(uid)


def _live(change: Change, owner: str, task: str, tell: Console, run_in_box: RunInBox) -> None:
    """Make the attempt that this process holds; whatever breaks it off is written down."""
    with _held(change, owner) as hold:
        attempting = Attempting(change, owner, task, hold, tell, run_in_box)
        try:
            attempting.make()
        except Over as over:
            attempting.end(over.state, over.reason)
        except Lost:
            tell.warn(f"{change} was ended by another process meanwhile")
        except (SystemExit, KeyboardInterrupt):
            attempting.end(Change.State.FAILED, "cancelled: this process was told to stop")
            raise
        except BaseException as exc:
            attempting.end(Change.State.FAILED, f"sanduk itself failed: {type(exc).__name__}")
            raise


def _held(change: Change, owner: str) -> Holding:
    def renew() -> bool:
        return Change.objects.renew(change.pk, owner, settings.SANDUK_LEASE_SECONDS)

    def stop_run() -> None:
        running = Run.objects.live().filter(changes=change.pk)
        for uid in running.values_list("uid", flat=True):
            Run.objects.request_stop(uid, "sanduk, whose hold on the change was lost")

    return Holding(f"change-{change.pk}", renew, stop_run)


@contextlib.contextmanager
def _stoppable() -> Iterator[None]:
    """SIGTERM and SIGHUP are exceptions before and after a run; there they end nothing else."""
    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGHUP):
            before[number] = signal.getsignal(number)
            if before[number] == signal.SIG_DFL:
                signal.signal(number, _stop)
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)
