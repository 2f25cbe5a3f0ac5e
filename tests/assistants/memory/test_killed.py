"""Killed with SIGKILL at any point: the old memory or the new one, never half of one."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from assistants.memory import restoring
from assistants.memory.capture import MB, Captured, capture
from assistants.memory.manifest import Manifest
from assistants.memory.store import Store

ROOT = Path(__file__).resolve().parents[3]
# what Python tells an audit hook about files; between two of these, nothing on the disk changes
# but the content of an open file
CALLS = ("open", "os.", "shutil.", "ctypes.", "fcntl.")


def read(work: Path, store: Store) -> Captured:
    return capture(str(work), store, max_bytes=64 * MB, is_kept_report=lambda _: False)


def killed_at(step: int, act: Callable[[], object]) -> bool:
    """Do `act` in a process that kills itself before its call number `step`; whether it did."""
    child = os.fork()
    if child == 0:
        count = 0

        def hook(event: str, _: object) -> None:
            nonlocal count
            if event.startswith(CALLS):
                count += 1
                if count == step:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(hook)
        try:
            act()
        except BaseException:  # noqa: BLE001 - the parent is told by the code
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return True
    assert os.WEXITSTATUS(status) == 0
    return False


def assert_whole(store: Store, manifest: Manifest) -> None:
    for sha256 in manifest.objects():
        assert b"".join(store.content(sha256))


def test_a_killed_snapshot_leaves_whole_contents_only_and_the_next_one_is_right(tmp_path):
    work, store = tmp_path / "work", Store(tmp_path / "store")
    work.mkdir()
    step, kills = 0, 0
    while True:
        step += 1
        (work / "notes").write_text(f"version {step}")
        (work / f"file-{step % 5}").write_text(f"also {step}")

        def take() -> None:
            with store.locked():
                read(work, store)

        was_killed = killed_at(step, take)
        kills += was_killed
        for name in store.names():
            assert b"".join(store.content(name))  # raises when it is another content
        for path in (store.root / "lists").iterdir():
            assert_whole(store, store.load(path.name))
        if not was_killed:
            break

    with store.locked():
        assert not list((store.root / "incoming").iterdir())
        again = read(work, store)
    assert_whole(store, again.manifest)
    assert kills > 20


@pytest.mark.parametrize("can_swap", [True, False])
def test_a_killed_restore_leaves_the_old_workspace_or_the_new_one(tmp_path, can_swap, monkeypatch):
    if not can_swap:
        monkeypatch.setattr(restoring.ctypes, "CDLL", lambda *_, **__: object())
    work, store = tmp_path / "home" / "workspace", Store(tmp_path / "store")
    (work / "sub").mkdir(parents=True)
    (work / "sub" / "notes").write_text("one")
    (work / "link").symlink_to("sub")
    old = read(work, store).manifest
    (work / "sub" / "notes").write_text("two")
    (work / "more").write_text("more")
    new = read(work, store).manifest
    step, seen = 0, set()
    while True:
        step += 1
        restoring.replace(work, old, store, keep_old=False)
        was_killed = killed_at(step, lambda: restoring.replace(work, new, store, keep_old=False))
        restoring.mend(work)
        found = read(work, store).manifest
        assert found in (old, new)
        assert [each.name for each in work.parent.iterdir()] == ["workspace"]
        seen.add(found.digest)
        if not was_killed:
            assert found == new
            break

    assert seen == {old.digest, new.digest}
    assert step > 20


SETUP = """
import os, sys, django
os.environ["DJANGO_SETTINGS_MODULE"] = "sanduk_site.settings"
django.setup()
from runs.home import prepare
prepare()
from assistants.config import Config
from assistants.models import Assistant
Assistant.objects.create(name="scout", directory=sys.argv[1], config=Config().stored())
"""
CHECK = """
import os, django
os.environ["DJANGO_SETTINGS_MODULE"] = "sanduk_site.settings"
django.setup()
from assistants.memory.snapshots import store_of
from assistants.models import Assistant
scout = Assistant.objects.get()
store = store_of(scout)
for row in scout.snapshots.all():
    for sha256 in store.load(row.digest).objects():
        assert b"".join(store.content(sha256))
print(scout.snapshots.count())
"""


def test_every_row_is_of_a_whole_memory_however_often_the_command_was_killed(tmp_path):
    home = tmp_path / "scout"
    (home / "workspace").mkdir(parents=True)
    environment = {**os.environ, "SANDUK_HOME": str(tmp_path / "state")}
    del environment["DJANGO_SETTINGS_MODULE"]  # that of the tests has a directory of its own

    def python(*words: str) -> list[str]:
        return [sys.executable, *words]

    def done(*words: str) -> str:
        command = python(*words)
        return subprocess.run(
            command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True
        ).stdout

    done("-c", SETUP, str(home))
    take = ("-m", "sanduk_site", "memory", "scout", "take", "--json")
    began = time.monotonic()
    done(*take)
    whole_s = time.monotonic() - began
    for number in range(6):
        for name in range(200):
            (home / "workspace" / f"{name}").write_text(f"{number} {name}\n" * 50)
        process = subprocess.Popen(
            python(*take), cwd=ROOT, env=environment, stdout=subprocess.DEVNULL
        )
        time.sleep(whole_s * random.uniform(0.5, 1.2))  # noqa: S311 - only a moment
        process.kill()
        process.wait()
        done("-c", CHECK)
    done(*take)

    assert int(done("-c", CHECK)) >= 2
