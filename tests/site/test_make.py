"""The make targets: what a person types reaches the command unchanged."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TELL = f"#!{sys.executable}\nimport json, sys\nprint(json.dumps(sys.argv[1:]))\n"

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")


@pytest.fixture
def make(tmp_path: Path):
    """make(target, VARIABLE=...): the words that its command is given, instead of running it."""
    (tmp_path / "sanduk").write_text(TELL)
    (tmp_path / "sanduk").chmod(0o755)

    def called(target: str, *, environ: dict[str, str] | None = None, **variables: str):
        words = ["make", "-s", "-o", "env", target, f"BIN={tmp_path}"]
        words += [f"{name}={value}" for name, value in variables.items()]
        # of a make that runs these tests, nothing is inherited
        kept = {"PATH": os.environ["PATH"], **(environ or {})}
        done = subprocess.run(words, cwd=ROOT, env=kept, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return called


@pytest.mark.parametrize(
    "task",
    [
        "cost it at $5, $(HOME) and ${HOME}",
        'it\'s "quoted" and `ticked` \\ slashed',
        "two\nlines # and a hash",
        "$$ %s ; exit 1",
        "-n begins with a dash",
    ],
)
@pytest.mark.parametrize("target", ["run", "run-sealed"])
def test_a_task_reaches_the_agent_as_it_was_typed(make, target: str, task: str):
    assert make(target, TASK=task)[-1] == task
    assert make(target, environ={"TASK": task})[-1] == task


@pytest.mark.parametrize("target", ["run", "run-sealed"])
@pytest.mark.parametrize("variables", [[], ["TASK="]])
def test_without_a_task_the_variable_is_named(target: str, variables: list[str]):
    words = ["make", "-s", "-o", "env", target, "BIN=/nowhere", *variables]
    kept = {"PATH": os.environ["PATH"]}
    done = subprocess.run(words, cwd=ROOT, env=kept, capture_output=True, text=True, timeout=60)

    assert done.returncode == 2
    told = done.stderr.splitlines()[0]
    assert told == f"give a task: make {target} TASK='look at every file here'"


def test_a_workdir_may_have_a_space_and_a_dollar(make):
    words = make("run", TASK="x", WORK="my $work/here")

    assert words[words.index("-w") + 1] == "my $work/here"
    assert make("run", TASK="x")[words.index("-w") + 1] == "work"


def test_logs_follow_the_newest_run_or_the_one_that_is_named(make):
    assert make("logs") == ["logs", "--follow"]
    assert make("logs", RUN="3f2a", ARGS="--calls") == ["logs", "--follow", "--calls", "3f2a"]
