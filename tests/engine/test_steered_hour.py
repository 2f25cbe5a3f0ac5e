"""A steered clock with two workers, `serve` and `tick` after `tick`, all at once.

SANDUK_TEST_STEPS says for how many of its minutes; thirty unless it is set, in `make test-slow`
an hour.
"""

from __future__ import annotations

import datetime as dt
import os
import re
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from tests.engine.assistants import Home, answering
from tests.engine.running import Going, Installation, eventually

pytestmark = [pytest.mark.engine, pytest.mark.timeout(900)]

EVERY_MIN = {"ten": 10, "also-ten": 10, "fifteen": 15, "twenty": 20}
STEP_S, STEPS = 60, int(os.environ.get("SANDUK_TEST_STEPS", "30"))
NEVER = dt.datetime.min.replace(tzinfo=dt.UTC)
STEP_LIMIT_S = 120  # for what is due then, on a busy machine


class Steered:
    """The clock of every process of the installation: real time and what it was stepped by."""

    def __init__(self, home: Home) -> None:
        self._home, self._offset_s = home, 0
        self._file = home.made.ground / "clock"
        self._file.write_text("0")
        home.made.environment["SANDUK_CLOCK_FILE"] = str(self._file)

    def now(self) -> dt.datetime:
        return dt.datetime.now(dt.UTC) + dt.timedelta(seconds=self._offset_s)

    def step(self) -> None:
        """A minute more; back when somebody has looked since, and all that was due is over."""
        self._offset_s += STEP_S
        draft = self._file.with_suffix(".new")
        draft.write_text(str(self._offset_s))
        draft.replace(self._file)
        stepped = self.now()
        eventually(lambda: self._looked_at() >= stepped and self._is_settled(), STEP_LIMIT_S)

    def _looked_at(self) -> dt.datetime:
        stamp = self._home.made.home / "pulse" / "tick"
        return dt.datetime.fromisoformat(stamp.read_text()) if stamp.exists() else NEVER

    def _is_settled(self) -> bool:
        now = self.now().strftime("%Y-%m-%d %H:%M:%S.%f")
        due = self._home.rows("SELECT id FROM assistants_schedule WHERE next_at <= ?", now)
        open_ = self._home.rows(
            "SELECT id FROM assistants_wakeup WHERE state = 'running' "
            "OR (state = 'waiting' AND not_before <= ?)",
            now,
        )
        return not due and not open_


def second_worker(home: Home) -> Going:
    """One more beside the first, as when somebody cleared the locks away."""
    (home.made.home / "locks" / "worker").unlink()
    return home.made.start("worker").until("the worker is up")


@contextmanager
def ticking(home: Home) -> Iterator[list[int]]:
    """One `tick` after the other; the exit codes of those that ended."""
    codes: list[int] = []
    over = threading.Event()

    def loop() -> None:
        while not over.wait(1):
            codes.append(home.tick(limit_s=STEP_LIMIT_S).code)

    thread = threading.Thread(target=loop)
    thread.start()
    try:
        yield codes
    finally:
        over.set()
        thread.join()


def test_whoever_looks_each_slot_is_one_wakeup_and_each_message_is_answered_once(
    docker: Installation,
):
    home = Home(docker)
    clock = Steered(home)
    for name, minutes in EVERY_MIN.items():
        home.add(name, answering(0), every=f"{minutes}m")
    asked = 0
    going = [home.made.start("worker").until("the worker is up"), second_worker(home)]
    going.append(home.made.start("serve", "--interval", "5s").until("serving"))

    with ticking(home) as codes:
        for step in range(STEPS):
            if step % 4 == 0:
                home.tell(list(EVERY_MIN)[step // 4 % len(EVERY_MIN)], f"question-{step}")
                asked += 1
            clock.step()

    for each in going:
        each.signal(signal.SIGTERM)
    assert [each.end(limit_s=100).code for each in going] == [0, 0, 0]
    assert set(codes) == {0}
    slots_are_whole(home)
    nothing_is_doubled(home, asked)
    home.made.nothing_left(within_s=5)


def slots_are_whole(home: Home) -> None:
    """As many rows as slots in the hour, one interval apart, each of them a success."""
    for name, minutes in EVERY_MIN.items():
        rows = home.wakeups(name)
        assert len(rows) == STEPS // minutes, (name, rows)
        assert {(row["trigger"], row["outcome"]) for row in rows} == {("schedule", "succeeded")}
        slots = sorted(dt.datetime.fromisoformat(row["planned_at"]) for row in rows)
        apart = {later - earlier for earlier, later in pairwise(slots)}
        assert apart <= {dt.timedelta(minutes=minutes)}


def nothing_is_doubled(home: Home, asked: int) -> None:
    ids = sorted(row["id"] for row in home.wakeups())
    assert sorted(item["wakeup_id"] for item in home.items()) == ids
    assert sorted(row["run_id"] for row in home.wakeups()) == [
        row["id"] for row in home.made.rows()
    ]
    told = home.rows("SELECT body, consumed_by_id FROM assistants_inboxmessage")
    assert len(told) == asked
    read = {row["body"] for row in told if row["consumed_by_id"]}
    answers = Counter(re.findall(r"question-\d+", " ".join(i["body"] for i in home.items())))
    assert answers == dict.fromkeys(read, 1)
    # a message that came behind an assistant's last slot waits for its next one
    last = {row["name"]: row["id"] for row in home.wakeups()}
    assert len(read) >= asked - len(last)
    for name in EVERY_MIN:
        memory: Path = home.made.ground / name / "workspace" / "memory.txt"
        assert len(memory.read_text().splitlines()) == len(home.wakeups(name))
