"""A person before a real agent's own interface, on a clone; what came of it goes to the gate."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import struct
import termios
import time
from collections.abc import Callable, Iterator

import pytest

from tests.engine.changing import Changing
from tests.engine.running import build_missing
from tests.engine.test_run_shell import Person, executor

pytestmark = pytest.mark.engine
SEED = "rehearsal: command touch seeded"
# how a person leaves each; one Ctrl-C at its prompt ends codex alone
LEAVING = {"claude": ("/exit", "\r"), "codex": ("\x03",), "gemini": ("/quit", "\r")}
# what an interface asks its terminal, and a terminal's answers
ANSWERS = {"\x1b[6n": "\x1b[1;1R", "\x1b[c": "\x1b[?62;c"}


class Sitter(Person):
    """Their terminal reads what is shown the whole time, and answers for itself."""

    def reads_until(self, is_so: Callable[[], bool], *, limit_s: float = 90) -> None:
        deadline = time.monotonic() + limit_s
        while not is_so():
            assert time.monotonic() < deadline, self.seen[-3000:]
            self.reads(0.3)

    def reads(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if not select.select([self.master], [], [], left)[0]:
                return
            piece = os.read(self.master, 65536).decode("utf-8", "replace")
            self.seen += piece
            for question, answer in ANSWERS.items():
                if question in piece:
                    self.types(answer)

    def leaves(self, keys: tuple[str, ...]) -> int:
        for key in keys:
            self.types(key).reads(1.5)
        self.reads_until(lambda: self.process.poll() is not None)
        self.reads(0.3)
        return self.process.returncode


@pytest.fixture
def changing(docker_ready, docker) -> Changing:
    return Changing(docker)


@contextlib.contextmanager
def before(changing: Changing, agent: str, *flags: str) -> Iterator[Sitter]:
    build_missing(agent)
    person = Sitter(changing.made, [
        "change", "shell", "--repo", str(changing.path), "--runtime", "docker", "--agent", agent,
        "--provider", "rehearsal", "--task", SEED, *flags,
    ])  # fmt: skip
    try:
        yield person
    finally:
        if person.process.poll() is None:
            person.process.kill()
        person.process.wait()
        os.close(person.master)
        os.close(person.slave)


def is_seeded(changing: Changing) -> bool:
    """Whether the agent has done what it was asked for by the first message."""
    return any((changing.made.home / "clones").glob("*/work/seeded"))


def size_inside(changing: Changing) -> str:
    (container,) = changing.made.containers("shell")
    script = "stty size </proc/1/fd/0"
    return changing.made.engine_says("exec", container, "sh", "-c", script).strip()


@pytest.mark.parametrize("agent", LEAVING)
def test_it_starts_at_its_prompt_with_the_task_typed_in(changing: Changing, agent: str):
    with before(changing, agent) as person:
        person.reads_until(lambda: is_seeded(changing))
        person.reads(3)
        fcntl.ioctl(person.slave, termios.TIOCSWINSZ, struct.pack("HHHH", 44, 111, 0, 0))
        person.reads_until(lambda: size_inside(changing) == "44 111", limit_s=20)
        code = person.leaves(LEAVING[agent])
        terminal = termios.tcgetattr(person.slave)

    row = changing.row
    assert code == 0, person.seen[-3000:]
    assert "is in review: 1 file" in person.seen
    assert terminal == person.before, "the terminal is given back as it was"
    assert (row["state"], row["kind"], row["task"]) == ("review", "shell", SEED)
    assert "b/seeded" in changing.made.sanduk("change", "diff", row["uid"]).out
    assert changing.host() == changing.before
    assert changing.clones() == []
    changing.made.nothing_left()


@pytest.mark.parametrize("agent", ["claude", "gemini"])
def test_it_asks_first_where_the_person_wants_that_and_ctrl_c_is_its_own(
    changing: Changing, agent: str
):
    with before(changing, agent, "--no-skip-permissions") as person:
        person.reads_until(lambda: "touch" in person.seen.partition("REPORT.md")[2])
        person.reads(3)
        assert not is_seeded(changing)
        person.types("\r").reads_until(lambda: is_seeded(changing))
        person.reads(3)
        person.types("\x03").reads(3)
        assert changing.made.row["state"] == "running"
        code = person.leaves(LEAVING[agent])

    assert code == 0, person.seen[-3000:]
    assert changing.row["state"] == "review"
    changing.made.nothing_left()


def test_codex_can_make_no_sandbox_of_its_own_so_what_it_runs_unasked_fails(changing: Changing):
    with before(changing, "codex", "--no-skip-permissions") as person:
        person.reads_until(lambda: "bwrap" in person.seen and "Exited" in person.seen)
        person.reads(3)
        assert not is_seeded(changing)
        code = person.leaves(LEAVING["codex"])

    assert code == 0, person.seen[-3000:]
    assert "No permissions to create a new namespace" in person.seen
    assert changing.row["state"] == "unchanged"
    changing.made.nothing_left()


def test_a_terminal_that_goes_away_ends_the_box_and_loses_nothing(changing: Changing):
    with before(changing, "claude") as person:
        person.reads_until(lambda: is_seeded(changing))
        os.kill(executor(changing.made), signal.SIGHUP)
        person.leaves(())
        terminal = termios.tcgetattr(person.slave)

    assert changing.row["state"] == "review", changing.row
    assert changing.made.row["outcome"] == "interrupted"
    assert terminal == person.before
    assert changing.clones() == []
    changing.made.nothing_left()
