"""Names that are twins elsewhere, files git reads itself, and how much is taken."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from changes import objects
from changes.tree import Limits
from runs.refusal import Refusal
from tests.changes.making import listed, names, repository, scene


@pytest.mark.parametrize(
    ("new", "other"),
    [("readme.md", "README.md"), ("LIB/a.py", "LIB"), ("lib/A.py", "lib/a.py"),
     ("README.md\u200d", "README.md"), ("\uff52un.sh", "run.sh")],
)  # fmt: skip
def test_a_new_name_that_another_system_takes_for_one_there_is_refused(new, other, made):
    made.write({new: b"evil", "fine": b"1"})

    result = made.read()
    assert list(names(result)) == [new.encode()]
    assert "is the same name as" in names(result)[new.encode()]
    assert set(made.changed(result)) == {b"fine"}
    assert other


def test_of_two_new_twins_one_lands(made):
    composed, decomposed = "é".encode(), "e\u0301".encode()
    made.write({composed: b"1", decomposed: b"2"})

    result = made.read()
    assert len(names(result)) == 1
    assert len(made.changed(result)) == 1


def test_a_name_may_change_its_case(made):
    (made.clone / "README.md").rename(made.clone / "Readme.md")
    (made.clone / "lib").rename(made.clone / "Lib")

    result = made.read()
    assert names(result) == {}
    assert set(made.changed(result)) == {b"Readme.md", b"Lib/a.py", b"Lib/b.py"}


def test_twins_of_the_base_stay_and_may_be_edited(tmp_path):
    made = scene(tmp_path / "w", repository(tmp_path / "r", {"A/x": b"1", "a/x": b"2"}))
    made.write({"A/x": b"3", "a/y": b"4"})

    result = made.read()
    assert names(result) == {}
    assert set(made.changed(result)) == {b"A/x", b"a/y"}


@pytest.mark.parametrize("name", [".gitmodules", ".GITMODULES", "gitmod~1", "sub/.gitmodules"])
def test_a_link_where_git_follows_none_is_refused(name, made):
    (made.clone / "sub").mkdir()
    (made.clone / name).symlink_to("README.md")

    assert names(made.read()) == {name.encode(): "is a link where git follows none"}


@pytest.mark.parametrize(
    "text",
    ['[submodule "x"]\n\tpath = x\n\turl = -u./evil\n',
     '[submodule "../x"]\n\tpath = x\n\turl = y\n',
     '[submodule "x"]\n\tpath = -x\n\turl = y\n'],
)  # fmt: skip
def test_a_hostile_gitmodules_is_refused_and_the_rest_lands(text, made):
    made.write({".gitmodules": text.encode(), "fine": b"1"})

    result = made.read()
    assert "does not pass git's own check" in names(result)[b".gitmodules"]
    assert set(made.changed(result)) == {b"fine"}


def test_an_endless_line_of_attributes_is_refused_and_the_good_file_lands(made):
    made.write({"a/.gitattributes": b"* " + b"x" * 5000 + b"\n", "b/.gitattributes": b"* text\n"})

    result = made.read()
    assert list(names(result)) == [b"a/.gitattributes"]
    assert set(made.changed(result)) == {b"b/.gitattributes"}


def nest(directory: Path, name: str, depth: int) -> None:
    """Directories inside each other, deeper than a path reaches."""
    here = os.open(directory, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=here)
        here, above = os.open(name, os.O_RDONLY, dir_fd=here), here
        os.close(above)
    os.close(here)


@pytest.mark.parametrize(
    ("name", "depth", "reason"),
    [("d" * 200, 20, "is longer than 3000 bytes"), ("d", 300, "lies deeper than 256 directories")],
    ids=["long", "deep"],
)
def test_a_path_beyond_what_systems_open_is_refused(name, depth, reason, made):
    nest(made.clone, name, depth)

    assert [one.reason for one in made.read().refused] == [reason]


def test_a_file_larger_than_the_limit_is_refused_without_reading_it(made):
    with (made.clone / "huge").open("wb") as file:
        file.truncate(1 << 40)
    with (made.clone / "README.md").open("wb") as file:
        file.truncate(1 << 40)

    result = made.read()
    assert set(names(result)) == {b"huge", b"README.md"}
    assert "holds 1099511627776 bytes, more than 128 MB" in names(result)[b"huge"]
    assert result.tree == made.provided.base_tree


def test_a_hundred_megabytes_land_exactly(made):
    with (made.clone / "big").open("wb") as file:
        file.truncate(100 << 20)
        file.seek(77 << 20)
        file.write(b"in the middle")

    result = made.read()
    assert names(result) == {}
    assert made.store.sizes([made.changed(result)[b"big"].new_id]).popitem()[1] == 100 << 20
    again = made.read()
    assert again.tree == result.tree


def test_new_content_is_limited_in_all_and_what_is_old_does_not_count(tmp_path):
    old = {f"old{n}": bytes([n]) * 600_000 for n in range(5)}
    made = scene(tmp_path / "w", repository(tmp_path / "r", old))
    made.write({"a": b"a" * 600_000, "b": b"b" * 600_000})

    result = made.read(limits=Limits(new_bytes=1 << 20))
    assert names(result) == {b"b": "is more than 1 MB of new content"}
    assert set(made.changed(result)) == {b"a"}


def test_no_more_is_read_than_there_is_room_for(tmp_path, monkeypatch):
    files = {f"old{n}": bytes([n]) * 1000 for n in range(20)}
    made = scene(tmp_path / "w", repository(tmp_path / "r", files))
    for name in [*files, *(f"new{n}" for n in range(20))]:
        with (made.clone / name).open("wb") as file:
            file.truncate(1 << 20)
    monkeypatch.setattr(objects, "_MUCH", 2 << 20)
    read, real = [], objects._pieces
    monkeypatch.setattr(objects, "_pieces", lambda fd, size: read.append(size) or real(fd, size))

    result = made.read(limits=Limits(new_bytes=4 << 20))
    assert len(made.changed(result)) == 4
    assert len(names(result)) == 36
    assert sum(size for size in read if size == 1 << 20) <= 4 << 20


def test_more_names_than_the_limit_are_refused_as_a_whole(made):
    with pytest.raises(Refusal, match="more than 5 names"):
        made.read(limits=Limits(entries=5))


def test_what_is_ignored_does_not_count_however_much_it_is(made):
    made.write({f"dist/{n % 7}/{n}": b"" for n in range(200)})

    result = made.read(limits=Limits(entries=100))
    assert result.ignored_created[0].path == b"dist/"
    assert 100 <= result.ignored_created[0].files <= 200


def test_a_file_that_grows_while_it_is_read_is_refused(made, monkeypatch):
    from changes import tree

    real = tree.regular

    def growing(directory: int, name: str):
        descriptor, facts = real(directory, name)
        if name == "README.md":
            with (made.clone / name).open("ab") as file:
                file.write(b"more")
        return descriptor, facts

    monkeypatch.setattr(tree, "regular", growing)
    result = made.read()
    assert names(result) == {b"README.md": "changed while it was read"}
    assert result.tree == made.provided.base_tree


def test_a_large_file_cut_while_it_is_read_is_refused_and_the_rest_lands(made, monkeypatch):
    from changes import tree

    made.write({"large": bytes(8 << 20), "other": b"1"})
    real = tree.regular

    def shrinking(directory: int, name: str):
        descriptor, facts = real(directory, name)
        if name == "large":
            os.truncate(made.clone / name, 5 << 20)
        return descriptor, facts

    monkeypatch.setattr(tree, "regular", shrinking)
    result = made.read()
    assert names(result) == {b"large": "changed while it was read"}
    assert set(made.changed(result)) == {b"other"}


def test_a_file_swapped_for_a_link_while_it_is_read_is_refused(made, monkeypatch):
    from changes import tree

    real = tree.regular

    def swapped(directory: int, name: str):
        if name == "README.md":
            (made.clone / name).unlink()
            (made.clone / name).symlink_to("/etc/passwd")
        return real(directory, name)

    monkeypatch.setattr(tree, "regular", swapped)
    assert names(made.read()) == {b"README.md": "was swapped while it was read"}


def test_what_may_not_be_read_is_refused_and_the_base_stays(made):
    if os.geteuid() != 0:
        pytest.skip("only root can become somebody else")
    (made.clone / "README.md").chmod(0)
    (made.clone / "lib").chmod(0)
    for path in (made.clone, *made.clone.parents):
        if path.stat().st_mode & 0o005 != 0o005:
            path.chmod(path.stat().st_mode | 0o055)
    for path in (made.store.path, *made.store.path.rglob("*")):
        os.chown(path, 12345, 12345)
    os.seteuid(12345)
    try:
        result = made.read()
    finally:
        os.seteuid(0)

    assert set(names(result)) == {b"README.md", b"lib"}
    assert result.tree == made.provided.base_tree


def test_thousands_of_files_land(made):
    made.write({f"many/{n % 100}/{n}": b"%d" % n for n in range(5_000)})

    result = made.read()
    assert result.files == 5_000
    assert len(listed(made.store.path, result.tree)) == 5_000 + len(
        listed(made.store.path, made.provided.base_tree)
    )
