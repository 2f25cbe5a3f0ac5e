"""A small installation with something on every page, hostile wherever an agent can write."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group

from assistants import outbox
from assistants.models import (
    Assistant,
    Delivery,
    Destination,
    InboxMessage,
    MemorySnapshot,
    OutboxItem,
)
from runs import clock
from runs.models import EgressAttempt, RelayCall, Run, RunEvent
from tests.factories import make_assistant, make_run, make_schedule, make_wakeup

SCRIPT = "<script>alert('owned')</script>"
EVIL = (
    f"{SCRIPT} <img src=x onerror=alert(1)> [x](javascript:alert(1)) ![p](https://evil.example/p) "
    "\x1b[31mred\x1b[0m \u202etxet\u202c zero\u200bwidth {{ 7|add:7 }} {% load x %}"
)
# what must be on no page as it is
ACTING = ("<script>", "<img src=x", 'href="javascript:', " style=", "<style", ' onerror="')
HIDING = ("\x1b[", "\u202e", "\u200b")


@dataclass(frozen=True, slots=True)
class Place:
    """What is there."""

    assistant: Assistant
    run: Run
    live: Run
    item: OutboxItem
    snapshot: MemorySnapshot
    message: InboxMessage


def somebody(name: str, *given: str, **fields: Any) -> Any:
    """A site user with these roles."""
    user = get_user_model().objects.create_user(name, is_staff=True, **fields)
    user.groups.set(Group.objects.filter(name__in=given))
    return user


def make_item(assistant: Assistant, body: str, **fields: Any) -> OutboxItem:
    run = fields.pop("run", None) or make_run(state="ended", report=body, report_state="saved")
    wakeup = fields.pop("wakeup", None) or make_wakeup(assistant, state="ended", run=run)
    return OutboxItem.objects.create(
        assistant=assistant, wakeup=wakeup, body=body, sha256=outbox.digest_of(body), **fields
    )


def hostile_place() -> Place:
    """One of everything, with hostile text wherever a container's output can end."""
    now = clock.now()
    assistant = make_assistant("daily", disabled_at=now, disabled_reason=f"failed: {EVIL}"[:500])
    make_schedule(assistant, next_at=now + dt.timedelta(hours=1))
    place = Destination.objects.create(name="mail", kind="file", config={"path": "/srv/out"})
    assistant.destinations.add(place)
    run = make_run(
        state="ended", outcome="failed", reason=EVIL, report=f"# Title {EVIL}\n\n{EVIL}",
        report_state="saved", report_bytes=9, task=EVIL, model=EVIL[:200], started_at=now,
        certificate={"headline": EVIL,
                     "checks": [{"name": "n", "verdict": "open", "sentence": EVIL}]},
        order={"allow_hosts": [EVIL], "mounts": [EVIL], "env": {"NAME": "no-secret-value"}},
    )  # fmt: skip
    live = make_run(state="running", started_at=now, agent=f"agent {EVIL}"[:200])
    for each in (run, live):
        RunEvent.objects.create(
            run=each, sequence=1, at=now, kind="text", text=EVIL, detail=f"{EVIL}\nmore"
        )
    RelayCall.objects.create(
        run=run, sequence=1, method="POST", path=f"/v1/{EVIL}", protocol="openai",
        model_asked=EVIL[:200], status=403, refusal=EVIL, error=EVIL, started_at=now,
        raw_usage={"note": EVIL},
    )  # fmt: skip
    EgressAttempt.objects.create(
        run=run, sequence=1, host=EVIL[:300], port=443, allowed=False, reason=EVIL, flag=EVIL,
        started_at=now,
    )  # fmt: skip
    EgressAttempt.objects.create(
        run=run, sequence=2, host="api.example", port=443, allowed=False,
        flag="--allow-host api.example:443", started_at=now,
    )  # fmt: skip
    wakeup = make_wakeup(
        assistant, state="ended", run=run, outcome="failed", reason=EVIL, gate_output=EVIL
    )
    skipped = make_wakeup(assistant, state="ended", outcome="gate", reason=EVIL, gate_output=EVIL)
    item = make_item(assistant, f"# {EVIL}\n\n{EVIL}", run=run, wakeup=wakeup)
    sent = make_item(
        assistant, EVIL, wakeup=skipped, run=run, state="approved", decided_at=now,
        decided_by=EVIL[:300], reason=EVIL,
    )  # fmt: skip
    Delivery.objects.create(
        item=sent, destination=place, state="unknown", error=EVIL, output=EVIL, ended_at=now
    )
    snapshot = MemorySnapshot.objects.create(
        assistant=assistant, wakeup=wakeup, moment="after", digest="0" * 64, review="waiting",
        left_out=[{"path": EVIL, "why": EVIL}], reason=EVIL,
    )  # fmt: skip
    message = InboxMessage.objects.create(assistant=assistant, body=EVIL, account="root")
    return Place(assistant, run, live, item, snapshot, message)
