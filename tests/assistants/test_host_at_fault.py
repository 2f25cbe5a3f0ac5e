"""A slot that this host could not run is missed, with the reason, and blames no assistant."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from assistants import consequences, listing
from assistants.memory import snapshots
from assistants.models import Assistant, Wakeup
from runs import admission, plan
from runs.engines.base import BuildFailed, EngineError, EngineUnavailable
from runs.host_fault import is_by_host
from runs.refusal import HostRefusal, Refusal
from tests.assistants.waking import Runs, assistant_in, make_room, memory, runs, woken
from tests.factories import make_run, make_wakeup
from tests.runs.conftest import state
from tests.runs.fake_engine import FakeEngine

__all__ = ["memory", "runs", "state"]
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def here(tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A host with room, whose docker command finds no daemon."""
    make_room(tmp_path, monkeypatch)
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no.sock")
    return tmp_path


def blameless(assistant: Assistant, ended: Wakeup) -> None:
    assert ended.outcome == "missed"
    assert ended.reason.startswith(consequences.BY_HOST)
    assistant.refresh_from_db()
    assert (assistant.failures, assistant.not_before, assistant.disabled_at) == (0, None, None)


@pytest.mark.usefixtures("memory")
def test_an_engine_that_is_down_misses_the_slot_and_is_told_once_for_all(here: Path):
    made = [assistant_in(here, name=name, max_failures=1) for name in ("one", "two")]

    for each in made:
        for _ in range(2):
            ended = woken(each)
            blameless(each, ended)
            assert "docker" in ended.reason.lower()
            assert ended.run.refused_by_host

    (told,) = [line for line in listing.trouble() if "this host" in line]
    assert "one, two" in told
    assert "docker" in told.lower()


@pytest.mark.usefixtures("memory")
def test_a_key_that_is_not_there_is_the_hosts_fault(here: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    one = assistant_in(here, agent="claude", provider="anthropic")

    ended = woken(one)

    blameless(one, ended)
    assert "ANTHROPIC_API_KEY" in ended.reason


@pytest.mark.usefixtures("memory")
def test_a_host_with_no_memory_to_give_is_named_as_the_reason(here: Path, monkeypatch):
    monkeypatch.setattr(admission, "available_bytes", lambda: 2**20)
    one = assistant_in(here)

    ended = woken(one)

    blameless(one, ended)
    assert ended.run is None


@pytest.mark.usefixtures("memory")
def test_no_engine_at_all_is_the_hosts_and_one_of_an_unknown_name_the_assistants(
    here: Path, monkeypatch: pytest.MonkeyPatch
):
    def none(name: str | None = None) -> None:
        raise EngineUnavailable("no container engine is installed")

    monkeypatch.setattr(plan, "get_engine", none)
    usual, named = assistant_in(here, runtime=""), assistant_in(here, name="b", runtime="wharf")

    blameless(usual, woken(usual))
    assert woken(named).outcome == "broken"


def test_a_disk_too_full_for_the_memory_is_the_hosts_fault(tmp_path, runs: Runs, monkeypatch):
    def full(assistant: Assistant) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(snapshots, "store_of", full)
    one = assistant_in(tmp_path)

    ended = woken(one)

    blameless(one, ended)
    assert "No space left" in ended.reason


def test_what_is_wrong_with_its_own_memory_stays_its_own(tmp_path, runs: Runs, monkeypatch):
    def denied(assistant: Assistant) -> None:
        raise OSError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(snapshots, "store_of", denied)

    assert woken(assistant_in(tmp_path)).outcome == "broken"


def test_a_wakeup_recovered_from_its_runs_row_is_judged_the_same():
    run = make_run(state="ended", outcome="refused", reason="no room", refused_by_host=True)
    plain = make_run(state="ended", outcome="refused", reason="there is no such image")

    assert consequences.of_run(run).outcome == "missed"
    assert consequences.of_run(plain).outcome == "failed"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("error", "by_host"),
    [
        (EngineUnavailable("the Docker daemon does not run"), True),
        (HostRefusal("no key"), True),
        (Refusal("the seal has a hole"), False),
        (EngineError("creating it: no space left on device"), True),
        (BuildFailed("building failed: exit 1", ["write /x: No space left on device"]), True),
        (BuildFailed("building failed: exit 1", ["no such package: sl"]), False),
        (EngineError("there is no image mine:1 on this engine"), False),
    ],
)
async def test_the_host_is_blamed_for_what_it_lacks(error: Exception, by_host: bool):
    assert await is_by_host(FakeEngine(), error) is by_host


@pytest.mark.anyio
async def test_an_engine_that_died_meanwhile_is_asked_before_anybody_is_blamed():
    engine = FakeEngine()
    engine.failing.add("ready")

    assert await is_by_host(engine, EngineError("creating it: EOF"))


def test_nothing_is_told_of_a_host_that_works_again(here: Path):
    one = assistant_in(here)
    reason = f"{consequences.BY_HOST}the Docker daemon does not run"
    make_wakeup(one, state="ended", outcome="missed", reason=reason)
    assert any(reason.removeprefix(consequences.BY_HOST) in line for line in listing.trouble())

    make_wakeup(one, state="ended", outcome="succeeded")

    assert not any("Docker" in line for line in listing.trouble())
