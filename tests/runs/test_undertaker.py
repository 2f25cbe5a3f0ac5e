"""The undertaker does its work when the executor was killed, and only then."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runs.box import Box
from runs.undertaker import Undertaker

ROOT = Path(__file__).parents[2]
EXECUTOR = """
import os, sys, time
from pathlib import Path
os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
import django; django.setup()
from runs.box import Box
from runs.undertaker import Undertaker
undertaker = Undertaker(sys.argv[1], Box(Path(sys.argv[2])))
print(undertaker._process.pid, flush=True)
word = sys.stdin.readline().strip()
if word:
    getattr(undertaker, word)()
    print("said", flush=True)
time.sleep(60)
"""


class Executor:
    """A process of ours with an undertaker whose script leaves a mark."""

    def __init__(self, place: Path) -> None:
        self.mark, self.box = place / "mark", place / "box it's"
        self.box.mkdir()
        (self.box / "secret").write_text("token")
        script = f"env > '{self.mark}.part'; mv '{self.mark}.part' '{self.mark}'"
        self.process = subprocess.Popen(
            [sys.executable, "-c", EXECUTOR, script, str(self.box)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "OPENAI_API_KEY": "sk-canary-0123"},
        )
        assert self.process.stdout is not None
        self.undertaker = int(self.process.stdout.readline())

    def tell(self, word: str) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{word}\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "said\n"

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()
        until(lambda: not alive(self.undertaker))


@pytest.fixture
def executor(tmp_path: Path) -> Iterator[Executor]:
    found = Executor(tmp_path)
    yield found
    found.end()


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def until(true: Callable[[], bool], limit_s: float = 5) -> float:
    before = time.monotonic()
    while not true():
        assert time.monotonic() - before < limit_s, "it did not happen"
        time.sleep(0.01)
    return time.monotonic() - before


def test_when_the_executor_is_killed_it_works_within_a_second(executor: Executor):
    """L-1, L-2: whatever kills us, the container goes."""
    executor.process.send_signal(signal.SIGKILL)

    assert until(lambda: executor.mark.exists() and not executor.box.exists()) < 1
    until(lambda: not alive(executor.undertaker))


def test_as_long_as_the_executor_lives_it_waits(executor: Executor):
    time.sleep(0.3)

    assert alive(executor.undertaker)
    assert not executor.mark.exists()


def test_dismissed_it_leaves_everything_alone(executor: Executor):
    executor.tell("dismiss")

    until(lambda: not alive(executor.undertaker))
    executor.process.kill()
    time.sleep(0.2)
    assert not executor.mark.exists()
    assert executor.box.exists()


def test_told_to_work_it_works_while_the_executor_still_lives(executor: Executor):
    executor.tell("let_work")

    until(lambda: executor.mark.exists() and not executor.box.exists())
    assert executor.process.poll() is None


def test_no_key_is_in_its_environment(executor: Executor):
    """A worker's environment holds keys, and the undertaker outlives it."""
    environ = Path(f"/proc/{executor.undertaker}/environ").read_bytes()

    assert b"canary" not in environ
    assert b"PATH=" in environ


def test_a_signal_to_the_terminals_process_group_does_not_reach_it(executor: Executor):
    assert os.getsid(executor.undertaker) == executor.undertaker != os.getsid(executor.process.pid)


def test_a_script_that_fails_does_not_keep_the_private_directory(tmp_path: Path):
    (tmp_path / "box").mkdir()
    undertaker = Undertaker("false", Box(tmp_path / "box"))

    undertaker.let_work()

    assert undertaker._process.wait(timeout=5) == 0
    assert not (tmp_path / "box").exists()


def test_dismissing_twice_or_after_it_died_is_no_error(tmp_path: Path):
    (tmp_path / "box").mkdir()
    undertaker = Undertaker("true", Box(tmp_path / "box"))
    undertaker._process.kill()
    undertaker._process.wait(timeout=5)

    undertaker.dismiss()
    undertaker.dismiss()
    undertaker.let_work()
