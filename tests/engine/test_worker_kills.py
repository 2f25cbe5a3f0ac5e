"""kill -9 of the process that executes a wakeup, at each step of it: nothing lost or doubled."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.engine.assistants import Home
from tests.engine.running import Going, Installation, eventually

pytestmark = [pytest.mark.engine, pytest.mark.timeout(300)]

# each run that comes to its end leaves one line more in the memory
BRIEF = """echo ran >> memory.txt
printf 'all is well' > REPORT.md
echo '{"type": "text", "text": "ready"}'
echo '{"type": "result", "ok": true, "text": "done"}'
exit
"""
# Takes assistants in, plans their slots, then is for each of them the process that `tick` starts,
# until it comes to a named function. Prints which of them were killed.
DYING = """
import importlib, json, os, signal, sys
os.environ["DJANGO_SETTINGS_MODULE"] = "sanduk_site.settings"
import django
django.setup()
from django.core.management import call_command
from django.db import connections
from assistants import ticking
from assistants.models import Schedule, Wakeup
from runs import clock
from sanduk_site.cli import main

def die_in(module, name, moment):
    owner = importlib.import_module(module)
    *parts, last = name.split(".")
    for part in parts:
        owner = getattr(owner, part)
    real = getattr(owner, last)

    def dying(*given, **named):
        if moment == "after":
            real(*given, **named)
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(owner, last, dying)

steps = json.load(sys.stdin)
for place in steps:
    call_command("sanduk_assistant", "add", place)
    call_command("sanduk_tell", os.path.basename(place), "# hello")
Schedule.objects.update(next_at=clock.now())
ticking.tick(lambda wakeup: None)
killed = []
for place, step in steps.items():
    connections.close_all()
    child = os.fork()
    if not child:
        die_in(*step.split())
        wakeup = Wakeup.objects.get(assistant__directory=place)
        sys.argv = ["sanduk", "wakeup", str(wakeup.pk)]
        main()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        killed.append(place)
print("killed", json.dumps(killed))
"""
MEMORY = "assistants.memory.snapshots"
# by name: the function it dies at, and when; what the wakeup of the slot has to come to
STEPS = {
    "claimed": ("assistants.wakeups _claimed after", "interrupted"),
    "task-made": ("assistants.briefing task after", "interrupted"),
    "money-set-aside": ("assistants.budgets reserve after", "interrupted"),
    "memory-before-contents": (f"{MEMORY} Memory.capture after", "interrupted"),
    "memory-before-row": (f"{MEMORY} Memory.record after", "interrupted"),
    "memory-before-all": ("assistants.collaborators before_wakeup after", "interrupted"),
    "run-written-down": ("assistants.wakeups execute before", "interrupted"),
    "run-ended": ("assistants.wakeups execute after", "succeeded"),
    "report-copied": ("assistants.wakeups _Life.of_run after", "succeeded"),
    "memory-after-nothing-yet": ("assistants.memory after_wakeup before", "succeeded"),
    "memory-after-row": ("assistants.memory.retention apply before", "succeeded"),
    "memory-after-all": ("assistants.memory after_wakeup after", "succeeded"),
    "end-row": ("assistants.wakeups _Life._end_row after", "succeeded"),
    "end-messages": ("assistants.models InboxMessage.objects.consume after", "succeeded"),
    "end-outbox": ("assistants.collaborators write_item after", "succeeded"),
    "end-consequences": ("assistants.consequences apply after", "succeeded"),
    "ended": ("assistants.wakeups _told before", "succeeded"),
}


@pytest.fixture
def home(docker: Installation) -> Home:
    return Home(docker)


def came_to(home: Home, name: str) -> dict[str, Any]:
    """What there is of an assistant that was due once and was told one thing."""
    wakeups = home.wakeups(name)
    last = wakeups[-1]["id"]
    me = wakeups[-1]["assistant_id"]
    items = home.rows("SELECT * FROM assistants_outboxitem WHERE assistant_id = ?", me)
    told = home.rows("SELECT * FROM assistants_inboxmessage WHERE assistant_id = ?", me)
    snapshots = home.rows(
        "SELECT moment FROM assistants_memorysnapshot WHERE wakeup_id = ? ORDER BY id", last
    )
    (row,) = home.rows("SELECT failures, not_before FROM assistants_assistant WHERE id = ?", me)
    memory = home.made.ground / name / "workspace" / "memory.txt"
    return {
        "wakeups": [(each["trigger"], each["outcome"] or each["state"]) for each in wakeups],
        "items": [(each["body"], each["wakeup_id"] == last) for each in items],
        "messages": [(each["body"], each["consumed_by_id"] == last) for each in told],
        "snapshots": [each["moment"] for each in snapshots],
        "memory": memory.read_text() if memory.exists() else "",
        "held against it": (row["failures"], row["not_before"]),
    }


def whole(slot: str) -> dict[str, Any]:
    """That, when nothing was lost and nothing happened twice."""
    again = [] if slot == "succeeded" else [("again", "succeeded")]
    return {
        "wakeups": [("schedule", slot), *again],
        "items": [("all is well", True)],
        "messages": [("# hello", True)],
        "snapshots": ["before", "after"],
        "memory": "ran\n",
        "held against it": (0, None),
    }


def test_killed_at_any_step_the_next_look_brings_it_to_one_whole_end(home: Home):
    places = {str(home.lay_out(name, BRIEF)): where for name, (where, _) in STEPS.items()}
    died = subprocess.run(
        [sys.executable, "-c", DYING],
        input=json.dumps(places),
        env={**home.made.environment, "SANDUK_MAX_RUNS": str(len(STEPS))},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert died.returncode == 0, died
    assert json.loads(died.stdout.rpartition("killed ")[2]) == list(places)

    done = home.tick(limit_s=200)

    assert done.code == 0, done
    found = {name: came_to(home, name) for name in STEPS}
    assert found == {name: whole(slot) for name, (_, slot) in STEPS.items()}
    home.made.nothing_left(within_s=5)


# -- the worker ---------------------------------------------------------------------------------
@contextlib.contextmanager
def memory_held(home: Home) -> Iterator[None]:
    """Whoever comes to the memory meanwhile stays there."""
    (assistant,) = home.rows("SELECT id FROM assistants_assistant")
    store = home.made.home / "memory" / str(assistant["id"])
    store.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (store / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def waiting_for_memory(home: Home) -> int:
    """The pid of the process that executes the only wakeup, once it waits for its memory."""

    def found() -> list[int]:
        owners = [row["lease_owner"].split("/") for row in home.wakeups() if row["lease_owner"]]
        locks = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
        blocked = {int(words[5]) for words in locks if words[1] == "->"}
        return [int(owner[3]) for owner in owners if int(owner[3]) in blocked]

    eventually(found, 60)
    (pid,) = found()
    return pid


def begin(home: Home) -> Going:
    return home.made.start("worker").until("the worker is up")


@pytest.mark.parametrize(("moment", "slot"), [("before", "interrupted"), ("after", "succeeded")])
def test_a_worker_goes_on_by_itself_when_a_wakeup_is_killed_in_its_memory_step(
    home: Home, moment: str, slot: str
):
    goes_on = "go-on"
    waits = f"until [ -e {goes_on} ]; do sleep 0.1; done; rm -f {goes_on}\n"
    place = home.add("daily", BRIEF if moment == "before" else waits + BRIEF)
    assert home.made.sanduk("tell", "daily", "# hello").code == 0
    worker = begin(home)
    with contextlib.ExitStack() as stack:
        if moment == "before":
            stack.enter_context(memory_held(home))
            home.due("daily")
        else:
            home.due("daily")
            eventually(lambda: "running" in [row["state"] for row in home.made.rows()], 60)
            stack.enter_context(memory_held(home))
            (place / "workspace" / goes_on).touch()
        os.kill(waiting_for_memory(home), signal.SIGKILL)
    eventually(lambda: home.items(), 90)

    assert worker.signal(signal.SIGTERM).end().code == 0
    assert came_to(home, "daily") == whole(slot)
    home.made.nothing_left(within_s=5)
