"""Putting a snapshot back: the same memory, for the same owner, in one step."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assistants.memory import restoring
from assistants.memory.capture import MB, Captured, capture
from assistants.memory.manifest import Damaged
from assistants.memory.store import Store
from runs.refusal import Refusal
from tests.accounts import acting_as, needs_root, open_directory
from tests.assistants.memory.conftest import names


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "home" / "workspace").mkdir(parents=True)
    return tmp_path / "home" / "workspace"


def read(work: Path, store: Store) -> Captured:
    return capture(str(work), store, max_bytes=64 * MB, is_kept_report=lambda _: False)


def put(work: Path, captured: Captured, store: Store, *, keep_old: bool = False) -> Path | None:
    return restoring.replace(work, captured.manifest, store, keep_old=keep_old)


def beside(work: Path) -> list[str]:
    return names(work.parent)


def test_a_restored_workspace_is_the_same_memory(work, store):
    (work / "a" / "b").mkdir(parents=True)
    (work / "a" / "b" / "tool").write_text("#!/bin/sh\n")
    (work / "a" / "b" / "tool").chmod(0o755)
    (work / "a" / "b").chmod(0o555)  # made read-only when all is in it
    (work / "link").symlink_to("../../outside")
    (work / "empty").touch()
    first = read(work, store)
    (work / "a" / "b").chmod(0o755)
    (work / "a" / "b" / "tool").write_text("changed")
    (work / "new").write_text("new")

    assert put(work, first, store) is None
    assert read(work, store).manifest == first.manifest
    assert (work / "link").readlink() == Path("../../outside")
    assert beside(work) == ["workspace"]


ENTRY_NAMES = st.binary(min_size=1, max_size=12).filter(
    lambda name: name not in (b".", b"..") and b"/" not in name and b"\0" not in name
)
TREES = st.recursive(
    st.binary(max_size=40) | ENTRY_NAMES.map(lambda target: ("link", target)),
    lambda below: st.dictionaries(ENTRY_NAMES, below, max_size=4),
    max_leaves=12,
)


def plant(place: bytes, tree: object) -> None:
    if isinstance(tree, dict):
        Path(os.fsdecode(place)).mkdir(exist_ok=True)
        for name, below in tree.items():
            plant(place + b"/" + name, below)
    elif isinstance(tree, tuple):
        Path(os.fsdecode(place)).symlink_to(os.fsdecode(tree[1]))
    else:
        Path(os.fsdecode(place)).write_bytes(tree)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(ENTRY_NAMES, TREES, max_size=5), st.dictionaries(ENTRY_NAMES, TREES))
def test_any_tree_comes_back_in_the_place_of_any_other(first, second):
    with tempfile.TemporaryDirectory() as scratch:
        store, work = Store(Path(scratch) / "store"), Path(scratch) / "workspace"
        work.mkdir()
        plant(bytes(work), first)
        taken = read(work, store)
        restoring._remove(work)
        work.mkdir()
        plant(bytes(work), second)

        put(work, taken, store)

        assert read(work, store).manifest == taken.manifest
        assert store.load(taken.manifest.digest) == taken.manifest


def test_the_mode_of_the_workspace_stays(work, store):
    first = read(work, store)
    work.chmod(0o2750)
    put(work, first, store)

    assert stat.S_IMODE(work.stat().st_mode) == 0o2750


@needs_root
def test_all_that_is_restored_belongs_to_whom_the_workspace_belongs(work, store):
    (work / "a").mkdir()
    (work / "a" / "file").write_text("x")
    (work / "link").symlink_to("gone")
    first = read(work, store)
    os.chown(work, 1234, 5678)
    put(work, first, store)

    for path in (work, work / "a", work / "a" / "file", work / "link"):
        facts = path.lstat()
        assert (facts.st_uid, facts.st_gid) == (1234, 5678), path


@needs_root
def test_an_account_that_cannot_give_files_away_is_told(tmp_path):
    with open_directory() as home:
        (home / "workspace").mkdir()
        with acting_as(), pytest.raises(Refusal, match="belongs to uid 0"):
            put(home / "workspace", Captured(), Store(home / "store"))


def test_a_workspace_that_is_gone_is_made(work, store):
    (work / "a").write_text("x")
    first = read(work, store)
    restoring._remove(work)

    put(work, first, store)
    assert (work / "a").read_text() == "x"


def test_a_lost_content_leaves_the_workspace_as_it_was(work, store):
    (work / "a").write_text("one")
    first = read(work, store)
    (work / "a").write_text("two")
    [name] = first.manifest.objects()
    store.place(name).write_bytes(b"pthree")

    with pytest.raises(Damaged):
        put(work, first, store)
    assert (work / "a").read_text() == "two"
    assert beside(work) == ["workspace"]


def test_what_no_snapshot_holds_stays_beside_the_new_workspace_once(work, store):
    first = read(work, store)
    (work / "huge").write_text("pretend")
    aside = put(work, first, store, keep_old=True)

    assert aside is not None
    assert (aside / "huge").read_text() == "pretend"
    assert names(work) == []
    (work / "other").write_text("later")
    later = put(work, first, store, keep_old=True)
    assert later is not None
    assert beside(work) == sorted(["workspace", later.name])
    assert (later / "other").exists()


def test_a_hole_stays_a_hole(work, store):
    with (work / "sparse").open("wb") as file:
        file.write(b"begin")
        file.truncate(20 * MB)
    first = read(work, store)
    put(work, first, store)

    assert read(work, store).manifest == first.manifest
    assert (work / "sparse").stat().st_blocks * 512 < 5 * MB


def test_where_two_names_cannot_be_swapped_it_goes_in_two_steps(work, store, monkeypatch):
    class Old:
        """A C library without renameat2."""

    (work / "a").write_text("one")
    first = read(work, store)
    (work / "a").write_text("two")
    monkeypatch.setattr(restoring.ctypes, "CDLL", lambda *_, **__: Old())
    put(work, first, store)

    assert (work / "a").read_text() == "one"
    assert beside(work) == ["workspace"]


def test_a_workspace_that_lost_its_name_gets_it_back_and_leftovers_go(work):
    (work / "a").write_text("mine")
    work.rename(work.with_name(".workspace.old-123456"))
    (work.parent / ".workspace.restoring-654321" / "half").mkdir(parents=True)

    restoring.mend(work)

    assert (work / "a").read_text() == "mine"
    assert beside(work) == ["workspace"]


def test_a_tree_deeper_than_any_path_is_removed(work, store):
    first = read(work, store)
    here = os.open(work, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("deep", dir_fd=here)
        below = os.open("deep", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)

    put(work, first, store)
    assert beside(work) == ["workspace"]


@needs_root
def test_directories_without_leave_to_write_are_removed_by_an_ordinary_account():
    with open_directory() as home, acting_as():
        place = home / "tree"
        (place / "shut" / "in").mkdir(parents=True)
        (place / "shut" / "in" / "file").touch()
        (place / "shut" / "in").chmod(0)
        (place / "shut").chmod(0o500)
        place.chmod(0o500)

        restoring._remove(place)
        assert not place.exists()


def test_removing_follows_no_link(work, tmp_path):
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").touch()
    (work / "link").symlink_to(tmp_path / "kept")

    restoring._remove(work)
    assert (tmp_path / "kept" / "file").exists()
