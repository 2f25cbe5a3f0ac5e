"""A store is ours alone: nothing borrowed, nothing converted, and only full ids are words."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from changes.bundle import provide
from changes.git import GitError
from changes.store import object_id, opened, place
from tests.changes.making import Scene, commit, head, listed, person_git, repository, scene, write


@pytest.fixture
def made(tmp_path: Path) -> Scene:
    return scene(tmp_path / "w", repository(tmp_path / "r"))


def test_it_holds_the_base_and_nothing_of_the_history(tmp_path):
    source = repository(tmp_path / "r", {"old": b"what was removed\n"})
    removed = head(source, "HEAD:old")
    (source / "old").unlink()
    commit(source, "second")

    made = scene(tmp_path / "w", source)
    assert listed(made.store.path, made.base) == listed(source, "HEAD")
    assert not made.store.holds(removed)
    person_git(made.store.path, "fsck", "--strict")


def test_it_borrows_nothing(made):
    assert not (made.store.path / "objects" / "info" / "alternates").exists()

    hidden = made.repository / ".git" / "objects"
    hidden.rename(hidden.with_name("hidden"))
    assert dict(made.store.blobs([head_of(made, "README.md")])) == {
        head_of(made, "README.md"): b"hello\n"
    }


def head_of(made: Scene, path: str) -> str:
    return made.store.git("rev-parse", f"{made.base}:{path}").decode().strip()


def test_taking_the_same_base_again_changes_nothing(made):
    before = made.store.git("for-each-ref")
    made.store.take(made.provided.bundle, made.base, made.provided.shallow)

    assert made.store.git("for-each-ref") == before


def test_several_bases_are_taken_at_once(tmp_path):
    source = repository(tmp_path / "r")
    wanted = []
    for number in range(6):
        write(source, {"n": b"%d" % number})
        commit(source, f"number {number}")
        wanted.append(provide(source, directory=tmp_path))
    store = opened(tmp_path / "store.git")
    with ThreadPoolExecutor(6) as pool:
        took = [pool.submit(store.take, w.bundle, w.base_commit, w.shallow) for w in wanted]
        for one in took:
            one.result()

    person_git(store.path, "fsck", "--strict")
    assert all(store.holds(one.base_commit) for one in wanted)


@pytest.mark.parametrize("cut", [0, 10, 60, -30])
def test_a_broken_bundle_is_an_error(cut, made, tmp_path):
    data = made.provided.bundle.read_bytes()
    broken = tmp_path / "broken.bundle"
    broken.write_bytes(data[:cut])

    with pytest.raises(GitError):
        opened(tmp_path / "other.git").take(broken, made.base)


def test_a_bundle_without_the_commit_is_an_error(made):
    with pytest.raises(GitError):
        made.store.take(made.provided.bundle, "1" * 40)


def test_sixteen_openers_make_one_store(tmp_path):
    with ThreadPoolExecutor(16) as pool:
        stores = set(pool.map(lambda _: opened(tmp_path / "s.git"), range(16)))

    assert len(stores) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["s.git"]
    person_git(tmp_path / "s.git", "fsck", "--strict")


def test_another_object_format_is_refused(made):
    with pytest.raises(GitError, match="not of the format"):
        opened(made.store.path, object_format="sha256")
    with pytest.raises(GitError, match="no object format"):
        opened(made.store.path, object_format="md5")


@pytest.mark.parametrize(
    "text", ["HEAD", "", "-h" * 20, "A" * 40, "1" * 39, "1" * 41, "1" * 40 + "\n"]
)
def test_only_a_full_id_becomes_a_word_of_a_command(text):
    with pytest.raises(GitError, match="no object id"):
        object_id(text)


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".", "-a", "A", "x" * 65, "a.git"])
def test_no_id_leads_out_of_the_directory(name, tmp_path):
    with pytest.raises(GitError, match="no id of a repository"):
        place(tmp_path, name)


def test_an_id_has_its_place(tmp_path):
    assert place(tmp_path, "0a-b") == tmp_path / "0a-b.git"


def test_what_is_kept_outlives_a_pruning(made):
    store = made.store
    kept, lost = (
        store.git("hash-object", "-w", "--stdin", stdin=data).decode().strip()
        for data in (b"kept", b"lost")
    )
    store.keep("attempts/1", kept)
    store.git("prune", "--expire=now")
    assert store.holds(kept)
    assert not store.holds(lost)

    store.forget("attempts/1")
    store.git("prune", "--expire=now")
    assert not store.holds(kept)


def test_many_files_are_read_in_one_go(made):
    things = [
        made.store.git("hash-object", "-w", "--stdin", stdin=b"%d\n" % n).decode().strip()
        for n in range(3)
    ]

    assert [data for _, data in made.store.blobs(things * 400)] == [b"0\n", b"1\n", b"2\n"] * 400


def test_a_file_is_cut_at_the_limit_and_says_its_size(made):
    name = made.store.git("hash-object", "-w", "--stdin", stdin=b"0123456789").decode().strip()

    assert made.store.blob(name, limit=4).data == b"0123"
    assert made.store.blob(name, limit=4).cut
    assert made.store.blob(name, limit=10).data == b"0123456789"
    assert made.store.sizes([name, "1" * 40]) == {name: 10}


def test_only_files_are_read_as_files(made):
    with pytest.raises(GitError, match="where a file was expected"):
        list(made.store.blobs([made.provided.base_tree]))


def test_a_store_of_the_long_format_works(tmp_path):
    made = scene(tmp_path / "w", repository(tmp_path / "r", object_format="sha256"))

    assert len(made.base) == 64
    made.write({"new": b"1"})
    assert list(made.changed()) == [b"new"]
