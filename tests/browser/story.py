"""A small team's site on an ordinary morning, for the pictures in the documents."""

from __future__ import annotations

import datetime as dt

from django.contrib.auth import get_user_model

from assistants import outbox
from assistants.config import Config
from assistants.models import Assistant, Destination, InboxMessage, OutboxItem, Wakeup
from runs import clock, pulse
from runs.models import RelayCall, Run, RunEvent
from tests.factories import make_assistant, make_run, make_schedule, make_wakeup

DIGEST = """# Morning digest

Three things in the inbox need an answer today.

1. **The printer's invoice** is due on Friday; the sum differs from the order by 40.
2. The **hall** is free on the 12th. They hold it until noon.
3. Mira asks whether the minutes may go to the list.

Everything else is filed. The full list is at [the board](https://board.example.org/today).
"""
_SHAPED_LIKE_A_KEY = "sk-ant-api03-" + "x4Kq" * 20
NOTES = f"""# Release notes, draft

- `export` writes the zone of every date.
- An empty list is no error any more.
- The nightly job used the key {_SHAPED_LIKE_A_KEY}
"""
LIST = {"to": "team@lists.example.org", "sender": "sanduk@example.org"}
TRACE = (
    ("step", "sealed container started; the probe found loopback and the relay, nothing else"),
    ("text", "I read the two messages and my notes of yesterday first."),
    ("tool", "read notes.md"),
    ("tool", "grep -rn 'TODO' src | head"),
    ("text", "Four places are left over from last week. I check whether each still holds."),
    ("tool", "python3 -m pytest -q tests/test_export.py"),
    ("note", "12 passed in 0.8 s"),
    ("text", "The export is fine. I write down what changed since the last release."),
)


def tell() -> dict[str, str]:
    """Put it in. Returns the paths of the pages to show, by the names of their pictures."""
    for each in ("worker", "tick"):
        pulse.stamp(each)
    now = clock.now()
    desk, notes, caretaker = (
        _assistant(name) for name in ("front-desk", "release-notes", "caretaker")
    )
    for each, hours in ((desk, 21), (notes, 2), (caretaker, 6)):
        make_schedule(each, cron="30 7 * * *", next_at=now + dt.timedelta(hours=hours))
    place = Destination.objects.create(name="team-list", kind="email", config=LIST)
    place.assistants.add(desk, notes)
    for day in range(1, 14):
        _ended(caretaker, now - dt.timedelta(days=day), 0.04 + day * 7 % 5 / 40)
    author = get_user_model().objects.first()
    InboxMessage.objects.create(
        assistant=caretaker, body="The tap drips again.", source="web", author=author
    )
    item = _wants(desk, DIGEST, minutes=42)
    _wants(notes, NOTES, minutes=11)
    return {
        "home": "/",
        "gate": f"/outbox/{item.pk}/",
        "run-live": f"/runs/{_live(caretaker).uid}/",
    }


def _assistant(name: str) -> Assistant:
    config = Config(agent="claude", provider="anthropic", daily_budget_usd=1.0)
    return make_assistant(name, config=config)


def _ended(assistant: Assistant, at: dt.datetime, usd: float, report: str = "") -> Wakeup:
    run = make_run(
        state="ended", agent="claude", provider="anthropic", model="claude-sonnet",
        created_at=at, started_at=at, ended_at=at + dt.timedelta(minutes=2), spent_usd=usd,
        spent_tokens=int(usd * 90_000), calls_relayed=4, report=report, report_state="saved",
        report_bytes=len(report.encode()), task="Follow the brief.",
        certificate={"headline": "Sealed: nothing but its relay could be reached.", "checks": []},
    )  # fmt: skip
    _call(run, 1, at, usd)
    return make_wakeup(assistant, state="ended", run=run, planned_at=at)


def _call(run: Run, sequence: int, at: dt.datetime, usd: float) -> None:
    RelayCall.objects.create(
        run=run, sequence=sequence, method="POST", path="/v1/messages", status=200, completed=True,
        protocol="anthropic-messages", model_asked="claude-sonnet", started_at=at,
        ended_at=at + dt.timedelta(seconds=3), input_tokens=2600, output_tokens=440,
        cache_read_tokens=1800, cost_usd=usd, cost_kind="exact",
    )  # fmt: skip


def _wants(assistant: Assistant, body: str, *, minutes: int) -> OutboxItem:
    at = clock.now() - dt.timedelta(minutes=minutes)
    item = outbox.write(_ended(assistant, at, 0.06, body), body, Config(hold=True))
    OutboxItem.objects.filter(pk=item.pk).update(created_at=at)
    return item


def _live(assistant: Assistant) -> Run:
    began = clock.now() - dt.timedelta(seconds=95)
    checks = [
        ("closed", "It has no network interface but loopback."),
        ("closed", "A name it made up does not resolve."),
        ("closed", "None of this host's addresses answered."),
        ("closed", "The relay refuses a call without the run's token."),
    ]
    certificate = {
        "headline": "Sealed: nothing but its relay could be reached.",
        "checks": [{"verdict": verdict, "sentence": words} for verdict, words in checks],
    }
    run = make_run(
        state="running", agent="claude", provider="anthropic", model="claude-sonnet",
        created_at=began - dt.timedelta(seconds=3), claimed_at=began - dt.timedelta(seconds=2),
        started_at=began, first_call_at=began + dt.timedelta(seconds=4),
        spent_usd=0.0312, spent_tokens=9120, calls_relayed=3, task="Follow the brief.",
        certificate=certificate, order={"timeout_s": 900, "budget_usd": 0.5}, trigger="schedule",
    )  # fmt: skip
    make_wakeup(assistant, state="running", run=run)
    for sequence in (1, 2, 3):
        _call(run, sequence, began + dt.timedelta(seconds=20 * sequence - 16), 0.0104)
    for sequence, (kind, text) in enumerate(TRACE, 1):
        at = began + dt.timedelta(seconds=10 * sequence)
        RunEvent.objects.create(run=run, sequence=sequence, kind=kind, at=at, text=text)
    return run
