"""Several processes reach for the same rows at the same moment, and one of them has each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain
from typing import Any

import pytest

from tests.assistants.racing import RACERS
from tests.databases import database, postgres
from tests.processes import Processes, environment

__all__ = ["database", "postgres"]
ROWS = 25


@pytest.fixture(scope="module")
def racers(database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    environ = environment(tmp_path_factory.mktemp("races") / "state", database)
    with Processes(RACERS, "tests.assistants.racing", environ) as started:
        started.one("begin")
        yield started


def all_of(lists: list[list[Any]]) -> list[Any]:
    return sorted(chain(*lists))


def test_a_queued_run_is_claimed_once(racers: Processes) -> None:
    uids = racers.one("make_runs", ROWS)

    assert all_of(racers.each("claim_runs", uids)) == sorted(uids)


def test_one_run_at_a_time_works_in_a_place(racers: Processes) -> None:
    places = [f"/srv/place-{number:02}" for number in range(ROWS)]

    assert all_of(racers.each("work_in", places)) == places
    assert sorted(racers.one("live_in", places)) == places


def test_one_run_at_a_time_works_in_a_place_and_those_in_it(racers: Processes) -> None:
    places = [f"/srv/deep-{number:02}" for number in range(ROWS)]

    let_in = all_of(racers.each("work_below", places))
    assert [place.split("/")[2] for place in let_in] == [place.split("/")[2] for place in places]
    assert sorted(racers.one("live_in", places)) == let_in


def test_a_slot_is_written_down_once_and_rung_for_once(racers: Processes) -> None:
    schedules = racers.one("make_due", ROWS)

    planned = all_of(racers.each("plan"))
    assert sorted(racers.one("planned", schedules)) == schedules
    assert len(planned) == len(set(planned)) == ROWS
    assert all_of(racers.each("ring", planned)) == planned


def test_a_wakeup_is_claimed_once(racers: Processes) -> None:
    waiting = racers.one("make_waiting", ROWS, 1)

    assert all_of(racers.each("claim_wakeups", waiting)) == waiting


def test_one_wakeup_of_an_assistant_runs_at_a_time(racers: Processes) -> None:
    waiting = racers.one("make_waiting", ROWS, 3)

    won = all_of(racers.each("claim_wakeups", waiting))
    running = racers.one("running_by_assistant", waiting)
    assert len(won) == len(running) == len(set(running)) == ROWS


def test_all_of_a_days_budget_is_set_aside_and_no_more(racers: Processes) -> None:
    assistant = racers.one("make_spender")

    got = all_of(racers.each("reserve", assistant, 0.05, 1.02, ROWS))
    assert got == pytest.approx([0.02] + [0.05] * 20)
    assert racers.one("spent", assistant) == pytest.approx(1.02)


def test_an_item_is_decided_once(racers: Processes) -> None:
    items = racers.one("make_items", ROWS, 1, 1)

    heard = racers.each("decide", items)
    assert all_of(heard) == items
    yes = {pk for number, pks in enumerate(heard) for pk in pks if number % 2 == 0}
    expected = [["approved", 1, 1] if pk in yes else ["rejected", 1, 0] for pk in items]
    assert racers.one("standing", items) == expected


def test_an_item_for_three_people_is_approved_by_exactly_three(racers: Processes) -> None:
    items = racers.one("make_items", ROWS, 3, 1)

    heard = Counter(all_of(racers.each("approve", items)))
    assert heard == dict.fromkeys(items, 3)
    assert racers.one("standing", items) == [["approved", 3, 1]] * ROWS


def test_a_delivery_is_claimed_once(racers: Processes) -> None:
    items = racers.one("make_items", ROWS, 1, 1)
    racers.one("approve", items)
    deliveries = racers.one("deliveries_of", items)

    assert len(deliveries) == ROWS
    assert all_of(racers.each("claim_deliveries", deliveries)) == deliveries


def test_whoever_brings_the_last_copy_of_an_item_marks_it_delivered(racers: Processes) -> None:
    items = racers.one("make_items", ROWS, 1, RACERS)
    racers.one("approve", items)

    assert all_of(racers.each("finish", items)) == items
    assert racers.one("standing", items) == [["delivered", 1, RACERS]] * ROWS


def test_a_message_that_comes_in_everywhere_arrives_once(racers: Processes) -> None:
    ids = [f"id-{number:02}" for number in range(ROWS)]

    assert all_of(racers.each("tell", racers.one("make_spender"), ids)) == ids


def test_audit_events_of_all_follow_each_other(racers: Processes) -> None:
    before, *_ = racers.one("verified")
    racers.each("record", ROWS)

    assert racers.one("verified") == [before + RACERS * ROWS, [], 0]
