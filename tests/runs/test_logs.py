"""`sanduk logs`: the trace and the calls of a run, followed or afterwards."""

from __future__ import annotations

import datetime as dt
import json

import pytest

from runs import clock, retention
from runs.management.commands import sanduk_logs
from runs.models import RelayCall, Run, RunEvent
from runs.refusal import Refusal
from tests.factories import make_run

pytestmark = pytest.mark.django_db


def logs(run: str = "", **flags) -> int:
    return sanduk_logs.Command().act(
        **{"run": run, "follow": False, "calls": False, "json": False, **flags}
    )


def event(run: Run, number: int, text: str) -> None:
    RunEvent.objects.create(run=run, sequence=number, at=clock.now(), kind="text", text=text)


def call(run: Run, number: int, **fields) -> RelayCall:
    began = clock.now()
    return RelayCall.objects.create(
        run=run, sequence=number, method="POST", path="/v1/messages", started_at=began,
        ended_at=began + dt.timedelta(seconds=1), status=200, protocol="anthropic-messages",
        model_asked="m-1", input_tokens=12, output_tokens=3, **fields,
    )  # fmt: skip


def test_without_a_name_the_newest_live_run_is_taken(capsys):
    live = make_run(state="running")
    event(live, 1, "still at it")
    event(make_run(state="ended"), 1, "newer, and over")

    assert logs() == 0
    told = capsys.readouterr()
    assert "still at it" in told.out
    assert live.uid in told.err


def test_without_a_live_run_the_last_one_is_taken(capsys):
    event(make_run(state="ended"), 1, "older")
    event(make_run(state="ended"), 1, "newest")
    logs()

    assert "newest" in capsys.readouterr().out


def test_without_any_run_it_says_how_to_get_one():
    with pytest.raises(Refusal, match="no runs yet; try: sanduk run"):
        logs()


def test_following_prints_each_line_once_and_ends_with_the_run(capsys, monkeypatch):
    run = make_run(state="running", started_at=clock.now())
    event(run, 1, "first\x1b[2J")

    def meanwhile(_seconds: float) -> None:
        event(run, 2, "second")
        Run.objects.filter(pk=run.pk).update(
            state="ended", outcome="succeeded", ended_at=clock.now(), lease_until=None
        )

    monkeypatch.setattr(sanduk_logs.time, "sleep", meanwhile)
    assert logs(run.uid, follow=True) == 0
    told = capsys.readouterr()
    assert [line.split()[-1] for line in told.out.splitlines()] == ["first\\x1b[2J", "second"]
    assert f"run {run.uid} succeeded" in told.err


def test_calls_are_a_line_each_with_a_digest_of_what_was_sent(capsys):
    run = make_run(state="ended", order={"log_bodies": True})
    call(run, 1, cost_usd=0.5, cost_kind="exact")
    call(run, 2, refusal="allow-model")
    place = retention.bodies_of(run)
    place.mkdir(parents=True)
    (place / "calls.log").write_text("0001 2.0 KiB model=m-1 messages=4 stream=yes\ngarbage\n")

    assert logs(run.uid, calls=True) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert "1 POST /v1/messages 200 1.00 s m-1 12 in, 3 out $0.5000 exact" in first
    assert first.endswith("| sent 2.0 KiB model=m-1 messages=4 stream=yes")
    assert second.endswith("| allow-model")


def test_a_run_with_nothing_to_tell_says_so(capsys):
    run = make_run(state="ended")
    logs(run.uid)
    assert capsys.readouterr().err.endswith("sanduk: nothing\n")


def test_for_a_script_each_line_is_an_object(capsys):
    run = make_run(state="ended")
    event(run, 1, "one\ntwo \x1b[2J")
    call(run, 1)

    assert logs(run.uid, json=True) == 0
    row = json.loads(capsys.readouterr().out)
    assert (row["sequence"], row["kind"], row["text"]) == (1, "text", "one\ntwo \x1b[2J")
    assert logs(run.uid, json=True, calls=True) == 0
    row = json.loads(capsys.readouterr().out)
    assert (row["status"], row["path"], row["sent"]) == (200, "/v1/messages", "")
