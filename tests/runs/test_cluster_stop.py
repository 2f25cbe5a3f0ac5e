"""A cluster that is told to stop ends as soon as its workers have, whatever they were doing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.timeout(120)

BUSY_S = 4
NAPPING = """
import os, pathlib, time
def nap(number):
    pathlib.Path(__file__).with_name(f"napping-{os.getpid()}").touch()
    time.sleep(number)
"""
RING = """
import sys, django; django.setup()
from runs import queue
for _ in range(int(sys.argv[1])):
    queue.ring("napping.nap", int(sys.argv[2]), cluster=queue.RUNS)
"""


def environment(home: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "SANDUK_HOME": str(home),
        "SANDUK_MAX_RUNS": "2",
        "PYTHONPATH": str(home.parent),
        "DJANGO_SETTINGS_MODULE": "sanduk_site.settings",
    }


def told(home: Path, *words: str) -> None:
    done = subprocess.run(
        [sys.executable, *words], env=environment(home), capture_output=True, timeout=60
    )
    assert done.returncode == 0, done


@pytest.mark.parametrize("bells", [2, 4])
def test_two_workers_at_work_and_bells_that_wait_do_not_hold_it_up(tmp_path: Path, bells: int):
    home = tmp_path / "home"
    (tmp_path / "napping.py").write_text(NAPPING)
    told(home, "-m", "sanduk_site", "runs")
    words = [sys.executable, "-m", "sanduk_site", "cluster", str(os.getpid()), "runs"]
    env = {**environment(home), "Q_CLUSTER_NAME": "runs"}
    with subprocess.Popen(words, env=env, start_new_session=True) as cluster:
        try:
            told(home, "-c", RING, str(bells), str(BUSY_S))
            deadline = time.monotonic() + 30
            while len(list(tmp_path.glob("napping-*"))) < 2:
                assert time.monotonic() < deadline
                time.sleep(0.05)
            cluster.send_signal(signal.SIGTERM)

            assert cluster.wait(BUSY_S + 20) == 0
        finally:
            if cluster.poll() is None:
                os.killpg(cluster.pid, signal.SIGKILL)
