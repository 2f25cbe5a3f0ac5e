"""`sanduk serve` and `sanduk worker` themselves, where receivers hang and bells are lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.engine.assistants import Home
from tests.engine.running import Going, Installation, eventually

REPOSITORY = Path(__file__).parents[2]
SAY = """
from assistants.models import Assistant
from tests.assistants.sending.making import make_item
for name in {names}:
    make_item(Assistant.objects.get(name=name), f"from {{name}}")
"""
LOSE = """
import datetime
from django_q.models import OrmQ
from runs import bells, clock
from runs.models import Run
from runs.order import Order
from tests.factories import make_run
order = Order(task="look", agent="pi", provider="rehearsal", runtime="docker", workdir={place!r})
run = make_run(order=order.stored(), workspace={place!r}, trigger="web")
bells.enqueue(run)
OrmQ.objects.all().delete()
Run.objects.update(rung_at=clock.now() - datetime.timedelta(hours=1))
"""


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """An installation whose assistants' gates say no: its slots need no engine."""
    clock = tmp_path / "clock"
    clock.write_text("0")
    environment = {
        **{name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ},
        "HOME": str(tmp_path),
        "SANDUK_HOME": str(tmp_path / "home"),
        "SANDUK_CLOCK_FILE": str(clock),
        "DJANGO_SETTINGS_MODULE": "sanduk_site.settings",
        "XDG_RUNTIME_DIR": str(tmp_path),
    }
    made = Installation("docker", tmp_path, environment)
    yield Home(made)
    for going in made.started:
        if going.process.poll() is None:
            going.process.kill()
            going.process.wait()


def add(home: Home, name: str) -> None:
    place = home.lay_out(name, "look", agent="pi", every="1m", args=[], gate="gate")
    (place / "gate").write_text("#!/bin/sh\nexit 1\n")
    (place / "gate").chmod(0o755)
    done = home.made.sanduk("assistant", "add", str(place))
    assert done.code == 0, done


def destination(home: Home, name: str, script: str, assistant: str) -> None:
    program = home.made.ground / name
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    done = home.made.sanduk(
        "destination", "add", name, "--command", str(program), "--for", assistant,
        "--timeout", "10m",
    )  # fmt: skip
    assert done.code == 0, done


def inside(home: Home, script: str) -> None:
    """Run a script as the installation itself would."""
    environment = {**home.made.environment, "PYTHONPATH": str(REPOSITORY)}
    begun = f"import django\ndjango.setup()\n{script}"
    subprocess.run([sys.executable, "-c", begun], check=True, env=environment, cwd=REPOSITORY)


def states(home: Home) -> dict[str, str]:
    """Of deliveries, by their destination."""
    rows = home.rows(
        "SELECT d.name, x.state FROM assistants_delivery x JOIN assistants_destination d "
        "ON d.id = x.destination_id"
    )
    return {row["name"]: row["state"] for row in rows}


def gone_by(home: Home, minutes: int) -> None:
    (home.made.ground / "clock").write_text(str(minutes * 60 + 1))


def said_no(home: Home, times: int) -> bool:
    """Whether gates were asked so many times, each slot once."""
    asked = [each for each in home.wakeups() if each["outcome"] == "gate"]
    return len({(each["name"], each["planned_at"]) for each in asked}) == len(asked) == times


@pytest.fixture
def hanging(home: Home) -> Going:
    """Serving, with one receiver that takes its time."""
    for name in ("daily", "other"):
        add(home, name)
    hangs = home.made.ground / "hangs"
    destination(home, "slow", f"touch {hangs}; exec sleep 300", "daily")
    destination(home, "quick", "cat >/dev/null", "other")
    inside(home, SAY.format(names=("daily", "other")))  # an approved item of each
    going = home.made.start("serve", "--interval", "2s").until("serving")
    eventually(hangs.exists, 20)
    return going


def test_every_slot_is_on_time_beside_a_receiver_that_hangs(home: Home, hanging: Going):
    for minute in (1, 2, 3):
        gone_by(home, minute)
        eventually(partial(said_no, home, 2 * minute), 15)

    eventually(lambda: states(home) == {"slow": "sending", "quick": "sent"}, 10)


def test_a_stop_does_not_wait_for_ever_for_a_receiver_that_hangs(home: Home, hanging: Going):
    hanging.signal(signal.SIGTERM).until("waiting for a delivery")
    hanging.signal(signal.SIGTERM)

    done = hanging.end(limit_s=15)

    assert done.code == 0
    assert "left in the middle" in done.err
    assert home.made.sanduk("deliver").code in (0, 1)
    assert states(home) == {"slow": "unknown", "quick": "sent"}


def test_a_worker_executes_a_run_whose_bell_was_lost(home: Home):
    """Its engine is down, which it finds out by trying."""
    home.made.environment["DOCKER_HOST"] = f"unix://{home.made.ground}/no.sock"
    assert home.made.sanduk("runs").code == 0
    inside(home, LOSE.format(place=str(home.made.ground / "w")))

    worker = home.made.start("worker").until("the worker is up")
    eventually(lambda: home.made.row["state"] == "ended", 40)

    row = home.made.row
    assert (row["outcome"], row["refused_by_host"]) == ("refused", 1)
    assert "docker" in row["reason"].lower()
    assert worker.signal(signal.SIGTERM).end(limit_s=60).code == 0
