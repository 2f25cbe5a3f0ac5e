"""Request bodies go by age and by size, over all runs; what was there is still told."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path

import pytest

from relay.bodies import kept_calls, removed_on
from runs import clock, retention
from runs.management.commands import sanduk_clean, sanduk_show
from runs.models import RelayCall, Run
from runs.reconcile import Reconciled, reconcile
from runs.refusal import Refusal
from tests.factories import make_run

pytestmark = pytest.mark.django_db
DAY = 86400.0


@pytest.fixture(autouse=True)
def home(state: Path, settings) -> Path:
    settings.SANDUK_BODIES_MAX_DAYS = 30
    settings.SANDUK_BODIES_MAX_MB = 1000
    state.mkdir()
    return state


def logged(*ages_days: float, size: int = 1000, state: str = "ended", **order) -> Run:
    """A run whose call 1, 2, … was written so many days ago."""
    run = make_run(state=state, order={"log_bodies": True, **order})
    place = retention.bodies_of(run)
    place.mkdir(parents=True)
    for number, age in enumerate(ages_days, 1):
        RelayCall.objects.create(
            run=run, sequence=number, method="POST", path="/v1/messages", started_at=clock.now()
        )
        for name, content in ((f"{number:04d}.json", b"x" * size),
                              (f"{number:04d}.outcome.json", b"{}")):  # fmt: skip
            (place / name).write_bytes(content)
            os.utime(place / name, (time.time() - age * DAY,) * 2)
    (place / "calls.log").write_text(
        "".join(f"{number:04d} 1.0 KiB model=m\n" for number in range(1, len(ages_days) + 1))
    )
    return run


def left(run: Run) -> list[int]:
    return sorted(call.sequence for call in kept_calls(retention.bodies_of(run)))


def show(run: Run, number: int, *, as_json: bool = False) -> int:
    return sanduk_show.Command().act(run=run.uid, call=number, json=as_json)


def test_what_is_too_old_goes_and_the_rest_stays():
    one, other = logged(31, 29), logged(45, 1)
    done = retention.apply()

    assert (left(one), left(other)) == ([2], [2])
    assert (done.calls, done.troubles) == (2, [])
    assert done.size == 2 * 1002


def test_the_oldest_of_all_runs_make_room(settings):
    settings.SANDUK_BODIES_MAX_MB = 1
    one, other = logged(3, 1, size=400_000), logged(2, 0, size=400_000)
    retention.apply()

    assert (left(one), left(other)) == ([2], [2])


def test_the_log_of_a_live_run_counts_and_is_left_alone(settings):
    settings.SANDUK_BODIES_MAX_MB = 1
    live, ended = logged(40, 40, size=600_000, state="running"), logged(1, size=1000)
    retention.apply()

    assert (left(live), left(ended)) == ([1, 2], [])


def test_logs_that_were_put_elsewhere_are_kept_no_longer(tmp_path: Path):
    (tmp_path / "logs").mkdir()
    run = logged(31, log_dir=str(tmp_path / "logs"))
    mine = tmp_path / "logs" / run.uid / "notes.json"
    mine.write_text("somebody's own")
    os.utime(mine, (1, 1))
    retention.apply()

    assert left(run) == []
    assert mine.exists()


def test_show_says_when_a_body_was_removed(capsys):
    run = logged(31, 1)
    retention.apply()
    today = f"{clock.now():%Y-%m-%d}"

    assert removed_on(retention.bodies_of(run), 1) == today
    assert show(run, 1) == 0
    out = capsys.readouterr().out
    assert f"its body was removed by retention on {today}" in out
    assert "POST /v1/messages" in out
    assert show(run, 2) == 0
    assert "x" * 1000 in capsys.readouterr().out


def test_show_tells_a_body_that_made_room_from_one_that_was_never_kept(capsys):
    run = logged(1)
    (retention.bodies_of(run) / "0001.json").unlink()
    assert show(run, 1) == 0
    assert "made room for later ones" in capsys.readouterr().out
    never = make_run(state="ended")
    RelayCall.objects.create(run=never, sequence=1, method="POST", path="/", started_at=clock.now())
    with pytest.raises(Refusal, match="run with --log-bodies"):
        show(never, 1)
    with pytest.raises(Refusal, match="has no call 7: its last one is 1"):
        show(run, 7)
    with pytest.raises(Refusal, match="has no call 7: its last one is 1"):
        show(never, 7)
    with pytest.raises(Refusal, match="has no call 1: it made none"):
        show(make_run(state="ended"), 1)


def test_a_log_that_somebody_removed_is_named(capsys):
    run = logged(1)
    RelayCall.objects.filter(run=run).update(bytes_in=5)
    directory = retention.bodies_of(run)
    (directory / "calls.log").unlink()
    (directory / "0001.json").unlink()

    show(run, 1)
    assert f"its body is not in {directory}" in capsys.readouterr().out
    shutil.rmtree(directory)
    show(run, 1)
    assert f"gone with {directory}, which is not there any more" in capsys.readouterr().out


def test_one_call_as_json_is_one_document(capsys):
    run = logged(1)
    assert show(run, 1, as_json=True) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["call"]["sequence"] == 1
    assert told["body"] == "x" * len(told["body"])
    assert told["no_body"] == ""

    (retention.bodies_of(run) / "0001.json").unlink()
    show(run, 1, as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert told["body"] is None
    assert told["no_body"] == "its body made room for later ones"


def test_a_refused_call_has_no_body_and_is_shown_all_the_same(capsys):
    run = logged(1)
    RelayCall.objects.create(
        run=run, sequence=2, method="POST", path="/v1/x", refusal="path", started_at=clock.now()
    )

    assert show(run, 2) == 0
    assert "the relay refused it, so no body was sent on" in capsys.readouterr().out


def test_reconciling_applies_it_once_an_hour(home: Path):
    first = logged(31)
    reconcile()
    second = logged(31)
    reconcile()

    assert (left(first), left(second)) == ([], [1])
    os.utime(home / "retention", (time.time() - 3601,) * 2)
    reconcile()
    assert left(second) == []


def test_a_mark_of_the_future_holds_nothing_up(home: Path):
    run = logged(31)
    (home / "retention").touch()
    os.utime(home / "retention", (time.time() + 7 * DAY,) * 2)
    reconcile()

    assert left(run) == []


def test_a_directory_that_is_a_link_is_told_and_not_followed(tmp_path: Path):
    run = logged(31)
    place = retention.bodies_of(run)
    place.rename(tmp_path / "elsewhere")
    place.symlink_to(tmp_path / "elsewhere")
    done = retention.apply()

    assert (tmp_path / "elsewhere" / "0001.json").exists()
    assert len(done.troubles) == 1
    assert run.uid in done.troubles[0]


def test_clean_applies_it_at_once(monkeypatch, capsys, home: Path):
    retention.apply()
    run = logged(31)
    monkeypatch.setattr(sanduk_clean, "sweep", lambda *_, **__: Reconciled())
    monkeypatch.setattr(sanduk_clean, "get_engine", lambda _: None)

    assert sanduk_clean.Command().act(all=False, runtime="", quiet=False, json=False) == 0
    assert "the bodies of 1 call(s) removed by retention" in capsys.readouterr().err
    assert left(run) == []


def test_without_a_state_directory_nothing_happens(settings, tmp_path: Path):
    settings.SANDUK_HOME = tmp_path / "none"

    assert retention.apply_if_due().calls == 0
    assert not (tmp_path / "none").exists()
