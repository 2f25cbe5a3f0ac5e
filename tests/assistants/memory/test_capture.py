"""Reading a workspace: content decides, nothing is followed, and what is left out is named."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

import pytest

from assistants.memory import capture as capturing
from assistants.memory.capture import MB, Captured, capture
from assistants.memory.manifest import Damaged, Entry, Manifest, decoded
from assistants.memory.store import PIECE, Store
from tests.accounts import acting_as, needs_root, open_directory


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def read(work: Path, store: Store, *, max_bytes: int = 512 * MB, reports=()) -> Captured:
    return capture(
        str(work), store, max_bytes=max_bytes, is_kept_report=lambda sha256: sha256 in reports
    )


def left_out(captured: Captured) -> dict[str, str]:
    return {each.path: each.why for each in captured.left_out}


def test_an_unchanged_workspace_has_the_same_digest_and_nothing_is_written(work, store):
    (work / "a").mkdir()
    (work / "a" / "notes").write_text("one\n")
    first = read(work, store)
    there = sorted(store.root.rglob("*"))

    assert read(work, store).manifest.digest == first.manifest.digest
    assert sorted(store.root.rglob("*")) == there
    assert [entry.path for entry in first.manifest.entries] == [b"a", b"a/notes"]
    assert (first.manifest.files, first.manifest.size) == (1, 4)


def test_a_same_size_edit_with_its_times_put_back_shows(work, store):
    file = work / "notes"
    file.write_text("trust me")
    first, facts = read(work, store), file.stat()
    with file.open("r+") as opened:
        opened.write("TRUST ME")
    os.utime(file, ns=(facts.st_atime_ns, facts.st_mtime_ns))

    assert file.stat().st_mtime_ns == facts.st_mtime_ns
    assert read(work, store).manifest.digest != first.manifest.digest


def test_two_files_that_swap_names_show(work, store):
    (work / "a").write_text("1")
    (work / "b").write_text("2")
    first = read(work, store)
    (work / "a").rename(work / "c")
    (work / "b").rename(work / "a")
    (work / "c").rename(work / "b")

    assert read(work, store).manifest.digest != first.manifest.digest


def test_a_hard_link_shows_as_a_file_of_its_own(work, store):
    (work / "a").write_text("same")
    first = read(work, store)
    os.link(work / "a", work / "b")
    found = read(work, store).manifest

    assert found.digest != first.manifest.digest
    assert len(found.objects()) == 1
    assert found.files == 2


def test_times_alone_are_no_memory_and_modes_are(work, store):
    (work / "a").write_text("same")
    first = read(work, store)
    os.utime(work / "a", (1, 1))
    assert read(work, store).manifest.digest == first.manifest.digest
    (work / "a").chmod(0o755)

    assert read(work, store).manifest.digest != first.manifest.digest


def test_a_link_is_kept_as_a_link_and_what_it_names_is_not_read(work, store, tmp_path):
    (tmp_path / "secret").write_text("root:secret")
    (work / "file").symlink_to(tmp_path / "secret")
    (work / "directory").symlink_to(tmp_path)
    (work / "nowhere").symlink_to("gone")
    found = read(work, store)

    assert {entry.kind for entry in found.manifest.entries} == {"link"}
    assert not found.manifest.objects()
    assert store.names() == set()
    assert not found.left_out


def test_a_name_that_becomes_a_link_between_listing_and_opening_is_not_followed(
    work, store, tmp_path, monkeypatch
):
    (tmp_path / "secret").write_text("root:secret")
    (work / "a").write_text("mine")
    regular = capturing.tree.regular

    def swapped(parent: int, name: str):
        (work / "a").unlink()
        (work / "a").symlink_to(tmp_path / "secret")
        return regular(parent, name)

    monkeypatch.setattr(capturing.tree, "regular", swapped)
    found = read(work, store)

    assert found.manifest == Manifest()
    assert left_out(found) == {"a": "it became something else while it was read"}


def test_a_directory_that_becomes_a_link_is_not_entered(work, store, tmp_path, monkeypatch):
    (tmp_path / "host").mkdir()
    (tmp_path / "host" / "secret").write_text("root:secret")
    (work / "a").mkdir()
    below = capturing.tree.below

    def swapped(parent: int, name: str):
        (work / "a").rmdir()
        (work / "a").symlink_to(tmp_path / "host")
        return below(parent, name)

    monkeypatch.setattr(capturing.tree, "below", swapped)
    found = read(work, store)

    assert found.manifest == Manifest()
    assert left_out(found) == {"a": "it became something else while it was read"}
    assert store.names() == set()


def test_pipes_and_sockets_are_named_and_do_not_block(work, store, monkeypatch):
    os.mkfifo(work / "pipe")
    monkeypatch.chdir(work)  # the path of a socket may be no longer than 108 bytes
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
        found = read(work, store)

    assert left_out(found).keys() == {"pipe", "socket"}
    assert not found.loses
    assert found.manifest == Manifest()


def test_a_nested_repository_is_kept_whole(work, store):
    (work / "clone" / ".git" / "objects").mkdir(parents=True)
    (work / "clone" / ".git" / "config").write_text("[core]\n")
    found = read(work, store).manifest

    assert b"clone/.git/config" in found.by_path()
    assert b"clone/.git/objects" in found.by_path()


@pytest.mark.parametrize(
    "name",
    [b"new\nline", b"\xff\xfe not UTF-8", b" ", b"-rf", b"x" * 255, "ü‮txt".encode(), b"\x1b[2J"],
)
def test_odd_names_are_kept_byte_by_byte(work, store, name):
    Path(os.fsdecode(bytes(work) + b"/" + name)).write_text("odd")
    found = read(work, store).manifest

    assert [entry.path for entry in found.entries] == [name]
    assert store.load(found.digest) == found


def test_what_is_over_the_size_is_left_out_and_the_rest_is_kept(work, store):
    (work / "a-large").write_bytes(bytes(2 * MB))
    (work / "b-small").write_text("small")
    found = read(work, store, max_bytes=1 * MB)

    assert [entry.path for entry in found.manifest.entries] == [b"b-small"]
    assert left_out(found) == {"a-large": "2.0 MB are more than is left of 1 MB"}
    assert found.loses


def test_a_sparse_file_counts_as_what_it_reads_and_takes_no_time(work, store):
    with (work / "sparse").open("wb") as file:
        file.truncate(2**42)
    found = read(work, store)

    assert found.manifest == Manifest()
    assert "sparse" in left_out(found)


def test_a_file_of_many_pieces_is_kept_whole_and_once(work, store):
    data = os.urandom(3 * PIECE + 17)
    (work / "large").write_bytes(data)
    (work / "copy").write_bytes(data)
    found = read(work, store).manifest
    [name] = found.objects()

    assert b"".join(store.content(name)) == data
    assert store.names() == {name}


def test_a_set_id_bit_is_not_kept_and_that_is_said(work, store):
    (work / "a").write_text("x")
    (work / "a").chmod(0o4755)
    found = read(work, store)

    assert found.manifest.by_path()[b"a"].mode == 0o755
    assert left_out(found) == {"a": "kept without its set-id bit"}
    assert not found.loses


def test_directories_beyond_the_depth_are_left_out_and_named(work, store):
    here = os.open(work, os.O_RDONLY)
    for _ in range(capturing.MAX_DEPTH + 50):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    found = read(work, store)

    assert len(found.manifest.entries) == capturing.MAX_DEPTH
    [why] = left_out(found).values()
    assert why == "it is more than 256 directories deep"


def test_entries_beyond_the_number_are_counted(work, store, monkeypatch):
    monkeypatch.setattr(capturing, "MAX_ENTRIES", 3)
    monkeypatch.setattr(capturing, "TOLD", 1)
    for top in "ab":
        (work / top).mkdir()
        for name in "123":
            (work / top / name).touch()
    found = read(work, store)

    assert len(found.manifest.entries) == 3
    assert found.left_out[-1].why == "and 1 more"
    assert found.loses


@needs_root
def test_what_this_account_may_not_read_is_named():
    with open_directory() as work, open_directory() as home:
        (work / "shut").write_text("x")
        (work / "shut").chmod(0)
        (work / "closed").mkdir(mode=0)
        (work / "open").write_text("y")
        with acting_as():
            found = read(work, Store(home / "store"))

    assert left_out(found) == {
        "closed": "this account may not read it",
        "shut": "this account may not read it",
    }
    assert [entry.path for entry in found.manifest.entries] == [b"open"]


def test_a_file_that_changes_while_it_is_read_is_kept_as_read_and_named(work, store, monkeypatch):
    file = work / "busy"
    file.write_text("0")
    read_some, count = os.read, iter(range(1, 100))

    def growing(descriptor: int, size: int) -> bytes:
        data = read_some(descriptor, size)
        with file.open("a") as opened:
            opened.write(str(next(count)))
        return data

    monkeypatch.setattr(capturing.os, "read", growing)
    found = read(work, store)

    assert left_out(found) == {"busy": "kept as it was read, and it changed meanwhile"}
    [entry] = found.manifest.entries
    assert len(b"".join(store.content(entry.sha256))) == entry.size


def test_a_file_that_goes_while_it_is_looked_at_is_not_there(work, store, monkeypatch):
    (work / "a").write_text("x")

    def gone(parent: int, name: str):
        raise FileNotFoundError(name)

    monkeypatch.setattr(capturing.tree, "regular", gone)

    assert read(work, store) == Captured()


def test_a_report_that_is_stored_with_its_run_is_no_memory(work, store):
    (work / "REPORT.md").write_text("done")
    (work / "sub").mkdir()
    (work / "sub" / "REPORT.md").write_text("done")
    found = read(work, store).manifest
    [name] = found.objects()

    assert b"REPORT.md" in found.by_path()
    kept = read(work, store, reports=[name]).manifest
    assert [entry.path for entry in kept.entries] == [b"sub", b"sub/REPORT.md"]


def test_a_missing_workspace_is_an_empty_memory_and_a_file_in_its_place_is_refused(tmp_path, store):
    assert read(tmp_path / "gone", store) == Captured()
    (tmp_path / "file").touch()

    with pytest.raises(NotADirectoryError):
        read(tmp_path / "file", store)


def test_the_store_is_closed_to_others(work, store):
    (work / "a").write_text("x")
    read(work, store)

    assert stat.S_IMODE(store.root.stat().st_mode) == 0o700


def test_a_damaged_list_is_refused_whatever_is_wrong_with_it():
    good = Manifest.of([Entry(b"a b", "link", 0, target=b"c d"), Entry(b"x", "directory", 0o755)])
    assert decoded(good.encoded) == good
    for bad in (b"", b"other", good.encoded[:-8], good.encoded.replace(b"d 755", b"q 755")):
        with pytest.raises(Damaged):
            decoded(bad)
