"""`sanduk change shell`: a person in the box, on a clone; what they did goes to the gate."""

from __future__ import annotations

import os
import signal
import termios
import time

import pytest

from tests.engine.changing import Changing
from tests.engine.running import Installation
from tests.engine.test_run_shell import executor, sitting

pytestmark = pytest.mark.engine


@pytest.fixture
def changing(docker: Installation) -> Changing:
    return Changing(docker)


def words(changing: Changing) -> tuple[str, ...]:
    return (
        "change", "shell", "--repo", str(changing.path), "--runtime", changing.made.engine,
        "--agent", "scripted", "--no-network",
    )  # fmt: skip


def test_what_a_person_did_at_a_terminal_comes_to_the_gate(changing: Changing):
    with sitting(changing.made, *words(changing)) as person:
        size = person.asks("until stty size | grep -v '^0'; do sleep 0.1; done")
        seen = person.asks("pwd; ls -A; ls /sys/class/net")
        person.types("sleep 100\n").until("sleep 100\r\n")
        time.sleep(0.5)
        person.types("\x03").until("$ ")
        person.asks("echo mine > by_hand.txt")
        person.types("exit\n")
        told = person.until("is in review")
        assert person.end() == 0
        terminal = termios.tcgetattr(person.slave)

    assert size.split() == ["31", "97"]
    assert seen.split() == ["/work", ".git", "README.md", "src", "lo"]
    assert terminal == person.before, "the terminal is given back as it was"
    row = changing.row
    assert row["uid"] in told
    assert (row["state"], row["kind"]) == ("review", "shell")
    patch = changing.made.sanduk("change", "diff", row["uid"]).out
    assert "+mine" in patch
    assert changing.host() == changing.before
    assert changing.clones() == []
    changing.made.nothing_left()


def test_a_terminal_that_goes_away_brings_what_was_done_to_the_gate(changing: Changing):
    with sitting(changing.made, *words(changing)) as person:
        person.asks("echo mine > by_hand.txt")
        os.kill(executor(changing.made), signal.SIGHUP)
        person.end()

    assert changing.row["state"] == "review", changing.row
    assert changing.made.row["outcome"] == "interrupted"
    assert changing.clones() == []
    changing.made.nothing_left()


def test_commands_from_standard_input_make_a_change(changing: Changing):
    done = changing.made.sanduk(*words(changing), "-q", stdin=b"echo out; echo x > x; exit 5\n")

    assert done.code == 0
    assert done.out.startswith(f"out\nchange {changing.row['uid']} is in review: 1 file, +1 -0")
