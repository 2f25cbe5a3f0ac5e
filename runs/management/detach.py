"""`--detach`: the run goes on without this terminal, in a worker or in a process of its own."""

from __future__ import annotations

import contextlib
import os
import subprocess
from typing import Any

import msgspec

from runs import asking, handover
from runs.installation import prepare_home, run_directory
from runs.models.run import new_uid
from runs.own_program import own_program
from runs.plan import Plan

WAIT_S = 30


def detach(plan: Plan, command: Any, *, as_json: bool = False) -> int:
    """Have the run executed elsewhere, once it is written down, and print its id.

    By the worker if one is up that would do it as we would; else by an executor of our own.
    Raises Refusal.
    """
    if not handover.worker_takes(plan):
        return _executed_beside(plan, command, as_json)
    return _told(asking.queued(plan).uid, command, as_json)


def _told(uid: str, command: Any, as_json: bool) -> int:
    if as_json:
        command.print_json({"run": uid})
    else:
        command.print(uid)
    return 0


def _executed_beside(plan: Plan, command: Any, as_json: bool) -> int:
    """Start an executor, wait until the run is written down and claimed, print its id.

    The order travels on standard input. The executor answers one line: the run's id, or why not.
    """
    uid = new_uid()
    prepare_home()
    log = (run_directory(uid) / "executor.log").open("ab")
    with log:
        process = subprocess.Popen(
            own_program("execute", uid),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
            env=os.environ,
        )
    assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018
    # when it died already, what it answered says why
    with contextlib.suppress(BrokenPipeError), process.stdin:
        process.stdin.write(msgspec.json.encode(plan.order))
    answer = process.stdout.readline().decode().strip()
    process.stdout.close()
    if answer == uid:
        return _told(uid, command, as_json)
    return int(command.refuse(answer or "the executor did not start; see the run's executor.log"))
