"""What a run takes is given back, whatever fails; what is not gone is not called gone."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from runs import holdings
from runs.box import Box
from runs.engines.base import ContainerSpec
from runs.holdings import Holdings
from tests.runs.fake_engine import FakeEngine

pytestmark = pytest.mark.anyio
LABELS = {"sanduk.install": "i", "sanduk.run": "r"}
SPEC = ContainerSpec(image="image", argv=(), labels=LABELS)


class Watch:
    """Stands where the undertaker would, and notes what it was told."""

    told: list[str]

    def __init__(self, *_: object) -> None:
        Watch.told = []

    def dismiss(self) -> None:
        Watch.told.append("dismiss")

    def let_work(self) -> None:
        Watch.told.append("let_work")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(holdings, "PAUSE_S", 0.01)
    monkeypatch.setattr(holdings, "Undertaker", Watch)


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


@pytest.fixture
def held(engine: FakeEngine, tmp_path: Path) -> Holdings:
    (tmp_path / "box").mkdir()
    return Holdings(engine, LABELS, Box(tmp_path / "box"))


async def test_everything_is_given_back(held: Holdings, engine: FakeEngine):
    closed: list[str] = []

    async def close(name: str) -> None:
        closed.append(name)

    async with held:
        held.take("first", lambda: close("first"))
        held.take("second", lambda: close("second"))
        await held.create(SPEC)
        await held.create(SPEC)
        await held.network("net", internal=False)

    assert engine.rows == {}
    assert engine.nets == {}
    assert closed == ["second", "first"]
    assert not held.box.path.exists()
    assert held.left == []
    assert Watch.told == ["dismiss"]


async def test_an_error_in_the_block_comes_out_after_everything_was_given_back(held, engine):
    async def fail() -> None:
        async with held:
            await held.create(SPEC)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    assert engine.rows == {}


async def test_what_carries_our_labels_goes_even_if_we_never_heard_of_it(held, engine):
    async with held:
        await held.create(SPEC)
        engine.add("stranger", install="i", run="r")
        engine.add("another run's", install="i", run="other")
        engine.add("another installation's", install="other", run="r")

    assert set(engine.rows) == {"another run's", "another installation's"}


async def test_a_kept_run_keeps_its_stopped_containers_and_its_network(held, engine):
    """L-4."""
    async with held:
        link, agent = await held.create(SPEC), await held.create(SPEC)
        await held.network("net", internal=False)
        held.keeps = True

    assert set(engine.rows) == {link, agent}
    assert set(engine.nets) == {"net"}
    assert engine.calls.count("stop") == 2
    assert held.left == []
    assert not held.box.path.exists()
    assert Watch.told == ["dismiss"]


async def test_a_kept_container_that_cannot_be_stopped_is_told_and_not_removed(held, engine):
    async with held:
        container = await held.create(SPEC)
        held.keeps = True
        engine.failing.add("stop")

    assert set(engine.rows) == {container}
    assert "may still run" in held.left[0]
    assert Watch.told == ["dismiss"]


@pytest.mark.parametrize("failing", ["remove", "containers"])
async def test_an_engine_that_cannot_remove_is_told_and_the_undertaker_goes_on(
    held, engine, failing
):
    """L-3: a failed delete was only noted, the record released, the exit 0."""
    async with held:
        container = await held.create(SPEC)
        engine.failing.add(failing)

    assert len(held.left) == 1
    assert "the daemon does not answer" in held.left[0]
    assert container[:12] in held.left[0]
    assert engine.calls.count("remove") == holdings.ATTEMPTS
    assert Watch.told == ["let_work"]


async def test_a_container_that_is_still_listed_is_not_called_gone(held, engine):
    """nanoclaw#87: stop by id, verify gone, only then mark stopped."""
    async with held:
        engine.deaf.add(await held.create(SPEC))

    assert "the engine still lists it" in held.left[0]
    assert Watch.told == ["let_work"]


async def test_a_removal_that_works_at_the_second_attempt_leaves_nothing(held, engine):
    async with held:
        engine.deaf.add(await held.create(SPEC))
        asyncio.get_running_loop().call_later(0.005, engine.deaf.clear)

    assert held.left == []
    assert engine.rows == {}


async def test_something_that_does_not_close_does_not_stop_the_rest(held, engine):
    """L-5."""

    async def broken() -> None:
        raise OSError("no")

    closed: list[bool] = []

    async def fine() -> None:
        closed.append(True)

    async with held:
        held.take("the first", fine)
        held.take("the relay", broken)
        await held.create(SPEC)

    assert engine.rows == {}
    assert closed == [True]
    assert held.left == ["the relay did not close: no"]


async def test_a_container_whose_creation_was_cancelled_half_way_is_removed(held, engine):
    """It would appear after we looked."""
    engine.creation = asyncio.Event()
    async with held:
        creating = asyncio.create_task(held.create(SPEC))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        creating.cancel()
        asyncio.get_running_loop().call_later(0.05, engine.creation.set)

    assert "create" in engine.calls
    assert engine.rows == {}
    assert held.left == []


async def test_an_agent_whose_creation_was_broken_off_goes_before_the_link_it_joined(held, engine):
    """The link cannot go while somebody lives in it, and nobody told us that somebody does."""
    async with held:
        link = await held.create(SPEC)
        engine.inside[engine.add("late", install="i", run="r", role="agent")] = link

    assert engine.rows == {}
    assert held.left == []


async def test_what_was_made_last_goes_first(held, engine):
    order: list[str] = []
    remove = engine.remove

    async def noted(containers):
        order.extend(containers)
        await remove(containers)

    engine.remove = noted
    async with held:
        made = [await held.create(SPEC) for _ in range(5)]

    assert order == made[::-1]


async def test_an_engine_that_was_never_used_is_not_asked(held, engine):
    async with held:
        pass

    assert engine.calls == []


async def test_giving_back_twice_is_once(held, engine):
    """L-2: a signal in the middle of the teardown."""
    async with held:
        await held.create(SPEC)
        await held.give_back()

    assert engine.calls.count("remove") == 1
    assert Watch.told == ["dismiss"]
