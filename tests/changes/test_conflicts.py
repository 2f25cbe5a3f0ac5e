"""Two results are merged for real; names alone say nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from changes.bundle import bring
from changes.conflicts import against
from changes.git import GitError
from tests.changes.making import (
    Scene,
    commit,
    person_git,
    repository,
    scene,
    text_of,
    write,
)

LINES = b"".join(b"line %d\n" % n for n in range(40))


@pytest.fixture
def long(tmp_path: Path) -> Scene:
    return scene(tmp_path / "w", repository(tmp_path / "r", {"long.txt": LINES, "other": b"1\n"}))


def results(made: Scene, *edits: dict[str, bytes | None]) -> list[str]:
    """The tree of each edit of the untouched clone."""
    found = []
    for edit in edits:
        base = {
            name: (made.clone / name).read_bytes() for name in edit if (made.clone / name).exists()
        }
        for name, data in edit.items():
            if data is None:
                (made.clone / name).unlink()
            else:
                write(made.clone, {name: data})
        found.append(made.read().tree)
        for name in edit:
            (made.clone / name).unlink(missing_ok=True)
        write(made.clone, base)
    return found


def test_edits_of_one_line_conflict(long):
    one, two = results(long, {"long.txt": b"one\n" + LINES[7:]}, {"long.txt": b"two\n" + LINES[7:]})

    assert against(long.store, long.base, one, two) == (b"long.txt",)


def test_edits_of_one_file_far_apart_do_not(long):
    one, two = results(long, {"long.txt": b"one\n" + LINES}, {"long.txt": LINES + b"two\n"})

    assert against(long.store, long.base, one, two) == ()


def test_the_same_edit_twice_does_not(long):
    (one,) = results(long, {"long.txt": b"one\n"})

    assert against(long.store, long.base, one, one) == ()


def test_an_edit_of_what_the_other_deleted_conflicts(long):
    one, two = results(long, {"other": b"2\n"}, {"other": None})

    assert against(long.store, long.base, one, two) == (b"other",)
    assert against(long.store, long.base, two, one) == (b"other",)


def test_a_file_and_a_directory_of_one_name_conflict(long):
    one, two = results(long, {"new": b"1\n"}, {"new/x": b"2\n"})
    (long.clone / "new").rmdir()

    assert against(long.store, long.base, one, two)


def test_an_edit_of_what_the_other_renamed_is_merged(long):
    one, two = results(long, {"long.txt": b"one\n" + LINES}, {"long.txt": None, "moved.txt": LINES})

    assert against(long.store, long.base, one, two) == ()


def test_every_path_is_named_whatever_it_is_called(long):
    odd = ["line\nfeed", "-x", "ü"]
    one, two = results(long, dict.fromkeys(odd, b"1\n"), dict.fromkeys(odd, b"2\n"))

    assert against(long.store, long.base, one, two) == tuple(sorted(n.encode() for n in odd))


def test_attributes_cannot_have_it_merged(tmp_path):
    files = {".gitattributes": b"* merge=ours\n*.txt merge=union\n", "a.txt": b"1\n"}
    made = scene(tmp_path / "w", repository(tmp_path / "r", files))
    one, two = results(made, {"a.txt": b"2\n"}, {"a.txt": b"3\n"})

    assert against(made.store, made.base, one, two) == (b"a.txt",)


def test_it_is_asked_against_the_branch_as_it_is_now(long):
    write(long.repository, {"long.txt": b"meanwhile\n" + LINES[7:]})
    meanwhile = commit(long.repository, "meanwhile")
    now = bring(long.repository, None, long.store)
    one, two = results(long, {"long.txt": b"one\n" + LINES[7:]}, {"other": b"2\n"})

    assert now == meanwhile == bring(long.repository, "main", long.store)
    assert against(long.store, long.base, one, now) == (b"long.txt",)
    assert against(long.store, long.base, two, now) == ()
    assert text_of(person_git(long.store.path, "rev-list", "--count", now)) == "1"
    person_git(long.store.path, "fsck", "--strict")


def test_what_is_not_in_the_store_is_an_error(long):
    (one,) = results(long, {"other": b"2\n"})
    with pytest.raises(GitError):
        against(long.store, long.base, one, "1" * 40)
    with pytest.raises(GitError, match="no object id"):
        against(long.store, "HEAD", one, long.base)


def test_a_merge_moves_no_reference(long):
    before = long.store.git("for-each-ref")
    one, two = results(long, {"other": b"2\n"}, {"other": b"3\n"})
    against(long.store, long.base, one, two)

    assert long.store.git("for-each-ref") == before
