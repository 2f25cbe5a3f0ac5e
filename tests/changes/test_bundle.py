"""An agent gets the base commit and nothing else, and what stays behind is said."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from changes import bundle
from changes.git import GitError
from changes.store import opened
from runs.refusal import Refusal
from tests.changes.making import (
    commit,
    head,
    listed,
    person_git,
    provided,
    repository,
    scene,
    text_of,
    write,
)

SECRET = b"token-in-a-place-nobody-commits"


def everything_in(directory: Path) -> bytes:
    """Every byte of a directory, packed objects unpacked."""
    found = [path.read_bytes() for path in directory.rglob("*") if path.is_file()]
    every = "--batch-all-objects"
    found.append(person_git(directory, "cat-file", "--batch", every))
    return b"\n".join(found)


def test_no_configuration_remote_or_untracked_file_goes_in(tmp_path):
    made = repository(tmp_path / "r", {".gitignore": b".env\n"})
    write(made, {".env": SECRET + b"1", "untracked": SECRET + b"2"})
    person_git(made, "remote", "add", "origin", f"https://{SECRET.decode()}@example.test/x")
    person_git(made, "config", "http.extraHeader", f"Authorization: {SECRET.decode()}")
    person_git(made, "stash", "push", "--include-untracked", "-q")
    person_git(made, "tag", "-a", "-m", SECRET.decode(), "v1")

    done = scene(tmp_path / "w", made)
    assert SECRET not in everything_in(done.clone)
    assert b"first" in everything_in(done.clone), "what is looked into is really looked into"
    assert person_git(done.clone, "remote") == b""


def test_no_other_branch_goes_in(tmp_path):
    made = repository(tmp_path / "r")
    person_git(made, "switch", "-q", "-c", "other")
    write(made, {"other": SECRET})
    commit(made, "other work")
    person_git(made, "switch", "-q", "main")

    assert SECRET not in everything_in(scene(tmp_path / "w", made).clone)


def test_history_stays_behind_unless_it_is_asked_for(tmp_path):
    made = repository(tmp_path / "r", {"old": SECRET})
    (made / "old").unlink()
    for number in range(4):
        write(made, {"n": b"%d" % number})
        commit(made, f"number {number}")

    one = scene(tmp_path / "one", made)
    assert SECRET not in everything_in(one.clone)
    assert text_of(person_git(one.clone, "rev-list", "--count", "HEAD")) == "1"

    three = scene(tmp_path / "three", made, history=3)
    assert text_of(person_git(three.clone, "rev-list", "--count", "HEAD")) == "3"

    all_of_it = scene(tmp_path / "all", made, history=100)
    assert SECRET in everything_in(all_of_it.clone)
    assert all_of_it.provided.shallow == ()
    for each in (one, three, all_of_it):
        person_git(each.clone, "fsck", "--strict")
        person_git(each.store.path, "fsck", "--strict")


def test_the_history_of_a_merge_is_whole_to_its_depth(tmp_path):
    made = repository(tmp_path / "r")
    person_git(made, "switch", "-q", "-c", "side")
    write(made, {"side": b"1"})
    commit(made, "side")
    person_git(made, "switch", "-q", "main")
    write(made, {"main": b"1"})
    commit(made, "main")
    person_git(made, "merge", "-q", "--no-edit", "side")

    for history, commits in ((1, "1"), (2, "3"), (3, "4")):
        done = scene(tmp_path / f"w{history}", made, history=history)
        person_git(done.clone, "fsck", "--strict")
        assert text_of(person_git(done.clone, "rev-list", "--count", "HEAD")) == commits


def test_less_than_one_commit_is_refused(tmp_path):
    with pytest.raises(Refusal, match="1 commit or more"):
        provided(repository(tmp_path / "r"), tmp_path, history=0)


def test_the_files_of_the_clone_are_the_commits_bytes(tmp_path):
    made = repository(
        tmp_path / "r",
        {".gitattributes": b"*.txt text eol=crlf\n*.id ident\n*.up filter=up\n", "a.txt": b"1\n",
         "b.id": b"$Id$\n", "c.up": b"lower\n"},
    )  # fmt: skip
    person_git(made, "config", "filter.up.smudge", "tr a-z A-Z")

    done = scene(tmp_path / "w", made)
    assert (done.clone / "a.txt").read_bytes() == b"1\n"
    assert (done.clone / "b.id").read_bytes() == b"$Id$\n"
    assert (done.clone / "c.up").read_bytes() == b"lower\n"
    assert person_git(done.clone, "status", "--porcelain") == b""
    assert done.read().tree == done.provided.base_tree


def test_a_base_is_named_by_branch_tag_or_commit(tmp_path):
    made = repository(tmp_path / "r")
    first = head(made)
    person_git(made, "tag", "v1")
    person_git(made, "branch", "release/1.0")
    write(made, {"more": b"1"})
    second = commit(made, "second")

    assert provided(made, tmp_path).base_commit == second
    assert provided(made, tmp_path).branch == "main"
    assert provided(made, tmp_path, "release/1.0").base_commit == first
    assert provided(made, tmp_path, "release/1.0").branch == "release/1.0"
    for name in ("v1", first, first[:10], "HEAD~1"):
        found = provided(made, tmp_path, name)
        assert (found.base_commit, found.branch) == (first, "")
    person_git(made, "switch", "-q", "--detach")
    assert provided(made, tmp_path).branch == ""


@pytest.mark.parametrize("ref", ["none", "--all", "-h", "main..main", "HEAD:README.md", "", "a\nb"])
def test_a_base_that_is_no_commit_is_refused(ref, tmp_path):
    with pytest.raises(Refusal, match="has no such commit"):
        provided(repository(tmp_path / "r"), tmp_path, ref)


def test_a_refused_base_leaves_no_file(tmp_path):
    made = repository(tmp_path / "r")
    blob = head(made, "HEAD:README.md")
    (made / ".git" / "objects" / blob[:2] / blob[2:]).unlink()

    with pytest.raises(Refusal, match="git fetch --refetch"):
        provided(made, tmp_path)
    assert list((tmp_path / "bundles").iterdir()) == []


def test_a_partial_clone_is_refused_without_fetching(tmp_path):
    source = repository(tmp_path / "source")
    person_git(source, "config", "uploadpack.allowFilter", "true")
    made = tmp_path / "r"
    words = ("clone", "-q", "--no-checkout", "--filter=blob:none", f"file://{source}", made)
    person_git(tmp_path, *words)

    with pytest.raises(Refusal, match="partial clone"):
        provided(made, tmp_path)


def test_what_is_no_repository_is_refused(tmp_path):
    with pytest.raises(Refusal, match="is no git repository: run `git init`"):
        provided(tmp_path, tmp_path)
    with pytest.raises(Refusal, match="is no directory"):
        provided(tmp_path / "none", tmp_path)


def test_a_repository_without_a_commit_is_refused(tmp_path):
    (tmp_path / "r").mkdir()
    person_git(tmp_path / "r", "init", "-q")

    with pytest.raises(Refusal, match="has no commit yet"):
        provided(tmp_path / "r", tmp_path)


def test_a_branch_that_is_not_born_is_refused(tmp_path):
    made = repository(tmp_path / "r")
    person_git(made, "switch", "-q", "--orphan", "new")

    with pytest.raises(Refusal, match="has no commit yet"):
        provided(made, tmp_path)
    assert provided(made, tmp_path, "main").branch == "main"


def test_a_base_that_git_cannot_read_is_not_called_unknown(tmp_path):
    made = repository(tmp_path / "r")
    commit_id = head(made)
    file = made / ".git" / "objects" / commit_id[:2] / commit_id[2:]
    file.unlink()
    file.write_bytes(b"no object")

    for ref in (None, "main", commit_id):
        with pytest.raises(Refusal, match=r"cannot be packed: git rev-parse: .*corrupt"):
            provided(made, tmp_path, ref)


def test_a_git_that_fails_does_not_make_a_base_unknown(tmp_path, monkeypatch):
    made = repository(tmp_path / "r")

    def stopped(*_words: object, **_options: object) -> bytes:
        raise GitError("git rev-parse: stopped after 300 s")

    monkeypatch.setattr(bundle, "git", stopped)
    with pytest.raises(Refusal, match="stopped after 300 s"):
        provided(made, tmp_path, "main")


def test_a_head_whose_commit_is_gone_is_no_repository_without_a_commit(tmp_path):
    made = repository(tmp_path / "r")
    commit_id = head(made)
    (made / ".git" / "objects" / commit_id[:2] / commit_id[2:]).unlink()

    for ref in (None, "main"):
        with pytest.raises(Refusal, match="git fetch --refetch"):
            provided(made, tmp_path, ref)


def test_a_reflog_that_is_shorter_than_asked_for_holds_no_such_commit(tmp_path):
    with pytest.raises(Refusal, match="has no such commit"):
        provided(repository(tmp_path / "r"), tmp_path, "main@{99}")


def test_a_commit_without_files_is_provided(tmp_path):
    made = tmp_path / "r"
    made.mkdir()
    person_git(made, "init", "-q")
    commit(made, "nothing")

    done = scene(tmp_path / "w", made)
    done.write({"first": b"1"})
    assert list(done.changed()) == [b"first"]


def test_the_git_directory_itself_is_refused(tmp_path):
    with pytest.raises(Refusal, match="name its work tree"):
        provided(repository(tmp_path / "r") / ".git", tmp_path)


def test_a_repository_of_another_account_is_refused(tmp_path):
    made = repository(tmp_path / "r")
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    os.chown(made / ".git", 12345, 12345)

    with pytest.raises(Refusal, match="belongs to account 12345"):
        provided(made, tmp_path)


def test_a_subdirectory_stands_for_its_repository(tmp_path):
    made = repository(tmp_path / "r")
    found = provided(made / "src", tmp_path)

    assert found.repository == made
    assert any("the agent gets that whole repository" in said for said in found.left_out)


def test_a_linked_work_tree_has_its_own_head(tmp_path):
    made = repository(tmp_path / "r")
    person_git(made, "worktree", "add", "-q", "-b", "linked", str(tmp_path / "linked"))
    write(tmp_path / "linked", {"there": b"1"})
    commit(tmp_path / "linked", "linked")

    write(tmp_path / "linked", {"there": b"edited"})
    done = scene(tmp_path / "w", tmp_path / "linked")
    assert done.provided.left_out == ("1 file (there) with changes that are not committed",)
    assert (done.clone / "there").exists()
    assert done.provided.branch == "linked"
    assert done.provided.repository == tmp_path / "linked"


def test_a_bare_repository_is_provided(tmp_path):
    repository(tmp_path / "r")
    person_git(tmp_path, "clone", "-q", "--bare", "r", "bare.git")

    done = scene(tmp_path / "w", tmp_path / "bare.git")
    assert (done.clone / "README.md").read_bytes() == b"hello\n"
    assert done.provided.left_out == ()


def test_a_shallow_repository_is_provided_as_deep_as_it_is(tmp_path):
    source = repository(tmp_path / "source")
    for number in range(5):
        commit(source, f"number {number}")
    person_git(tmp_path, "clone", "-q", "--depth=2", f"file://{source}", "r")

    for history in (1, 2, 4):
        done = scene(tmp_path / f"w{history}", tmp_path / "r", history=history)
        count = text_of(person_git(done.clone, "rev-list", "--count", "HEAD"))
        assert count == str(min(history, 2))
        person_git(done.clone, "fsck", "--strict")


def test_a_repository_that_borrows_its_objects_is_provided_whole(tmp_path):
    source = repository(tmp_path / "source")
    person_git(tmp_path, "clone", "-q", "--shared", "source", "r")
    done = scene(tmp_path / "w", tmp_path / "r")
    source.rename(tmp_path / "gone")

    person_git(done.clone, "fsck", "--strict")
    assert listed(done.clone, "HEAD") == listed(tmp_path / "gone", "HEAD")


def test_the_clone_shares_no_file_with_the_store(tmp_path):
    done = scene(tmp_path / "w", repository(tmp_path / "r"))

    shared = [path for path in done.clone.rglob("*") if path.is_file() and path.stat().st_nlink > 1]
    assert shared == []
    assert not (done.clone / ".git" / "objects" / "info" / "alternates").exists()


@pytest.mark.parametrize(
    "name", ["with space", "a:b", "quo'te\"", "-dash", "line\nfeed", "ünï", "%s$HOME"]
)
def test_the_repository_may_stand_anywhere(name, tmp_path):
    made = repository(tmp_path / name / "r")
    done = scene(tmp_path / name / "w", made)

    assert done.provided.repository == made
    assert (done.clone / "README.md").exists()
    assert done.read().tree == done.provided.base_tree


@pytest.mark.parametrize("name", [b".GIT", b"a/.git\xe2\x80\x8c/config", b"git~1"])
def test_a_base_that_holds_a_name_of_gits_own_directory_is_refused(name, tmp_path):
    made = repository(tmp_path / "r")
    blob = head(made, "HEAD:README.md")
    parts = name.split(b"/")
    told = b"100644 blob %s\t%s\0" % (blob.encode(), parts[-1])
    tree = text_of(person_git(made, "mktree", "-z", input=told))
    for part in reversed(parts[:-1]):
        told = b"040000 tree %s\t%s\0" % (tree.encode(), part)
        tree = text_of(person_git(made, "mktree", "-z", input=told))
    bad = text_of(person_git(made, "commit-tree", tree, "-m", "bad"))

    with pytest.raises(Refusal, match="is a name of git's own directory: rename it"):
        provided(made, tmp_path, bad)


def test_grafts_and_replacements_of_the_repository_do_not_count(tmp_path):
    made = repository(tmp_path / "r")
    evil = repository(tmp_path / "evil", {"evil": b"1"})
    person_git(made, "fetch", "-q", str(evil))
    first = head(made)
    person_git(made, "replace", first, head(evil))

    done = scene(tmp_path / "w", made)
    assert done.base == first
    assert not (done.clone / "evil").exists()


def test_the_long_object_format_is_provided(tmp_path):
    made = repository(tmp_path / "r", object_format="sha256")
    commit(made, "second")
    done = scene(tmp_path / "w", made)

    assert done.provided.object_format == "sha256"
    assert opened(done.store.path, object_format="sha256").holds(head(made))
    person_git(done.clone, "fsck", "--strict")
