"""The bench of wakeups works at all, and counts what is lost and what is doubled."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from runs import installation
from tests.bench import wakeup_throughput
from tests.bench.wakeup_throughput import Traces, by_a_worker, in_this_process, judged
from tests.engine.assistants import Home
from tests.engine.running import Installation, docker, docker_ready
from tests.runs.conftest import state

__all__ = ["docker", "docker_ready", "state"]
WHOLE = Traces(
    wakeups=[1, 2],
    read=[(1, "message-0"), (2, "message-1")],
    items=[1, 2],
    tasks=["look\n--- a frame ---\nmessage-0\n", "# message-1\n"],
    lines={"a-0": 1, "a-1": 1},
)


@pytest.mark.django_db(transaction=True)
def test_twenty_wakeups_that_threads_race_for_are_whole(tmp_path: Path, state: Path, settings):
    installation.prepare_home()
    settings.SANDUK_MAX_RUNS = 2  # put back behind the test, whatever the bench makes of it

    figures = in_this_process(tmp_path / "assistants", 20)

    assert (figures.number, figures.lost, figures.doubled) == (20, 0, 0)
    assert figures.rate > 0


@pytest.mark.engine
@pytest.mark.timeout(200)
def test_three_wakeups_of_real_containers_are_whole(docker: Installation):
    figures = by_a_worker(Home(docker), 3)

    assert (figures.number, figures.lost, figures.doubled) == (3, 0, 0)
    docker.nothing_left(within_s=5)


def test_what_is_there_once_is_neither_lost_nor_doubled():
    figures = judged(2, 1.0, WHOLE)
    assert (figures.lost, figures.doubled) == (0, 0)


@pytest.mark.parametrize(
    ("changed", "lost", "doubled"),
    [
        ({"items": [1]}, 1, 0),
        ({"items": [1, 2, 2]}, 0, 1),
        ({"wakeups": [1, 2, 3]}, 0, 1),
        ({"tasks": [*WHOLE.tasks, "message-1"]}, 0, 1),
        ({"tasks": [WHOLE.tasks[0], "nothing for you"]}, 1, 1),
        ({"lines": {"a-0": 3}}, 1, 2),
        # a message without its wakeup: its item and its wakeup are nobody's
        ({"read": WHOLE.read[:1]}, 3, 2),
    ],
)
def test_whatever_is_missing_or_there_twice_is_counted(changed, lost: int, doubled: int):
    figures = judged(2, 1.0, replace(WHOLE, **changed))
    assert (figures.lost, figures.doubled) == (lost, doubled)


def test_each_assistant_is_due_once_at_a_time_and_no_message_is_left_out(monkeypatch):
    monkeypatch.setattr(wakeup_throughput, "ASSISTANTS", 2)
    assert list(wakeup_throughput.slots(3)) == [
        {"a-0": "message-0", "a-1": "message-1"},
        {"a-0": "message-2"},
    ]
