"""Starting a run: one per workspace, written down before anything; refused, it leaves nothing."""

from __future__ import annotations

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from django.db import connections

from runs import admission, box, installation, lease, lifecycle
from runs.console import Silent
from runs.models import Run
from runs.models.run import State
from runs.order import Order
from runs.plan import Plan, make_plan
from runs.refusal import Refusal
from tests.accounts import open_directory
from tests.factories import make_run


@pytest.fixture(autouse=True)
def room(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, state: Path) -> Path:
    """A state directory, memory enough, and a runtime directory of the test's own."""
    installation.prepare_home()
    monkeypatch.setattr(admission, "available_bytes", lambda: 2**40)
    (tmp_path / "runtime").mkdir(mode=0o700)
    monkeypatch.setattr(box, "runtime_directory", lambda: tmp_path / "runtime")
    return tmp_path / "runtime"


def plan_for(workdir: Path, **fields) -> Plan:
    order = Order(
        task="look",
        agent="pi",
        provider="rehearsal",
        runtime="docker",
        workdir=str(workdir),
        **fields,
    )
    return make_plan(order)


@pytest.mark.django_db
def test_a_run_is_written_down_as_claimed_before_anything_starts(tmp_path: Path):
    run = lifecycle.start_here(plan_for(tmp_path / "w"))

    assert run.state == State.STARTING
    assert run.lease_owner == lease.owner()
    assert not (tmp_path / "w").exists()


@pytest.mark.django_db
@pytest.mark.parametrize("second", ["w", "w/sub", ".", "w/../w", "link"])
def test_a_second_run_in_the_same_or_a_nested_directory_is_refused_naming_the_first(
    tmp_path: Path, second
):
    """L-9, happyclaw#181."""
    (tmp_path / "link").symlink_to(tmp_path / "w")
    first = lifecycle.start_here(plan_for(tmp_path / "w"))
    with open_directory() as elsewhere:
        lifecycle.start_here(plan_for(elsewhere / "w"))

    other = Run.objects.create(
        agent="pi", mode="sealed", engine="docker", task="x",
        workspace=str((tmp_path / second).resolve()),
    )  # fmt: skip
    with pytest.raises(Refusal, match=f"run {first.uid} works in .*sanduk stop {first.uid}"):
        lifecycle.claim(other.uid)


@pytest.mark.django_db
@pytest.mark.parametrize("beside", ["work2", "wor", "other/work"])
def test_a_directory_that_is_only_called_alike_is_another(tmp_path: Path, beside):
    lifecycle.start_here(plan_for(tmp_path / "work"))

    assert lifecycle.start_here(plan_for(tmp_path / beside))


@pytest.mark.django_db
def test_an_ended_run_holds_nothing(tmp_path: Path):
    make_run(state="ended", workspace=str(tmp_path / "w"))
    make_run(state="queued", workspace=str(tmp_path / "w"))

    assert lifecycle.start_here(plan_for(tmp_path / "w"))


@pytest.mark.django_db(transaction=True)
def test_of_many_that_start_in_one_directory_at_once_one_wins(tmp_path: Path):
    plans = [plan_for(tmp_path / "w") for _ in range(4)]
    start = threading.Barrier(4)

    def one(plan: Plan) -> str:
        start.wait(timeout=10)
        try:
            return lifecycle.start_here(plan).uid
        except Refusal as exc:
            return str(exc)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as pool:
        said = list(pool.map(one, plans))

    [winner] = Run.objects.live().values_list("uid", flat=True)
    assert said.count(winner) == 1
    assert sum(f"sanduk stop {winner}" in line for line in said) == 3


@pytest.mark.django_db
def test_a_host_without_memory_to_give_refuses_before_anything(tmp_path, monkeypatch):
    """claude-code#75613: admission control."""
    monkeypatch.setattr(admission, "available_bytes", lambda: 2**30)

    with pytest.raises(Refusal, match=r"1\.0 GB of memory to give, and the run may take 4\.0 GB"):
        lifecycle.start_here(plan_for(tmp_path / "w"))
    assert not Run.objects.exists()


@pytest.mark.django_db
def test_a_run_stores_no_value_of_a_variable_it_only_passes_on(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("MINE", "canary")

    run = lifecycle.start_here(plan_for(tmp_path / "w", env_names=("MINE",)))

    assert "canary" not in str(Run.objects.filter(pk=run.pk).values().get())


@pytest.mark.django_db
def test_an_engine_of_somebodys_own_is_stored_as_it_was_asked_for(tmp_path: Path, settings):
    settings.SANDUK_RUNTIME = "tests.runs.fake_engine:FakeEngine"
    order = Order(task="x", agent="pi", provider="rehearsal", workdir=str(tmp_path / "w"))

    assert lifecycle.start_here(make_plan(order)).engine == settings.SANDUK_RUNTIME


@pytest.mark.django_db
def test_a_workspace_that_cannot_be_made_ends_as_refused_and_leaves_nothing(tmp_path, room):
    run = lifecycle.start_here(plan := plan_for(tmp_path / "w" / "sub"))
    (tmp_path / "w").touch()

    run = lifecycle.execute(run, plan, Silent())

    assert (run.state, run.outcome, run.exit_code) == (State.ENDED, "refused", 2)
    assert "cannot be created" in run.reason
    assert list(room.iterdir()) == []


@pytest.mark.django_db
@pytest.mark.parametrize("error", [OSError(30, "Read-only file system"), RuntimeError("a bug")])
def test_a_failure_before_the_loop_leaves_no_private_directory(tmp_path, room, monkeypatch, error):
    def fail(*_: object, **__: object) -> str:
        raise error

    monkeypatch.setattr(lifecycle.report, "set_aside", fail)
    run = lifecycle.start_here(plan := plan_for(tmp_path / "w"))

    known = isinstance(error, OSError)
    with contextlib.nullcontext() if known else pytest.raises(RuntimeError, match="a bug"):
        lifecycle.execute(run, plan, Silent())

    run.refresh_from_db()
    assert run.state == State.ENDED
    assert run.outcome == ("refused" if known else "failed")
    assert list(room.iterdir()) == []


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"state": "ended", "exit_code": 124}, 124),
        ({"state": "ended", "exit_code": 0}, 0),
        ({"state": "ending", "outcome": "succeeded"}, 1),
        ({"state": "ending", "outcome": "timed_out"}, 124),
        ({"state": "starting", "outcome": ""}, 1),
    ],
)
def test_a_command_exits_0_only_for_a_run_that_succeeded_and_left_nothing(fields, code):
    """L-3: a container that could not be removed was only noted, and the exit was 0."""
    assert lifecycle.exit_code(Run(**fields)) == code
