"""Reading what somebody hostile wrote: by descriptor, following nothing, waiting for nothing."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

import pytest

from runs import tree
from runs.tree import NotARegularFile
from tests.accounts import acting_as, needs_root, open_directory

LIMIT = 1000


def read(root: Path, name: str, limit: int = LIMIT) -> tree.Content:
    with tree.opened(str(root)) as descriptor:
        return tree.read_file(descriptor, name, limit=limit)


@pytest.fixture
def secret(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("host") / "shadow"
    file.write_text("root:secret")
    return file


@pytest.fixture
def fds():
    """No descriptor may stay open, whatever happened."""
    before = len(list(Path("/proc/self/fd").iterdir()))
    yield
    assert len(list(Path("/proc/self/fd").iterdir())) == before


pytestmark = pytest.mark.usefixtures("fds")


@pytest.mark.parametrize("name", ["a.txt", "./a.txt", "//a.txt"])
def test_a_regular_file_is_read(tmp_path: Path, name):
    (tmp_path / "a.txt").write_bytes(b"hello")

    content = read(tmp_path, name)

    assert (content.data, content.size, content.cut) == (b"hello", 5, False)


def test_a_file_below_directories_is_read(tmp_path: Path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "c").write_bytes(b"deep")

    assert read(tmp_path, "a/b/c").data == b"deep"


@pytest.mark.parametrize("size", [LIMIT - 1, LIMIT, LIMIT + 1])
def test_a_file_is_cut_at_the_limit_exactly(tmp_path: Path, size):
    (tmp_path / "f").write_bytes(b"x" * size)

    content = read(tmp_path, "f")

    assert len(content.data) == min(size, LIMIT)
    assert content.cut == (size > LIMIT)
    assert content.size == size


def test_of_a_sparse_file_of_2_gib_only_the_first_bytes_are_read(tmp_path: Path):
    """L-8."""
    with (tmp_path / "f").open("wb") as file:
        file.truncate(2 * 2**30)

    content = read(tmp_path, "f")

    assert len(content.data) == LIMIT
    assert content.cut
    assert content.size == 2 * 2**30


def test_a_link_is_not_followed(tmp_path: Path, secret: Path):
    """pains 3.12: a symlink in the workspace reads host files."""
    (tmp_path / "f").symlink_to(secret)

    with pytest.raises(NotARegularFile):
        read(tmp_path, "f")


def test_a_dangling_link_is_not_taken_for_a_missing_file(tmp_path: Path):
    (tmp_path / "f").symlink_to(tmp_path / "nowhere")

    with pytest.raises(NotARegularFile):
        read(tmp_path, "f")


def test_a_directory_that_is_a_link_is_not_followed(tmp_path: Path, secret: Path):
    (tmp_path / "sub").symlink_to(secret.parent)

    with pytest.raises(NotARegularFile):
        read(tmp_path, "sub/shadow")


def test_the_root_itself_may_not_be_a_link(tmp_path: Path, secret: Path):
    (tmp_path / "work").symlink_to(secret.parent)

    with pytest.raises(NotADirectoryError):
        read(tmp_path / "work", "shadow")


@pytest.mark.parametrize(
    "name", ["../shadow", "a/../../shadow", "..", "", ".", "/", "a\0b", "x" * 300, "x" * 300 + "/f"]
)
def test_a_name_that_leads_out_or_nowhere_is_refused(tmp_path: Path, name):
    (tmp_path.parent / "shadow").write_text("secret")
    (tmp_path / "a").mkdir()

    with pytest.raises(NotARegularFile):
        read(tmp_path, name)


@pytest.mark.timeout(10)
def test_a_pipe_without_a_writer_is_refused_at_once(tmp_path: Path):
    os.mkfifo(tmp_path / "f")

    with pytest.raises(NotARegularFile):
        read(tmp_path, "f")


def test_a_socket_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("s")
        with pytest.raises(NotARegularFile):
            read(tmp_path, "s")


@needs_root
def test_a_device_is_refused(tmp_path: Path):
    try:
        os.mknod(tmp_path / "zero", 0o666 | stat.S_IFCHR, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("this root may not make a device")

    with pytest.raises(NotARegularFile):
        read(tmp_path, "zero")


def test_a_directory_is_refused(tmp_path: Path):
    (tmp_path / "f").mkdir()

    with pytest.raises(NotARegularFile):
        read(tmp_path, "f")


@pytest.mark.parametrize("name", ["f", "sub/f"])
def test_a_missing_file_is_missing(tmp_path: Path, name):
    with pytest.raises(FileNotFoundError):
        read(tmp_path, name)


def test_a_file_in_the_way_is_refused(tmp_path: Path):
    (tmp_path / "sub").write_text("")

    with pytest.raises(NotARegularFile):
        read(tmp_path, "sub/f")


def test_a_root_swapped_after_it_was_opened_leads_nowhere_else(tmp_path: Path, secret: Path):
    """agent-of-empires#3641: check the open descriptor, not the name."""
    root = tmp_path / "work"
    root.mkdir()
    (root / "shadow").write_text("mine")
    with tree.opened(str(root)) as descriptor:
        root.rename(tmp_path / "moved")
        root.symlink_to(secret.parent)
        content = tree.read_file(descriptor, "shadow", limit=LIMIT)

    assert content.data == b"mine"


def test_a_directory_swapped_for_a_link_while_it_is_read_never_leads_out(
    tmp_path: Path, secret: Path
):
    """The attacker swaps between every two of our system calls that take a name."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "shadow").write_text("mine")
    (tmp_path / "link").symlink_to(secret.parent)
    real_open = os.open
    swaps = 0

    def swapping_open(*args, **kwargs):
        nonlocal swaps
        swaps += 1
        (tmp_path / "sub").rename(tmp_path / "kept")
        (tmp_path / "link").rename(tmp_path / "sub")
        (tmp_path / "kept").rename(tmp_path / "link")
        return real_open(*args, **kwargs)

    refused = 0
    with pytest.MonkeyPatch.context() as patch, tree.opened(str(tmp_path)) as descriptor:
        patch.setattr(tree.os, "open", swapping_open)
        for _ in range(4):
            try:
                assert tree.read_file(descriptor, "sub/shadow", limit=LIMIT).data == b"mine"
            except NotARegularFile:
                refused += 1
    assert 0 < refused < 4
    assert swaps >= 4


@needs_root
def test_a_file_that_may_not_be_read_says_so():
    with open_directory() as root:
        (root / "f").write_text("closed")
        (root / "f").chmod(0o600)
        with acting_as(), pytest.raises(PermissionError):
            read(root, "f")
