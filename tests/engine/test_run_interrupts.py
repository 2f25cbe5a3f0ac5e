"""Runs that are ended from outside: signals, `stop`, a killed process, a closed terminal."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import threading
import time

import pytest

from tests.engine.daemon import Asked, Door, door_before
from tests.engine.running import (
    DEAF,
    DONE,
    READY,
    SANDUK,
    WAIT,
    Installation,
    eventually,
)
from tests.pace import stretched

pytestmark = pytest.mark.engine
POLITE = f"""trap 'echo "{{\\"type\\": \\"text\\", \\"text\\": \\"bye\\"}}"; exit 0' TERM
{READY}; while :; do sleep 0.1; done"""
OWN_REPORT = "what a person wrote"
# a Ctrl-C in the middle of the loading, in a place where nobody hears of it
SWALLOWING = """\
import signal, sys

class Swallows:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)
        for _ in range(100):
            pass

class Importing:
    def find_spec(self, name, path=None, target=None):
        if name == "runs.lifecycle":
            sys.meta_path.remove(self)
            Swallows()

sys.meta_path.insert(0, Importing())
"""


def slow_removal(made: Installation, door: Door) -> threading.Event:
    """Each removal of a container takes two seconds more; the event tells of the first."""
    begun = threading.Event()

    def rule(asked: Asked) -> str | None:
        if asked.removes and asked.removes in made.containers():
            begun.set()
            time.sleep(2)
        return None

    door.rule = rule
    return begun


# -- signals --------------------------------------------------------------------------------------


def test_ctrl_c_lets_the_agent_end_and_keeps_its_last_words(installation: Installation):
    done = installation.begin(POLITE).signal(signal.SIGINT).end()

    assert done.code == 130
    assert done.took_s < stretched(8)
    assert ". bye" in done.out
    assert done.err.count("stopped with Ctrl-C") == 1  # said when it happened, and not again
    assert installation.row["outcome"] == "cancelled"
    installation.nothing_left()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_other_signals_interrupt(docker: Installation, number: signal.Signals):
    done = docker.begin(POLITE).signal(number).end()

    assert done.code == 143
    assert number.name in done.err
    assert docker.row["outcome"] == "interrupted"
    docker.nothing_left()


def test_under_nohup_a_run_outlives_its_terminal(docker: Installation):
    docker.as_user = ("nohup",)
    going = docker.begin(f"{READY}; sleep 2; {DONE}").signal(signal.SIGHUP)
    done = going.end()

    assert done.code == 0, done
    assert docker.row["outcome"] == "succeeded"
    docker.nothing_left()


def test_a_second_ctrl_c_hurries_a_container_that_does_not_listen(docker: Installation):
    going = docker.begin(DEAF).signal(signal.SIGINT)
    going.until("ending: stopped")
    time.sleep(1)
    assert going.process.poll() is None  # it is given time
    done = going.signal(signal.SIGINT).end()

    assert done.code == 130
    assert done.took_s < stretched(5)
    docker.nothing_left()


def test_many_signals_of_every_kind_are_one_end(docker: Installation):
    going = docker.begin(DEAF)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        going.signal(number)
    done = going.end()

    # two kinds that arrive at once may be seen in either order
    assert done.code in (130, 143), done
    assert "Traceback" not in done.err
    assert done.err.count("ending:") == 1
    docker.nothing_left()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_during_teardown_skips_nothing(docker: Installation, number: signal.Signals):
    """L-2: the run keeps its own outcome, and the container is gone."""
    with door_before(docker) as door:
        removing = slow_removal(docker, door)
        going = docker.start(*docker.words(DONE))
        assert removing.wait(30)
        going.signal(number)
        time.sleep(0.3)
        done = going.signal(number).end()

    assert done.code == 0, done
    assert docker.row["outcome"] == "succeeded"
    docker.nothing_left()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_during_the_first_ones_teardown(
    docker: Installation, number: signal.Signals
):
    """L-2."""
    with door_before(docker) as door:
        removing = slow_removal(docker, door)
        going = docker.begin(WAIT).signal(number)
        assert removing.wait(30)
        done = going.signal(number).signal(number).end()

    assert done.code == (130 if number == signal.SIGINT else 143)
    docker.nothing_left()


@pytest.mark.parametrize("when_s", [0.45, 0.7, 0.9, 1.1])
def test_a_signal_while_it_starts_leaves_nothing(docker: Installation, when_s: float):
    docker.sanduk("runs")  # the state directory is there
    going = docker.start(*docker.words(WAIT))
    time.sleep(when_s)
    done = going.signal(signal.SIGINT).end()

    # the interpreter itself may still be loading: then it dies of the signal
    assert done.code in (130, -signal.SIGINT, 1), done
    if docker.rows():
        assert docker.row["outcome"] == "cancelled"
    docker.nothing_left()


def test_a_ctrl_c_whose_exception_python_drops_ends_the_run_all_the_same(docker: Installation):
    """As it drops one in the callback of a weak reference, of which each import has some."""
    (docker.ground / "sitecustomize.py").write_text(SWALLOWING)
    going = docker.start(*docker.words(WAIT), PYTHONPATH=str(docker.ground))
    done = going.end(limit_s=90)

    assert "Exception ignored in: <function Swallows.__del__" in done.err, done
    assert done.code == 130, done
    assert docker.row["outcome"] == "cancelled"
    assert "ready" not in done.out  # it had not come to start the agent
    docker.nothing_left()


def test_a_signal_during_the_probe_for_a_local_daemon_leaves_no_probe(docker: Installation):
    """Its container carries no run's label, so no later command would find it."""
    begun = threading.Event()

    def rule(asked: Asked) -> str | None:
        if asked.creates:
            begun.set()
            time.sleep(0.5)
        return None

    with door_before(docker) as door:
        door.rule = rule
        going = docker.start(*docker.words(WAIT))
        assert begun.wait(20)
        done = going.signal(signal.SIGINT).end()
        made = sum(asked.creates for asked in door.seen)
        removed = {asked.removes for asked in door.seen} - {""}

    assert done.code == 130
    assert made == len(removed) == 1
    docker.nothing_left()


# -- from another process -------------------------------------------------------------------------


def test_stop_from_another_process_cancels(docker: Installation):
    going = docker.begin(POLITE)
    stopped = docker.sanduk("stop", docker.row["uid"][:8])
    done = going.end()

    assert stopped.code == 0
    assert stopped.out == f"{docker.row['uid']}  cancelled\n"
    assert done.code == 130
    assert "stopped by" in done.err
    docker.nothing_left()


def test_stopping_what_has_ended_or_never_was_says_so(docker: Installation):
    docker.run("exit 1", "--no-network")
    again = docker.sanduk("stop", docker.row["uid"])
    never = docker.sanduk("stop", "ffffffffffff")

    assert (again.code, never.code) == (1, 2)
    assert "has already ended (failed)" in again.line
    assert "there is no run" in never.line


def test_bare_stop_never_touches_a_live_run(docker: Installation):
    going = docker.begin(WAIT)
    swept = docker.sanduk("stop")

    assert swept.code == 0
    assert "nothing was left to remove; 1 live run(s) left alone" in swept.line
    assert going.process.poll() is None
    assert len(docker.containers()) == 2
    assert going.signal(signal.SIGINT).end().code == 130


def test_clean_all_ends_live_runs_too(docker: Installation):
    going = docker.begin(WAIT)
    cleaned = docker.sanduk("clean", "--all")

    assert cleaned.code == 0
    assert going.end().code == 130
    docker.nothing_left()


# -- killed ---------------------------------------------------------------------------------------


def test_a_killed_process_is_followed_by_its_containers_within_two_seconds(
    installation: Installation, needs_root: None
):
    installation.work.mkdir()
    os.chown(installation.work, 1000, 1000)
    (installation.work / "REPORT.md").write_text(OWN_REPORT)
    going = installation.begin(WAIT).signal(signal.SIGKILL)
    going.process.wait()
    since = time.monotonic()
    eventually(lambda: not installation.containers(), 10)
    took = time.monotonic() - since
    row = installation.row
    moved = not (installation.work / "REPORT.md").exists()
    told = installation.sanduk("runs")

    assert took < stretched(2)
    assert row["state"] == "running"
    assert moved
    assert f"run {row['uid']} had lost its process; it is ended as interrupted" in told.err
    assert installation.row["outcome"] == "interrupted"
    assert installation.row["exit_code"] == 143
    assert (installation.work / "REPORT.md").read_text() == OWN_REPORT
    assert installation.row["displaced_report"] == ""
    installation.nothing_left(within_s=5)


def test_a_killed_process_and_undertaker_leave_the_rest_to_the_next_command(
    installation: Installation,
):
    going = installation.begin(WAIT)
    undertaker = installation.undertaker()
    os.kill(undertaker, signal.SIGKILL)
    going.signal(signal.SIGKILL).process.wait()
    time.sleep(1)
    still = len(installation.containers())
    told = installation.sanduk("ps")

    assert still == 2
    assert "ended as interrupted" in told.err
    assert "no containers of this installation" in told.err
    assert installation.row["outcome"] == "interrupted"
    installation.nothing_left(within_s=3)


def test_two_commands_at_once_clean_up_after_a_killed_one(docker: Installation):
    going = docker.begin(WAIT)
    os.kill(docker.undertaker(), signal.SIGKILL)
    going.signal(signal.SIGKILL).process.wait()
    both = [docker.start("runs"), docker.start("runs")]
    ended = [each.end() for each in both]

    assert [done.code for done in ended] == [0, 0]
    assert sum("ended as interrupted" in done.err for done in ended) == 1
    docker.nothing_left(within_s=3)


def test_the_workdir_of_a_killed_run_is_free_again(docker: Installation):
    docker.begin(WAIT).signal(signal.SIGKILL).process.wait()
    done = docker.run(DONE)

    assert done.code == 0
    assert [row["outcome"] for row in docker.rows()] == ["interrupted", "succeeded"]
    docker.nothing_left(within_s=5)


# -- detached -------------------------------------------------------------------------------------


def test_a_detached_run_outlives_its_terminal(docker: Installation):
    """The terminal is a real one, and it goes away."""
    docker.sanduk("runs")
    leader, follower = pty.openpty()
    since = time.monotonic()
    with subprocess.Popen(
        [str(SANDUK), *docker.words(WAIT, "--detach")],
        stdin=follower,
        stdout=follower,
        stderr=follower,
        env=docker.environment,
        cwd=docker.ground,
        start_new_session=True,
        preexec_fn=_take_terminal,
    ) as process:
        os.close(follower)
        code = process.wait(30)
        took = time.monotonic() - since
        said = os.read(leader, 1000).decode().strip()
    os.close(leader)  # the kernel hangs up everybody on this terminal
    uid = docker.row["uid"]
    eventually(lambda: docker.row["state"] == "running", 20)
    time.sleep(1)
    shown = docker.show(uid)
    stopped = docker.sanduk("stop", uid)

    assert (code, said) == (0, uid)
    assert took < stretched(5)
    assert shown["state"] == "running"
    assert stopped.out == f"{uid}  cancelled\n"
    assert docker.row["exit_code"] == 130
    docker.nothing_left(within_s=3)


def test_a_detached_run_that_is_refused_says_so_here(docker: Installation):
    first = docker.begin(WAIT)
    done = docker.sanduk(*docker.words(WAIT, "--detach"))

    assert done.code == 2
    assert docker.rows()[0]["uid"] in done.line
    assert first.signal(signal.SIGINT).end().code == 130


def test_a_detached_run_ends_with_a_report_and_its_own_outcome(docker: Installation):
    done = docker.sanduk(*docker.words(f"echo found it > REPORT.md; {DONE}", "--detach"))
    uid = done.out.strip()
    eventually(lambda: docker.row["state"] == "ended", 20)
    shown = json.loads(docker.sanduk("show", uid, "--json").out)

    assert done.code == 0
    assert shown["outcome"] == "succeeded"
    assert shown["report"]["text"] == "found it\n"
    docker.nothing_left(within_s=3)


def _take_terminal() -> None:
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
