"""When a run is left to the worker: one is up, and nothing of the run depends on this shell."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django_q.models import OrmQ

from runs import handover, pulse, queue
from runs.bells import EXECUTE
from runs.locks import held_if_free
from runs.management import detach as detaching
from runs.models import Run
from runs.order import Order
from runs.plan import Plan, make_plan
from runs.refusal import Refusal
from tests.factories import make_run

pytestmark = pytest.mark.django_db


@pytest.fixture
def worker(state: Path) -> Iterator[None]:
    """One that is up, started where this test is."""
    with held_if_free(handover.LOCK) as free:
        assert free
        handover.announce()
        pulse.stamp("worker")
        yield


def plan_in(place: Path, **fields: Any) -> Plan:
    given = {"agent": "pi", "provider": "rehearsal", "runtime": "docker", **fields}
    return make_plan(Order(task="look", workdir=str(place / "w"), **given))


def test_a_worker_that_is_up_takes_a_run(tmp_path: Path, worker):
    assert handover.worker_takes(plan_in(tmp_path))


def test_nobody_takes_it_without_a_worker_or_from_a_dead_one(tmp_path: Path):
    plan = plan_in(tmp_path)
    assert not handover.worker_takes(plan)
    handover.announce()
    pulse.stamp("worker")  # and then it was killed

    assert not handover.worker_takes(plan)


def test_a_worker_that_no_longer_says_that_it_is_there_takes_nothing(
    tmp_path: Path, worker, monkeypatch
):
    plan, file = plan_in(tmp_path), tmp_path / "clock"
    file.write_text("6")
    monkeypatch.setenv("SANDUK_CLOCK_FILE", str(file))

    assert not handover.worker_takes(plan)


@pytest.mark.parametrize(
    ("variable", "value"),
    [("DOCKER_HOST", "unix:///elsewhere.sock"), ("HTTPS_PROXY", "http://127.0.0.1:1")],
)
def test_another_environment_than_the_workers_keeps_it_here(
    tmp_path: Path, worker, monkeypatch, variable, value
):
    plan = plan_in(tmp_path)
    monkeypatch.setenv(variable, value)

    assert not handover.worker_takes(plan)


@pytest.mark.parametrize(("name", "value"), [("SANDUK_HIDE", (".env",)), ("SANDUK_RUNTIME", "x")])
def test_another_setting_than_the_workers_keeps_it_here(
    tmp_path: Path, worker, settings, name, value
):
    plan = plan_in(tmp_path)
    setattr(settings, name, value)

    assert not handover.worker_takes(plan)


def test_a_key_or_a_variable_of_this_shell_keeps_it_here(tmp_path: Path, worker, monkeypatch):
    monkeypatch.setenv("TOKEN", "of this shell")
    assert not handover.worker_takes(plan_in(tmp_path, env_names=("TOKEN",)))
    with_key = plan_in(tmp_path, provider="openai")
    assert handover.worker_takes(with_key)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-0123456789")

    assert not handover.worker_takes(with_key)


def test_the_mark_says_nothing_of_what_it_was_made_from(state: Path, monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "http://user:canary@127.0.0.1:1")

    handover.announce()

    assert "canary" not in (state / "pulse" / "worker-mark").read_text()


class Told:
    """Stands for the command."""

    def __init__(self) -> None:
        self.out: list[str] = []

    def print(self, text: str = "") -> None:
        self.out.append(text)


def test_a_run_left_to_the_worker_is_a_queued_row_and_a_bell(tmp_path: Path, worker):
    told = Told()

    assert detaching.detach(plan_in(tmp_path, timeout_s=120), told) == 0

    run = Run.objects.get()
    assert (told.out, run.state, run.trigger) == ([run.uid], "queued", "terminal")
    assert run.rung_at is not None
    bell = OrmQ.objects.get()
    assert (bell.key, bell.task["func"], bell.task["args"]) == (queue.RUNS, EXECUTE, (run.pk,))


def test_where_another_run_works_nothing_is_queued(tmp_path: Path, worker):
    make_run(state="running", workspace=str(tmp_path / "w"))

    with pytest.raises(Refusal, match="works in"):
        detaching.detach(plan_in(tmp_path), Told())

    assert Run.objects.count() == 1
    assert not OrmQ.objects.exists()
