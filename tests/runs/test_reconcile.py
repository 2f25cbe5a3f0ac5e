"""Lost runs are ended, leftovers removed; live runs, kept containers and strangers are spared."""

from __future__ import annotations

import datetime as dt
import os
import socket
import time
from pathlib import Path

import pytest

from runs import box, clock, installation, locality, locks, narration, reconcile, shown
from runs.engines.base import EngineError
from runs.leftovers import FORGOTTEN_S, SETTLED_S, Removed
from runs.management.terminal import SandukCommand
from runs.models import Run, RunEvent
from runs.models.run import State
from runs.signals import run_ended
from tests.factories import make_run
from tests.runs.fake_engine import FakeEngine

pytestmark = pytest.mark.django_db
ALIVE, GONE = "alive", "gone"


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> FakeEngine:
    found = FakeEngine()
    monkeypatch.setattr(reconcile, "get_engine", lambda name: found)
    monkeypatch.setattr(
        reconcile, "owner_is", lambda name: name if name in (ALIVE, GONE) else "unknown"
    )
    return found


@pytest.fixture(autouse=True)
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "runtime").mkdir()
    monkeypatch.setattr(box, "runtime_directory", lambda: tmp_path / "runtime")
    return tmp_path / "runtime"


@pytest.fixture
def install(state: Path) -> str:
    installation.prepare_home()
    return installation.install_id()


@pytest.fixture
def told():
    heard: list[Run] = []

    def listen(sender, run, **_):
        heard.append(run)

    run_ended.connect(listen)
    yield heard
    run_ended.disconnect(listen)


def test_a_run_whose_process_is_gone_is_ended_and_its_things_removed(
    engine, install, told, runtime
):
    run = make_run(state="running", lease_owner=GONE)
    engine.add("agent", install=install, run=run.uid)
    engine.add("link", install=install, run=run.uid)
    engine.nets["net"] = {"sanduk.install": install, "sanduk.run": run.uid}
    (runtime / run.uid).mkdir()

    done = reconcile.reconcile()

    run.refresh_from_db()
    assert (run.state, run.outcome, run.exit_code) == (State.ENDED, "interrupted", 143)
    assert (engine.rows, engine.nets) == ({}, {})
    assert not (runtime / run.uid).exists()
    assert (done.ended, done.troubles) == ([run.uid], [])
    assert done.removed == Removed(containers=2, networks=1)
    assert [each.uid for each in told] == [run.uid]


def test_a_killed_run_is_not_said_to_have_lasted_until_it_was_found(engine, install, settings):
    settings.SANDUK_LEASE_SECONDS = 30
    now = clock.now()
    began = now - dt.timedelta(minutes=5)
    run = make_run(
        state="running", lease_owner=GONE, started_at=began,
        lease_until=began + dt.timedelta(seconds=2 + 30),  # renewed once, after 2 s
    )  # fmt: skip
    later = make_run(
        state="running", lease_owner=GONE, started_at=began,
        lease_until=began + dt.timedelta(seconds=2 + 30),
    )  # fmt: skip
    RunEvent.objects.create(
        run=later, sequence=1, kind="text", text="x", at=began + dt.timedelta(seconds=3)
    )
    ahead = make_run(
        state="running", lease_owner=GONE, started_at=began,
        lease_until=now + dt.timedelta(hours=1),  # by a clock that was wrong
    )  # fmt: skip

    reconcile.reconcile()

    for each in (run, later, ahead):
        each.refresh_from_db()
    assert (run.duration_s, shown.took(run)) == (2.0, "≥ 2.0 s")
    assert shown.took(later) == "≥ 3.0 s"
    assert ahead.ended_at <= clock.now()
    told = narration.as_json(run)
    assert (told["duration_s"], told["duration_is_lower_bound"]) == (2.0, True)
    assert "≥ 2.0 s" in narration.last_word(run)


@pytest.mark.parametrize("owner", [ALIVE, "elsewhere"])
def test_a_run_that_may_be_alive_is_left_alone_and_no_engine_is_asked(engine, install, owner):
    run = make_run(state="running", lease_owner=owner)

    assert reconcile.reconcile().ended == []

    run.refresh_from_db()
    assert run.state == State.RUNNING
    assert engine.calls == []


@pytest.mark.parametrize("failing", ["containers", "remove", "networks"])
def test_when_the_engine_cannot_be_asked_nothing_is_concluded(engine, install, told, failing):
    """agents-sandbox#173."""
    run = make_run(state="running", lease_owner=GONE)
    engine.add("agent", install=install, run=run.uid)
    engine.failing.add(failing)

    done = reconcile.reconcile()

    run.refresh_from_db()
    assert run.state == State.RUNNING
    assert done.ended == []
    assert "is lost, but its engine does not answer" in done.troubles[0]
    assert told == []


def test_a_container_that_stays_keeps_its_run_from_being_ended(engine, install):
    run = make_run(state="running", lease_owner=GONE)
    engine.deaf.add(engine.add("agent", install=install, run=run.uid))

    done = reconcile.reconcile()

    run.refresh_from_db()
    assert run.state == State.RUNNING
    assert "still lists agent" in done.troubles[0]


def test_a_run_that_knew_its_outcome_keeps_it(engine, install):
    run = make_run(state="ending", lease_owner=GONE, outcome="succeeded", exit_code=0)

    reconcile.reconcile()

    run.refresh_from_db()
    assert (run.state, run.outcome, run.exit_code) == (State.ENDED, "succeeded", 0)


def test_what_a_lost_run_kept_stays(engine, install):
    run = make_run(state="ending", lease_owner=GONE, outcome="failed", kept_container="kept")
    engine.add("kept", install=install, run=run.uid)
    engine.add("link", install=install, run=run.uid)

    reconcile.reconcile()

    run.refresh_from_db()
    assert run.state == State.ENDED
    assert set(engine.rows) == {"kept", "link"}


@pytest.mark.parametrize("place", ["there", "gone"])
def test_a_persons_own_report_is_given_back(engine, install, tmp_path: Path, place):
    """L-7, after a kill -9."""
    work = tmp_path / "work"
    run = make_run(
        state="running",
        lease_owner=GONE,
        workspace=str(work),
        displaced_report="REPORT.before-x.md",
    )
    if place == "there":
        work.mkdir()
        (work / "REPORT.before-x.md").write_text("mine")

    reconcile.reconcile()

    run.refresh_from_db()
    assert run.state == State.ENDED
    if place == "there":
        assert (work / "REPORT.md").read_text() == "mine"
        assert run.displaced_report == ""
    else:
        assert run.displaced_report == "REPORT.before-x.md"


def test_what_somebody_else_removed_meanwhile_is_no_trouble(engine, install):
    run = make_run(state="running", lease_owner=GONE)
    engine.add("agent", install=install, run=run.uid)

    async def gone_already(containers):
        engine.rows.clear()
        raise EngineError("it is not known")

    engine.remove = gone_already

    done = reconcile.reconcile()

    assert (done.ended, done.troubles) == ([run.uid], [])


def test_the_terminal_tells_how_a_lost_run_ended(engine, install, capsys):
    run = make_run(state="ending", lease_owner=GONE, outcome="refused", exit_code=2)

    SandukCommand()._end_lost_runs()

    told = capsys.readouterr().err
    assert f"run {run.uid} had lost its process; it is ended as refused" in told
    assert "interrupted" not in told


# -- sweeping ----------------------------------------------------------------------------------


def test_sweeping_removes_only_what_is_ours_and_belongs_to_no_live_run(engine, install):
    """L-14: a user's own `sanduk-db` container was deleted by its name."""
    live = make_run(state="running", lease_owner=ALIVE)
    ended = make_run(state="ended")
    kept = make_run(state="ended", kept_container="kept")
    engine.add("live", install=install, run=live.uid)
    engine.add("kept", install=install, run=kept.uid)
    engine.add("left", install=install, run=ended.uid)
    engine.add("unknown", install=install, run="ffffffffffff")
    engine.add("theirs", install="another", run=ended.uid)
    engine.add("sanduk-db")
    engine.nets["live"] = {"sanduk.install": install, "sanduk.run": live.uid}
    engine.nets["left"] = {"sanduk.install": install, "sanduk.run": ended.uid}
    engine.nets["theirs"] = {"sanduk.install": "another"}

    done = reconcile.sweep(engine)

    assert set(engine.rows) == {"live", "kept", "theirs", "sanduk-db"}
    assert set(engine.nets) == {"live", "theirs"}
    assert (done.removed, done.troubles) == (Removed(containers=2, networks=1), [])


def test_cleaning_removes_kept_containers_too_and_forgets_them(engine, install):
    kept = make_run(state="ended", kept_container="kept")
    live = make_run(state="running", lease_owner=ALIVE, kept_container="its")
    engine.add("kept", install=install, run=kept.uid)
    engine.add("its", install=install, run=live.uid)

    reconcile.sweep(engine, kept_too=True)

    assert set(engine.rows) == {"its"}
    kept.refresh_from_db()
    live.refresh_from_db()
    assert (kept.kept_container, live.kept_container) == ("", "its")


def test_a_sweep_that_fails_says_so_and_forgets_nothing(engine, install):
    """L-14: any failure printed as "nothing there"."""
    kept = make_run(state="ended", kept_container="kept")
    engine.failing.add("containers")

    done = reconcile.sweep(engine, kept_too=True)

    kept.refresh_from_db()
    assert kept.kept_container == "kept"
    assert len(done.troubles) == 1


def test_a_sweep_on_an_engine_that_is_down_says_what_helps(engine, install):
    engine.failing |= {"containers", "ready"}

    done = reconcile.sweep(engine)

    assert done.troubles == ["the daemon does not answer (ready)"]


# -- what is left outside of containers ----------------------------------------------------------


def left_by_a_probe(engine: FakeEngine, install: str) -> Path:
    """What a probe that was killed leaves."""
    engine.add("probe", install=install, role="probe")
    engine.images["ours"] = {"sanduk.install": install, "sanduk.role": "probe"}
    engine.images["another's"] = {"sanduk.install": "another", "sanduk.role": "probe"}
    engine.images["a built one"] = {"sanduk.install": install, "sanduk.role": "image"}
    directory = locality.probe_directory()
    (directory / "probe-1").mkdir(parents=True)
    return directory


def test_sweeping_removes_all_that_a_killed_probe_left(engine, install):
    directory = left_by_a_probe(engine, install)

    done = reconcile.sweep(engine)

    assert engine.rows == {}
    assert set(engine.images) == {"another's", "a built one"}
    assert not directory.exists()
    assert (done.removed, done.troubles) == (Removed(containers=1, images=1), [])


def test_sweeping_leaves_a_probe_that_is_under_way(engine, install):
    directory = left_by_a_probe(engine, install)

    with locks.held_if_free(locality.PROBE_LOCK) as free:
        assert free
        done = reconcile.sweep(engine)

    assert set(engine.rows) == {"probe"}
    assert "ours" in engine.images
    assert directory.exists()
    assert done.removed == Removed()


def aged(directory: Path, age_s: float) -> Path:
    os.utime(directory, (time.time() - age_s,) * 2)
    return directory


@pytest.mark.parametrize(
    ("state", "age_s", "stays"),
    [
        ("ended", 2 * SETTLED_S, False),
        ("ended", 0, True),
        ("running", 2 * FORGOTTEN_S, True),
        ("unknown", 2 * SETTLED_S, True),  # perhaps of another installation
        ("unknown", 2 * FORGOTTEN_S, False),
    ],
)
def test_a_runs_directory_goes_when_no_live_run_can_need_it(
    engine, install, runtime, state, age_s, stays
):
    unknown = "0123456789ab"
    uid = unknown if state == "unknown" else make_run(state=state, lease_owner=ALIVE).uid
    (runtime / uid).mkdir()
    (runtime / uid / "env").write_text("")
    aged(runtime / uid, age_s)

    reconcile.sweep(engine)

    assert (runtime / uid).exists() is stays


@pytest.mark.parametrize("listens", [True, False])
def test_a_directory_of_another_installation_stays_while_its_relay_listens(
    engine, install, runtime, monkeypatch, listens
):
    theirs = runtime / "0123456789ab"
    theirs.mkdir()
    monkeypatch.chdir(theirs)
    with socket.socket(socket.AF_UNIX) as relay:
        relay.bind("relay.sock")
        if listens:
            relay.listen(1)
        aged(theirs, 2 * FORGOTTEN_S if listens else 2 * SETTLED_S)

        reconcile.sweep(engine)

    assert theirs.exists() is listens


def test_what_is_no_runs_directory_is_left_alone(engine, install, runtime, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (runtime / "0123456789ab").symlink_to(tmp_path / "elsewhere")
    (runtime / "something").mkdir()
    aged(runtime / "something", 2 * FORGOTTEN_S)

    reconcile.sweep(engine)

    assert (tmp_path / "elsewhere").exists()
    assert (runtime / "something").exists()


@pytest.mark.parametrize(("provider", "is_least"), [("rehearsal", False), ("openai", True)])
def test_what_a_lost_run_cost_is_a_lower_bound_unless_its_provider_is_free(
    engine, install, provider, is_least
):
    run = make_run(
        state="running", lease_owner=GONE, started_at=clock.now(), mode="sealed", provider=provider,
    )  # fmt: skip
    reconcile.reconcile()
    run.refresh_from_db()
    assert (run.outcome, run.spent_usd, run.spent_is_lower_bound) == ("interrupted", 0, is_least)
