"""What `--detach` makes of its executor's one line of answer."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from runs.management import detach as detaching
from runs.order import Order
from runs.plan import make_plan
from tests.pace import stretched

pytestmark = pytest.mark.filterwarnings(
    # the executor outlives whoever started it, which is what it is for
    "ignore:subprocess .* is still running:ResourceWarning"
)


class Told:
    """Stands for the command: keeps what it would print."""

    def __init__(self) -> None:
        self.out: list[str] = []
        self.refused: list[str] = []

    def print(self, text: str = "") -> None:
        self.out.append(text)

    def print_json(self, value: object) -> None:
        self.out.append(json.dumps(value))

    def refuse(self, why: str) -> int:
        self.refused.append(why)
        return 2


@pytest.fixture
def executor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """executor(script): what is started instead of Python; $4 is the command, $5 the run's id."""

    def make(script: str) -> Path:
        file = tmp_path / "executor"
        file.write_text(f"#!/bin/sh\ncd '{tmp_path}'\n{script}\n")
        file.chmod(0o755)
        monkeypatch.setattr("runs.own_program.sys.executable", str(file))
        return tmp_path

    return make


def detach(tmp_path: Path, task: str = "look", **how: bool) -> tuple[int, Told]:
    order = Order(
        task=task, agent="pi", provider="rehearsal", runtime="docker", workdir=str(tmp_path / "w")
    )
    told = Told()
    return detaching.detach(make_plan(order), told, **how), told


def test_the_runs_id_is_printed_and_the_order_arrives_on_stdin(executor, tmp_path: Path, state):
    executor('cat > order; echo "$@" > words; echo "$5"')

    code, told = detach(tmp_path)

    assert (code, told.refused) == (0, [])
    words = (tmp_path / "words").read_text().split()
    assert words == ["-P", "-m", "sanduk_site", "execute", told.out[0]]
    assert json.loads((tmp_path / "order").read_text())["task"] == "look"
    assert (state / "runs" / told.out[0] / "executor.log").exists()


def test_the_runs_id_is_told_to_a_script(executor, tmp_path: Path):
    executor('cat > order; echo "$5" > uid; cat uid')

    code, told = detach(tmp_path, as_json=True)

    assert code == 0
    assert json.loads(told.out[0]) == {"run": (tmp_path / "uid").read_text().strip()}


def test_a_task_of_1_mib_arrives_whole(executor, tmp_path: Path):
    executor('cat > order; echo "$5"')

    assert detach(tmp_path, "x" * 2**20)[0] == 0
    assert len(json.loads((tmp_path / "order").read_text())["task"]) == 2**20


def test_a_refusal_is_said_here(executor, tmp_path: Path):
    executor('cat > order; echo "run abc works in /w; wait for it"')

    code, told = detach(tmp_path)

    assert (code, told.out) == (2, [])
    assert told.refused == ["run abc works in /w; wait for it"]


@pytest.mark.parametrize("script", ["exit 1", "cat > order; exit 1", "exec <&-; exit 1"])
def test_an_executor_that_dies_is_a_failure_that_names_its_log(executor, tmp_path: Path, script):
    executor(script)

    code, told = detach(tmp_path, "x" * 2**20)

    assert (code, told.out) == (2, [])
    assert "executor.log" in told.refused[0]


def test_it_returns_as_soon_as_the_run_is_claimed_in_a_session_of_its_own(executor, tmp_path: Path):
    executor('cat > order; ps -o sid= -p $$ > sid; echo "$5"; exec >&-; sleep 3')
    before = time.monotonic()

    assert detach(tmp_path)[0] == 0

    assert time.monotonic() - before < stretched(2)
    assert int((tmp_path / "sid").read_text()) != os.getsid(0)
