"""An owner's name proves whether the process that wrote it is gone, or says that it cannot tell."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from runs import clock, lease
from runs.lease import Watcher, owner, owner_is
from tests.factories import make_run

SAY_OWNER = """
import os, sys
os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
import django; django.setup()
from runs.lease import owner
print(owner(), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def steered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "clock"
    file.write_text("0")
    monkeypatch.setenv(clock.STEER, str(file))
    return file


@pytest.fixture
def other() -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Another process of ours and its owner name."""
    with subprocess.Popen(
        [sys.executable, "-c", SAY_OWNER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    ) as process:
        assert process.stdout is not None
        yield process, process.stdout.readline().strip()
        process.kill()


def changed(name: str, position: int, value: str) -> str:
    parts = name.split("/")
    parts[position] = value
    return "/".join(parts)


def test_this_process_is_alive():
    assert owner_is(owner()) == "alive"


def test_another_process_is_alive_until_it_is_killed_and_a_zombie_is_gone(other):
    process, name = other
    assert owner_is(name) == "alive"

    process.kill()
    deadline = time.monotonic() + 5
    while owner_is(name) == "alive" and time.monotonic() < deadline:
        time.sleep(0.02)

    assert process.returncode is None  # nobody has waited for it: it is a zombie now
    assert Path(f"/proc/{process.pid}").exists()
    assert owner_is(name) == "gone"
    process.wait()
    assert owner_is(name) == "gone"


def test_a_recycled_pid_is_gone():
    """Cronicle#789: a recycled pid must not keep a lease alive."""
    assert owner_is(changed(owner(), 4, "1")) == "gone"


def test_another_boot_is_gone():
    assert owner_is(changed(owner(), 1, "11111111-2222-3333-4444-555555555555")) == "gone"


def test_nothing_is_known_of_another_machine():
    assert owner_is(changed(owner(), 0, "another")) == "unknown"


def test_nothing_is_known_of_another_pid_namespace():
    assert owner_is(changed(owner(), 2, "1")) == "unknown"


def test_a_boot_without_an_id_proves_nothing(monkeypatch: pytest.MonkeyPatch):
    name = owner()
    monkeypatch.setattr(lease, "_boot", lambda: "unknown")

    assert owner_is(name) == "unknown"


@pytest.mark.parametrize(
    "name", ["", "nobody", "////", "a/b/c/d/e/f", "a/b/c/\x00/e", "machine/boot/1/²/5"]
)
def test_nothing_is_concluded_from_garbage(name):
    """L-6: a broken record neither crashes a command nor ends a run."""
    assert owner_is(name) == "unknown"


@pytest.mark.parametrize("pid", ["-1", "²", "٣", "1e3", "", "9" * 40])
def test_a_pid_that_is_no_number_never_raises(pid):
    assert owner_is(changed(owner(), 3, pid)) in ("unknown", "gone")


@pytest.mark.django_db
def test_a_live_owner_keeps_its_run_whatever_the_clocks_do(steered: Path):
    """A clock step or a sleeping laptop reaps nothing."""
    run = make_run(state="running", lease_owner=owner(), lease_until=clock.now())
    watcher = Watcher()

    for offset in ("0", "86400", "-86400", "1e9", "0"):
        steered.write_text(offset)
        assert not watcher.is_lost(run)


@pytest.mark.django_db
def test_a_dead_owner_loses_its_run_at_the_first_look():
    run = make_run(state="running", lease_owner=changed(owner(), 4, "1"))

    assert Watcher().is_lost(run)


@pytest.mark.django_db
def test_an_owner_elsewhere_loses_its_run_after_a_full_period_without_a_beat(
    steered: Path, settings
):
    settings.SANDUK_LEASE_SECONDS = 30
    run = make_run(state="running", lease_owner=changed(owner(), 0, "another"))
    watcher = Watcher()

    assert not watcher.is_lost(run)
    steered.write_text("29")
    assert not watcher.is_lost(run)
    steered.write_text("31")
    assert watcher.is_lost(run)


@pytest.mark.django_db
def test_a_beat_from_elsewhere_starts_the_period_anew(steered: Path, settings):
    settings.SANDUK_LEASE_SECONDS = 30
    run = make_run(state="running", lease_owner=changed(owner(), 0, "another"))
    watcher = Watcher()

    assert not watcher.is_lost(run)
    steered.write_text("29")
    run.lease_beats += 1
    assert not watcher.is_lost(run)
    steered.write_text("58")
    assert not watcher.is_lost(run)
    steered.write_text("60")
    assert watcher.is_lost(run)


@pytest.mark.django_db
def test_a_lease_long_past_on_the_wall_clock_is_not_lost_at_the_first_look():
    """The wall clock decides nothing: a watcher that just started has seen nothing yet."""
    run = make_run(
        state="running", lease_owner="another/b/1/2/3", lease_until=clock.now().replace(year=2001)
    )

    assert not Watcher().is_lost(run)
