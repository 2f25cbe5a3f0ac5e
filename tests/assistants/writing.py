"""What each of several processes does at once with one state directory, and the count of it all."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import itertools
import json
import secrets
import time
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User
from django.db import OperationalError, connections, transaction
from django.db.backends.signals import connection_created
from django.db.models import Count

from assistants import delivery, destinations, mailbox, outbox, ticking, wakeups
from assistants.delivery.kinds import FileSettings
from assistants.models import Assistant, Delivery, InboxMessage, OutboxItem, Wakeup
from relay import CallRecord
from runs import admission, audit, home, lease, recorder
from runs.models import AuditEvent, Decision, RelayCall, Run, RunEvent
from runs.recorder import Recorder
from runs.refusal import Refusal
from runs.verdicts import Person
from tests.assistants.waking import assistant_in
from tests.factories import make_schedule

EVENTS, CALLS = 30, 5  # of each run
APPROVALS = {"free": 0, "held": 1, "two-eyes": 2}
number = 0  # of this process
# what the database refused for another reason than a rule of the tables, in any thread
refused: list[str] = []


def _watch(sender: Any, connection: Any, **_: Any) -> None:
    def wrapper(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        try:
            return execute(sql, params, many, context)
        except OperationalError as exc:
            refused.append(f"{exc} in {sql[:200]}")
            raise

    connection.execute_wrappers.append(wrapper)


def begin(place: str) -> None:
    """A state directory with three assistants, each due every second, and six people."""
    home.prepare()
    for name, approvals in APPROVALS.items():
        one = assistant_in(
            Path(place), name=name, hold=bool(approvals), approvals=max(approvals, 1)
        )
        make_schedule(one, every_s=1)
    log = FileSettings(path=f"{place}/log")
    destinations.add("log", "file", log, timeout_s=20, assistants=APPROVALS)
    User.objects.bulk_create(User(username=f"person-{each}") for each in range(6))


def write(seconds: float) -> dict[str, list[Any]]:
    """Be one of them for so long; what this process believes to have done."""
    connections.close_all()
    connection_created.connect(_watch)
    admission.available_bytes = lambda: 2**40  # nothing is started
    wakeups.execute = _executed
    lease.BEAT_S = recorder.FLUSH_S = 0.05
    done: defaultdict[str, list[Any]] = defaultdict(list)
    user = User.objects.get(username=f"person-{number}")
    end = time.monotonic() + seconds
    for round_ in itertools.count():
        _tell(done, user, round_)
        _look(done)
        _claim(done)
        _decide(done, user)
        _change(done)
        done["sent"] += [delivery.deliver_due().sent]
        if time.monotonic() > end:
            break
    return {**done, "refused": refused}


def _tell(done: defaultdict[str, list[Any]], user: User, round_: int) -> None:
    """One message of this process's own, and one that all of them pass on."""
    assistant = Assistant.objects.order_by("pk")[round_ % len(APPROVALS)]
    for source_id in (f"{user.username}-{round_}", f"all-{round_}"):
        message, is_new = mailbox.tell(assistant, f"say {source_id}", source_id=source_id)
        done["told"] += [message.pk] if is_new else []


def _look(done: defaultdict[str, list[Any]]) -> None:
    rung: list[Wakeup] = []
    ticked = ticking.tick(rung.append)
    assert not ticked.troubles, ticked.troubles
    done["planned"] += ticked.planned
    done["skipped"] += ticked.skipped
    done["recovered"] += ticked.recovered
    _wake(done, [wakeup.pk for wakeup in rung])


def _claim(done: defaultdict[str, list[Any]]) -> None:
    """As if each bell had been heard by all: what waits is somebody else's as well."""
    _wake(done, Wakeup.objects.filter(state="waiting").values_list("pk", flat=True)[:2])


def _wake(done: defaultdict[str, list[Any]], numbers: Iterable[int]) -> None:
    done["woken"] += [pk for pk in numbers if wakeups.wake(pk) is not None]


def _executed(run: Run, plan: Any, console: Any) -> Run:
    """A run that ends at once, with what a real one writes down meanwhile."""
    asyncio.run(_recorded(run))
    report = f"report of {run.uid}"
    assert Run.objects.mark_ended(
        run.uid, lease.owner(), outcome="succeeded", exit_code=0, report_state="saved",
        report=report, report_sha256=hashlib.sha256(report.encode()).hexdigest(),
    )  # fmt: skip
    run.refresh_from_db()
    return run


async def _recorded(run: Run) -> None:
    writer = Recorder(run.pk)
    writer.start()
    lost: list[str] = []
    beat = lease.Heartbeat(
        run.uid, lease.owner(), on_stop=lost.append, on_lost=lambda: lost.append("lease")
    )
    beat.start()
    for line in range(1, EVENTS + 1):
        writer.event("text", f"line {line} of {run.uid}")
        if line % (EVENTS // CALLS) == 0:
            record = CallRecord(line, "POST", "/v1/messages", time.time(), completed=True)
            writer.call(record)
        await asyncio.sleep(0.01)
    await beat.stop()
    await writer.stop()
    assert (writer.failure, lost) == ("", [])


def _decide(done: defaultdict[str, list[Any]], user: User) -> None:
    """Say yes to whatever waits, or no to every fifth item, as all the others do."""
    person = Person(user=user, via="web")
    for pk in OutboxItem.objects.filter(state="pending").values_list("pk", flat=True)[:3]:
        verdict = Decision.Verdict.APPROVE if pk % 5 else Decision.Verdict.REJECT
        with contextlib.suppress(Refusal):  # somebody was faster, or has said so before
            outbox.decide(pk, verdict, person, reason="as agreed")
            done["decided"].append([pk, user.pk])


def _change(done: defaultdict[str, list[Any]]) -> None:
    """An assistant's row first, the audit after it, as by everything a person changes."""
    for pk in Assistant.objects.values_list("pk", flat=True):
        with transaction.atomic():
            Assistant.objects.filter(pk=pk).update(toml_sha256=secrets.token_hex(32))
            time.sleep(0.03)  # long enough for a wakeup of it to end meanwhile
            audit.record("assistant.change", f"assistant:{pk}")
        done["changed"].append(pk)


def count(place: str) -> dict[str, Any]:
    """What the tables and the file of the destination hold."""
    verified = audit.verify()
    lines = Path(place, "log").read_text().splitlines()
    given = InboxMessage.objects.filter(given_to__outcome="succeeded").annotate(Count("given_to"))
    return {
        "messages": list(InboxMessage.objects.values_list("pk", "source_id")),
        "consumed": InboxMessage.objects.exclude(consumed_at=None).count(),
        "answers": list(given.values_list("given_to__count", flat=True)),
        "wakeups": list(Wakeup.objects.values_list("pk", "trigger", "state", "outcome")),
        "events": {
            run.uid: list(run.events.values_list("sequence", "text")) for run in Run.objects.all()
        },
        "calls": list(RelayCall.objects.values("run").annotate(n=Count("pk")).values_list("n")),
        "counted": list(Run.objects.values_list("calls_relayed", "calls_completed")),
        "rows": [RunEvent.objects.count(), RelayCall.objects.count()],
        "items": list(OutboxItem.objects.values_list("pk", "assistant__name", "state", "body")),
        "decisions": list(Decision.objects.exclude(actor=None).values_list("subject", "actor")),
        "deliveries": list(Delivery.objects.values_list("item", "state", "attempts")),
        "lines": [json.loads(line)["item"] for line in lines],
        "audited": dict(AuditEvent.objects.values_list("action").annotate(Count("pk")).order_by()),
        "chain": [verified.events, list(verified.troubles), verified.unwitnessed],
    }
