"""What an agent may have done to its own git directory: it reaches nothing of ours."""

from __future__ import annotations

import hashlib
import os
import shutil
import zlib
from pathlib import Path

import pytest

from changes import clone_objects, series
from changes.clone_objects import ObjectLimits
from tests.changes.making import Scene, commit, head, person_git, repository, text_of

EVIL_MODULES = b'[submodule "x"]\n\tpath = x\n\turl = -u./evil\n'


def read(made: Scene, **options) -> series.Series:
    return series.read(made.clone, made.store, made.base, made.read().tree, **options)


def tree_with(made: Scene, *entries: tuple[str, bytes, str]) -> str:
    """A tree object of these modes, names and ids, which no git would make."""
    data = b"".join(
        mode.encode() + b" " + name + b"\0" + bytes.fromhex(thing) for mode, name, thing in entries
    )
    return written(made, "tree", data)


def written(made: Scene, kind: str, data: bytes, name: str = "") -> str:
    """An object in a file of its own in the clone, under its id, or another one's."""
    whole = f"{kind} {len(data)}\0".encode() + data
    name = name or hashlib.sha1(whole, usedforsecurity=False).hexdigest()
    place = made.clone / ".git" / "objects" / name[:2] / name[2:]
    place.parent.mkdir(exist_ok=True)
    place.unlink(missing_ok=True)
    place.write_bytes(zlib.compress(whole))
    return name


def blob(made: Scene, data: bytes = b"evil\n") -> str:
    return written(made, "blob", data)


def committed(made: Scene, tree: str, *parents: str) -> None:
    """HEAD is a commit of this tree on the base from now on; the files stay as they are."""
    above = "".join(f"parent {each}\n" for each in parents or (made.base,))
    who = "an agent <a@b.invalid> 1 +0000"
    data = f"tree {tree}\n{above}author {who}\ncommitter {who}\n\ndo it\n".encode()
    (made.clone / ".git" / "HEAD").write_text(written(made, "commit", data) + "\n")


def base_entries(made: Scene) -> list[tuple[str, bytes, str]]:
    said = person_git(made.clone, "ls-tree", "-z", made.base).split(b"\0")[:-1]
    found = []
    for each in said:
        facts, _, name = each.partition(b"\t")
        mode, _, thing = facts.decode().split(" ")
        found.append((mode.lstrip("0"), name, thing))
    return found


@pytest.mark.parametrize(("name", "why"), [
    (b".git", "git's own directory"),
    (b".GIT", "git's own directory"),
    (b"git~1", "git's own directory"),
    (b".g\xe2\x80\x8cit", "git's own directory"),
    (b"..", "no path below"),
    (b"../../evil", "no path below"),
    (b"/etc/evil", "no path below"),
    (b"a/.git/hooks/post-checkout", "git's own directory"),
    (b"n" * 300, "more than 255 bytes"),
    (b"README.MD", "the same name as README.md"),
])  # fmt: skip
def test_a_name_that_may_not_land_is_refused_in_a_commit_too(made, name, why):
    tree = tree_with(made, *base_entries(made), ("100644", name, blob(made)),
                     ("100644", b"zz", blob(made, b"good\n")))  # fmt: skip
    committed(made, tree)

    found = read(made)

    assert [each.path for each in found.refused] == [name]
    assert why in found.refused[0].reason
    listed = made.store.git("ls-tree", "-r", "-z", "--name-only", found.commits[0].tree)
    assert b"zz" in listed.split(b"\0")
    assert name not in listed.split(b"\0")


def test_a_submodule_and_a_repository_inside_are_refused_in_a_commit(made):
    inner = made.clone / "inner.git"
    for name in ("HEAD", "objects/x", "refs/x"):
        (inner / name).parent.mkdir(parents=True, exist_ok=True)
        (inner / name).write_text("x\n")
    commit(made.clone, "a repository")
    shutil.rmtree(inner)
    person_git(made.clone, "update-index", "--add", "--cacheinfo", f"160000,{made.base},sub")
    person_git(made.clone, "commit", "-q", "-m", "a submodule")
    made.write({"a": b"a\n"})
    commit(made.clone, "good")

    found = read(made)

    reasons = {each.path: each.reason for each in found.refused}
    assert "is a repository of its own" in reasons[b"sub"]
    assert "lies in a repository of its own" in reasons[b"inner.git/HEAD"]
    assert [each.message for each in found.commits] == ["good"]


def test_a_module_file_that_git_finds_hostile_is_refused_in_a_commit(made):
    made.write({".gitmodules": EVIL_MODULES, "a": b"a\n"})
    commit(made.clone, "hostile")
    (made.clone / ".gitmodules").unlink()
    commit(made.clone, "gone again")

    found = read(made)

    assert [each.path for each in found.refused] == [b".gitmodules"]
    assert [each.message for each in found.commits] == ["hostile"]


@pytest.mark.parametrize("leaf", ["a file", "nothing"])
def test_a_tree_without_end_makes_it_one_commit(made, monkeypatch, leaf):
    monkeypatch.setattr(series, "_TREE_MAX", 100_000)
    tree = tree_with(made, *([("100644", b"f", blob(made))] if leaf == "a file" else []))
    for _ in range(12):
        tree = tree_with(made, *(("40000", f"d{number}".encode(), tree) for number in range(10)))
    committed(made, tree)

    found = read(made)

    assert found.commits == ()
    assert "printed more than" in found.note


def test_objects_of_another_repository_are_out_of_reach(made, tmp_path):
    other = repository(tmp_path / "other", {"private": b"the other's\n"})
    (made.clone / ".git" / "objects" / "info").mkdir(exist_ok=True)
    (made.clone / ".git" / "objects" / "info" / "alternates").write_text(
        f"{other / '.git' / 'objects'}\n"
    )
    private = text_of(person_git(other, "rev-parse", "HEAD:private"))
    committed(made, tree_with(made, *base_entries(made), ("100644", b"private", private)))

    found = read(made)

    assert [each.path for each in found.refused] == [b"private"]
    assert "not in the agent's clone" in found.refused[0].reason
    assert not made.store.holds(private)
    (made.clone / ".git" / "HEAD").write_text(head(other) + "\n")
    assert "is not in its clone" in read(made).note


@pytest.mark.parametrize("what", [".git", "objects", "HEAD", "refs/heads/sanduk/change", "object"])
def test_a_link_leads_nowhere(made, tmp_path, what):
    made.write({"a": b"a\n"})
    tip = commit(made.clone, "good")
    away = tmp_path / "away"
    names = {".git": ".git", "object": f".git/objects/{tip[:2]}/{tip[2:]}"}
    place = made.clone / names.get(what, f".git/{what}")
    place.rename(away)
    place.symlink_to(away)

    found = read(made)

    assert found.commits == ()
    assert found.note


def test_a_pipe_is_not_waited_for(made):
    made.write({"a": b"a\n"})
    commit(made.clone, "good")
    (made.clone / ".git" / "HEAD").unlink()
    os.mkfifo(made.clone / ".git" / "HEAD")

    assert "git directory cannot be read" in read(made).note


@pytest.mark.parametrize("said", [
    "", "ref: ../../../etc/passwd", "ref: refs/../../x", "ref: HEAD", "--help", "x" * 9000,
    "ref: refs/heads/none", "ref: refs/heads/a\0b", "0" * 40,
])  # fmt: skip
def test_a_head_that_is_none_makes_it_one_commit(made, said):
    made.write({"a": b"a\n"})
    commit(made.clone, "good")
    (made.clone / ".git" / "HEAD").write_text(said)

    found = read(made)

    assert found.commits == ()
    assert found.note.startswith("it lands as one commit, because ")


def test_replacements_and_grafts_of_the_clone_bend_nothing(made):
    made.write({"a": b"a\n"})
    first = commit(made.clone, "first")
    made.write({"b": b"b\n"})
    second = commit(made.clone, "second")
    person_git(made.clone, "replace", second, first)
    (made.clone / ".git" / "info" / "grafts").write_text(f"{second} {made.base}\n")
    (made.clone / ".git" / "shallow").write_text(f"{second}\n")

    assert [each.message for each in read(made).commits] == ["first", "second"]


def test_configuration_and_hooks_of_the_clone_run_nothing(made, tmp_path):
    made.write({"a": b"a\n", ".gitattributes": b"* filter=evil diff=evil\n"})
    commit(made.clone, "good")
    ran = tmp_path / "ran"
    (made.clone / ".git" / "config").write_text(
        f'[core]\n\trepositoryformatversion = 0\n\tfsmonitor = "touch {ran}; false"\n\tpager = '
        f'"touch {ran}"\n[filter "evil"]\n\tsmudge = "touch {ran}"\n\tclean = "touch {ran}"\n'
        f'[diff "evil"]\n\ttextconv = "touch {ran}; cat"\n[uploadpack]\n\tpackObjectsHook = '
        f'"touch {ran}"\n'
    )

    assert [each.message for each in read(made).commits] == ["good"]
    assert not ran.exists()


@pytest.mark.parametrize("how", ["garbage", "other name", "other size", "endless", "cut"])
def test_a_broken_object_is_no_object(made, how, monkeypatch):
    made.write({"a": b"a\n"})
    tip = commit(made.clone, "good")
    place = made.clone / ".git" / "objects" / tip[:2] / tip[2:]
    whole = zlib.decompress(place.read_bytes())
    place.unlink()
    if how == "other name":
        written(made, "commit", whole.partition(b"\0")[2].replace(b"good", b"evil"), tip)
    else:
        place.write_bytes({
            "garbage": b"\x00nothing",
            "other size": zlib.compress(whole.replace(b"commit ", b"commit 9")),
            "endless": zlib.compress(b"commit 9999999\0" + bytes(9_000_000)),
            "cut": zlib.compress(whole)[:-9],
        }[how])  # fmt: skip

    found = read(made, objects=ObjectLimits(object_bytes=1 << 20))

    assert found.commits == ()
    assert "is not in its clone" in found.note


def test_a_broken_pack_makes_it_one_commit(made):
    made.write({"a": b"a\n"})
    commit(made.clone, "good")
    (made.clone / ".git" / "objects" / "pack" / f"pack-{'a' * 40}.pack").write_bytes(b"PACK no")

    assert "a pack of its objects is broken" in read(made).note


def test_packs_are_bounded_in_number_and_size(made):
    made.write({"a": b"a\n" * 100})
    commit(made.clone, "good")
    person_git(made.clone, "repack", "-a", "-d", "-q")

    assert "more than 0 packs" in read(made, objects=ObjectLimits(packs=0)).note
    assert "are more than 0 MB" in read(made, objects=ObjectLimits(bytes=50)).note
    assert read(made).commits


def test_the_packs_that_the_clone_began_with_are_not_read_again(made, monkeypatch):
    made.write({"a": b"a\n"})
    commit(made.clone, "good")
    monkeypatch.setattr(clone_objects, "regular", _only_loose(clone_objects.regular))

    assert [each.message for each in read(made).commits] == ["good"]


def test_a_tree_among_the_contents_and_a_missing_content_are_refused(made):
    inner = tree_with(made, ("100644", b"f", blob(made)))
    committed(made, tree_with(
        made, *base_entries(made), ("100644", b"y-tree", inner), ("100644", b"z-none", "7" * 40)
    ))  # fmt: skip

    found = read(made)

    assert sorted(each.path for each in found.refused) == [b"y-tree", b"z-none"]


def test_nothing_is_left_in_the_store_of_what_was_looked_at(made):
    made.write({"a": b"a\n"})
    commit(made.clone, "good")
    before = set(made.store.path.iterdir())
    read(made)
    (made.clone / ".git" / "HEAD").write_text("nothing")
    read(made)

    assert set(made.store.path.iterdir()) == before


def _only_loose(real):
    def opened(directory: int, name: str):
        assert not Path(name).suffix, f"{name} was opened"
        return real(directory, name)

    return opened
