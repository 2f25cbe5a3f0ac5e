"""Six processes do at once what sanduk does: none is refused, nothing is lost, nothing doubled."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from tests.assistants.writing import APPROVALS, CALLS, EVENTS
from tests.databases import database, postgres
from tests.processes import Processes, environment

__all__ = ["database", "postgres"]
SECONDS = 15


@pytest.fixture(scope="module")
def written(database: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """What each of the six says it did, all together, and what is there."""
    place = str(tmp_path_factory.mktemp("six"))
    environ = environment(Path(place, "state"), database)
    with Processes(6, "tests.assistants.writing", environ) as writers:
        writers.one("begin", place)
        done = writers.each("write", SECONDS)
        found = writers.one("count", place)
    said = {key: [each.get(key, []) for each in done] for key in set(chain(*done))}
    return {key: list(chain(*lists)) for key, lists in said.items()}, found


def once(numbers: list[Any]) -> bool:
    return len(numbers) == len(set(numbers))


def test_no_statement_was_refused(written: tuple[Any, Any]) -> None:
    """No "database is locked", no deadlock, in any thread of any process."""
    said, _ = written
    assert said["refused"] == []


def test_each_message_arrived_once_and_was_answered_at_most_once(written: tuple[Any, Any]) -> None:
    said, found = written
    numbers = [pk for pk, _ in found["messages"]]
    assert len(numbers) > 12
    assert sorted(said["told"]) == sorted(numbers)
    assert once([source_id for _, source_id in found["messages"]])
    assert any(source_id.startswith("all-") for _, source_id in found["messages"])
    assert set(found["answers"]) == {1}
    assert found["consumed"] == len(found["answers"])


def test_each_slot_was_written_down_by_one_and_ended_by_one(written: tuple[Any, Any]) -> None:
    said, found = written
    assert once(said["planned"])
    assert once(said["skipped"])
    assert once(said["woken"])
    assert said["recovered"] == []
    assert set(said["planned"]) | set(said["skipped"]) == {pk for pk, *_ in found["wakeups"]}
    ended = {pk: outcome for pk, _, state, outcome in found["wakeups"] if state == "ended"}
    assert not set(said["skipped"]) & set(said["woken"])
    assert set(said["skipped"]) | set(said["woken"]) == set(ended)
    assert {outcome for pk, outcome in ended.items() if pk in said["woken"]} == {"succeeded"}
    assert len(said["woken"]) >= len(APPROVALS)


def test_each_run_has_all_of_its_events_and_calls_in_order(written: tuple[Any, Any]) -> None:
    said, found = written
    runs = len(said["woken"])
    assert len(found["events"]) == runs
    for uid, events in found["events"].items():
        assert events == [[number, f"line {number} of {uid}"] for number in range(1, EVENTS + 1)]
    assert found["calls"] == [[CALLS]] * runs
    assert found["counted"] == [[CALLS, CALLS]] * runs
    assert found["rows"] == [EVENTS * runs, CALLS * runs]


def test_each_item_was_written_once_and_decided_by_as_many_as_it_takes(
    written: tuple[Any, Any],
) -> None:
    said, found = written
    assert len(found["items"]) == len(said["woken"])
    assert once([body for *_, body in found["items"]])
    by_people = Counter(pk for pk, _ in said["decided"])
    assert sorted(found["decisions"]) == sorted(
        [f"outbox:{pk}", who] for pk, who in said["decided"]
    )
    assert by_people
    for pk, name, state, _ in found["items"]:
        needed = APPROVALS[name] if pk % 5 else min(APPROVALS[name], 1)
        if state == "pending":
            assert by_people[pk] < needed
        else:
            assert by_people[pk] == needed, (pk, name, state)
            assert (state == "rejected") == (needed > 0 and pk % 5 == 0)


def test_each_approved_item_was_delivered_once(written: tuple[Any, Any]) -> None:
    said, found = written
    approved = {pk for pk, _, state, _ in found["items"] if state in ("approved", "delivered")}
    sent = {item for item, state, _ in found["deliveries"] if state == "sent"}
    assert once(found["lines"])
    assert sum(said["sent"]) == len(found["lines"])
    assert set(found["lines"]) == sent
    assert {item for item, *_ in found["deliveries"]} == approved
    assert {pk for pk, _, state, _ in found["items"] if state == "delivered"} == sent
    assert {attempts for _, state, attempts in found["deliveries"] if state == "sent"} == {1}


def test_the_audit_record_is_whole(written: tuple[Any, Any]) -> None:
    said, found = written
    events, troubles, unwitnessed = found["chain"]
    assert (troubles, unwitnessed) == ([], 0)
    by_policy = sum(name == "free" and state != "pending" for _, name, state, _ in found["items"])
    approvals = sum(bool(pk % 5) for pk, _ in said["decided"])
    assert found["audited"] == {
        "assistant.change": len(said["changed"]),
        "destination.add": 1,
        "outbox.approve": approvals + by_policy,
        "outbox.reject": len(said["decided"]) - approvals,
    }
    assert events == sum(found["audited"].values())
