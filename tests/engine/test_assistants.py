"""Assistants whose runs are real: from a slot to the outbox, and through kills on the way."""

from __future__ import annotations

import json
import os
import signal

import pytest

from tests.engine.assistants import Home, reporting
from tests.engine.running import Installation, eventually

pytestmark = pytest.mark.engine

FAILING = """echo '{"type": "result", "ok": false, "error": "it did not work"}'; exit"""
SLOW = """echo '{"type": "text", "text": "ready"}'; sleep 300"""


@pytest.fixture
def home(docker: Installation) -> Home:
    return Home(docker)


def outcomes(home: Home, name: str = "") -> list[tuple[str, str]]:
    return [(row["trigger"], row["outcome"] or row["state"]) for row in home.wakeups(name)]


def pid_of(row: dict[str, object]) -> int:
    return int(str(row["lease_owner"]).split("/")[3])


def test_a_slot_becomes_a_held_item_a_report_and_read_messages(home: Home):
    place = home.add("daily", reporting("all is well"))
    told = home.made.sanduk("tell", "daily", "# and this is a comment to the shell")
    assert told.code == 0, told
    home.due("daily")

    done = home.tick()

    assert done.code == 0, done
    assert "daily: succeeded (run " in done.out
    assert outcomes(home) == [("schedule", "succeeded")]
    (item,) = home.items()
    assert (item["body"], item["state"]) == ("all is well", "pending")
    assert home.waiting_messages() == []
    reports = sorted(each.name for each in (place / "reports").iterdir())
    assert [name.partition(".")[2] for name in reports] == ["md", "task.md"]
    assert (place / "reports" / reports[0]).read_text() == "all is well"
    moments = home.rows("SELECT moment FROM assistants_memorysnapshot ORDER BY id")
    assert [row["moment"] for row in moments] == ["before", "after"]
    assert home.made.row["trigger"] == "schedule"
    assert home.tick().out == ""
    home.made.nothing_left()


def test_one_that_fails_one_that_is_broken_and_a_gate_that_hangs_delay_no_other(home: Home):
    """S-1, S-2: and each is told."""
    home.add("failing", FAILING)
    broken = home.add("broken", reporting("x"))
    hanging = home.add("hanging", reporting("x"))
    home.add("good", reporting("fine"))
    (broken / "brief.md").unlink()
    (hanging / "gate").write_text("#!/bin/sh\nsleep 300\n")
    (hanging / "gate").chmod(0o755)
    home.change(
        "UPDATE assistants_assistant SET config = json_set(config, '$.gate', 'gate', "
        "'$.gate_timeout_s', 3) WHERE name = 'hanging'"
    )
    for name in ("hanging", "broken", "failing", "good"):
        home.due(name)

    done = home.tick(SANDUK_MAX_RUNS="4")

    assert done.code == 0, done
    assert {row["name"]: row["outcome"] for row in home.wakeups()} == {
        "failing": "failed",
        "broken": "broken",
        "hanging": "broken",
        "good": "succeeded",
    }
    assert "it did not work" in done.out
    assert len(home.items()) == 1
    failures = home.rows("SELECT name, failures FROM assistants_assistant ORDER BY name")
    assert [row["failures"] for row in failures] == [1, 1, 0, 1]


def test_an_agent_that_exits_with_143_stops_nobody(home: Home):
    """S-4: it is a failure like any other."""
    home.add("rude", "exit 143")
    home.add("good", reporting("fine"))
    for name in ("rude", "good"):
        home.due(name)

    assert home.tick().code == 0
    assert {row["name"]: row["outcome"] for row in home.wakeups()} == {
        "rude": "failed",
        "good": "succeeded",
    }


def test_of_ten_ticks_at_once_one_starts_the_wakeup(home: Home):
    home.add("daily", reporting("once"))
    home.due("daily")

    going = [home.made.start("tick") for _ in range(10)]
    for each in going:
        assert each.end(limit_s=180).code == 0

    assert outcomes(home) == [("schedule", "succeeded")]
    assert len(home.items()) == 1
    assert len(home.made.rows()) == 1


def test_killed_in_the_middle_of_its_run_it_is_tried_again_and_nothing_is_doubled(home: Home):
    place = home.add("daily", SLOW)
    assert home.made.sanduk("tell", "daily", "# hello").code == 0
    home.due("daily")
    going = home.made.start("tick")
    eventually(lambda: "running" in [row["state"] for row in home.made.rows()], 60)
    (row,) = home.wakeups()
    os.kill(pid_of(row), signal.SIGKILL)
    assert going.end().code == 0
    (place / "brief.md").write_text(reporting("second try"))

    # the first of these looks finds what is lost and starts it again
    assert home.tick().code == 0

    assert outcomes(home) == [("schedule", "interrupted"), ("again", "succeeded")]
    (item,) = home.items()
    assert item["body"] == "second try"
    assert home.waiting_messages() == []
    failures = home.rows("SELECT failures FROM assistants_assistant")
    assert failures[0]["failures"] == 0
    home.made.nothing_left(within_s=5)


def test_a_stop_of_tick_interrupts_its_wakeups_which_come_again(home: Home):
    home.add("daily", SLOW)
    home.due("daily")
    going = home.made.start("tick")
    eventually(lambda: "running" in [row["state"] for row in home.made.rows()], 60)

    done = going.signal(signal.SIGTERM).end()

    assert done.code == 143
    assert outcomes(home) == [("schedule", "interrupted"), ("again", "waiting")]
    home.made.nothing_left(within_s=5)


def test_wake_follows_it_here_and_ctrl_c_is_a_persons_wish(home: Home):
    home.add("daily", reporting("by hand"))

    done = home.made.sanduk("wake", "daily", "--json")

    assert done.code == 0, done
    assert json.loads(done.out)["outcome"] == "succeeded"
    home.change("UPDATE assistants_assistant SET config = json_set(config, '$.brief', 'slow.md')")
    (home.made.ground / "daily" / "slow.md").write_text(SLOW)
    going = home.made.start("wake", "daily").until("ready", limit_s=60)
    assert going.signal(signal.SIGINT).end().code == 130
    assert outcomes(home) == [("hand", "succeeded"), ("hand", "cancelled")]


def test_serve_wakes_what_comes_due_and_ends_on_a_signal(home: Home):
    home.add("daily", reporting("served"), every="1m")
    going = home.made.start("serve", "--interval", "2").until("serving")

    home.due("daily")
    eventually(lambda: home.items(), 60)

    done = going.signal(signal.SIGTERM).end()
    assert done.code == 0
    assert "daily: succeeded" in done.out
    home.made.nothing_left(within_s=5)


def test_killed_in_its_gate_it_comes_again_and_nothing_is_lost(home: Home):
    place = home.add("daily", reporting("second try"))
    gate = place / "gate"
    gate.write_text("#!/bin/sh\n[ -e killed ] && exit 0\ntouch killed\nkill -9 $PPID\n")
    gate.chmod(0o755)
    home.change("UPDATE assistants_assistant SET config = json_set(config, '$.gate', 'gate')")
    assert home.made.sanduk("tell", "daily", "# hello").code == 0
    home.due("daily")

    assert home.tick().code == 0
    assert outcomes(home) == [("schedule", "running")]
    assert home.waiting_messages() == ["# hello"]
    assert home.tick().code == 0

    assert outcomes(home) == [("schedule", "interrupted"), ("again", "succeeded")]
    assert [item["body"] for item in home.items()] == ["second try"]
    assert home.waiting_messages() == []
