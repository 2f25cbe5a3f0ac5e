"""Leaving tests to the worker, and ending those whose process is gone."""

from __future__ import annotations

import datetime as dt
import tempfile
from pathlib import Path

from django.db import transaction

from changes import fresh, rules, testing
from changes.models import Change, TestRun
from changes.testing import Asked
from runs import clock, queue
from runs.models import Run
from runs.refusal import Refusal
from runs.verdicts import Person

WORK = "changes.testing_later.work"
UNHEARD = dt.timedelta(minutes=10)  # a worker that took it has long begun
SETTLING = dt.timedelta(seconds=30)  # between the end of a run and what its process writes of it
GONE = "the process that ran it is gone"


def ask(change: Change, person: Person, command: str = "") -> TestRun:
    """Have the worker run the tests; the row that waits, or the one that goes on already.

    Raises Refusal as `changes.testing.test`: what can be refused is refused at once.
    """
    wanted = testing.asked(change.uid, command)
    with tempfile.TemporaryDirectory() as nowhere:
        plan = testing.plan_of(wanted, Path(nowhere))
    with transaction.atomic():
        same = TestRun.objects.filter(
            digest=wanted.attempt.digest, command=wanted.command, outcome=""
        )
        if (going := same.first()) is not None:
            return going
        row: TestRun = TestRun.objects.create(
            attempt=wanted.attempt,
            digest=wanted.attempt.digest,
            command=wanted.command,
            requested_by=person.user,
            requested_as="" if person.user is not None else person.account,
        )
        queue.ring(WORK, row.pk, cluster=queue.RUNS, limit_s=plan.order.timeout_s)
    return row


def work(number: int) -> str:
    """What a worker does with a row that waits: its outcome, or "not ours"."""
    said = "stopped"
    with queue.told_to_stop():
        said = _worked(number)
    return said


def look() -> int:
    """End the tests that nobody runs any more, and remove what they left; how many ended.

    Each is `not_run`: what was not seen to be green is not.
    """
    now = clock.now()
    open_ = TestRun.objects.filter(outcome="").select_related("run")
    ended = 0
    for row in open_:
        why = _lost(row, now)
        if why and TestRun.objects.finish(row.pk, TestRun.Outcome.NOT_RUN, reason=why):
            ended += 1
    fresh.remove_left()
    return ended


def _lost(row: TestRun, now: dt.datetime) -> str:
    """Why nobody runs it; "" when somebody does, or may yet."""
    if row.run is None:
        if now - row.started_at < UNHEARD or row.pk in queue.hanging(queue.RUNS, WORK):
            return ""
        return "no worker took it"
    if row.run.state != Run.State.ENDED:
        return ""  # its lease says whether it is lost
    if row.run.end_is_lower_bound:
        return row.run.reason or GONE
    ended_at = row.run.ended_at or now
    return GONE if now - ended_at > SETTLING else ""


def _worked(number: int) -> str:
    rows = TestRun.objects.select_related("attempt__change__repository", "requested_by")
    row = rows.filter(pk=number, run=None, outcome="").first()
    if row is None:
        return "not ours"
    person = Person(user=row.requested_by, account=row.requested_as, via="web")
    change = row.attempt.change
    try:
        said = rules.of(change.repository.uid)
        wanted = Asked(change, row.attempt, row.command, said)
        return testing.carried_out(wanted, person, row=row).outcome
    except testing.Taken:
        return "not ours"
    except Refusal as exc:
        _not_run(row, str(exc))
        return "refused"
    except Exception as exc:
        _not_run(row, f"sanduk itself failed: {type(exc).__name__}")
        raise


def _not_run(row: TestRun, why: str) -> None:
    TestRun.objects.finish(row.pk, TestRun.Outcome.NOT_RUN, reason=why[:2000])
