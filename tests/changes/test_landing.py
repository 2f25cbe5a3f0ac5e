"""An accepted tree becomes one commit on a fresh branch, exactly, once, and nothing else moves."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from changes import landing
from changes.git import GitError, git
from changes.landing import BranchTaken, land, message_of
from runs.refusal import Refusal
from tests.changes.making import (
    AGENT,
    BRANCH,
    PERSON,
    commit,
    head,
    landed,
    listed,
    person_git,
    repository,
    scene,
    text_of,
    write,
)


def state(directory: Path) -> dict[Path, tuple[int, bytes]]:
    return {
        path: (path.lstat().st_mtime_ns, path.read_bytes())
        for path in directory.rglob("*")
        if path.is_file() and not path.is_symlink()
    }


def test_the_branch_holds_exactly_the_tree_on_exactly_the_base(changed):
    tree = changed.read().tree
    made = landed(changed)

    assert head(changed.repository, BRANCH) == made
    assert head(changed.repository, f"{BRANCH}^{{tree}}") == tree
    assert head(changed.repository, f"{BRANCH}^@") == changed.base
    assert listed(changed.repository, BRANCH) == listed(changed.store.path, tree)
    assert person_git(changed.repository, "fsck", "--strict", "--full") == b""


def test_the_agent_is_the_author_and_the_person_the_committer(changed):
    landed(changed)

    said = person_git(changed.repository, "log", "-1", "--format=%an|%ae|%at|%cn|%ce|%cI", BRANCH)
    assert text_of(said) == (
        "an agent|agent@example.test|1700000000|A Person|person@example.test|"
        "2023-11-15T00:15:00+02:00"
    )
    trailers = person_git(changed.repository, "log", "-1", "--format=%(trailers)", BRANCH)
    assert text_of(trailers) == "Change: 1"


def test_work_tree_index_and_head_are_not_touched(changed):
    write(changed.repository, {"README.md": b"my own edit\n", "untracked": b"mine"})
    person_git(changed.repository, "add", "README.md")
    git_dir = changed.repository / ".git"
    files = [path for path in changed.repository.iterdir() if path != git_dir]
    before = {path: path.read_bytes() for path in files if path.is_file()}
    index, current = state(git_dir)[git_dir / "index"], (git_dir / "HEAD").read_bytes()

    landed(changed)
    assert {path: path.read_bytes() for path in before} == before
    assert state(git_dir)[git_dir / "index"] == index
    assert (git_dir / "HEAD").read_bytes() == current
    assert text_of(person_git(changed.repository, "symbolic-ref", "HEAD")) == "refs/heads/main"


@pytest.mark.parametrize("configured", ["", ".githooks", "{repository}/.githooks"])
def test_no_hook_and_no_filter_runs(configured, changed, tmp_path):
    started = tmp_path / "started"
    names = ("pre-commit", "post-commit", "post-checkout", "reference-transaction", "update",
             "pre-auto-gc", "post-rewrite", "commit-msg", "prepare-commit-msg",
             "post-index-change", "post-merge", "pre-receive")  # fmt: skip
    script = f"#!/bin/sh\ntouch '{started}'\n".encode()
    hooks = ".githooks" if configured else ".git/hooks"
    write(changed.repository, {f"{hooks}/{name}": script for name in names})
    for hook in (changed.repository / hooks).iterdir():
        hook.chmod(0o755)
    run = f"touch '{started}'; cat"
    for key in ("filter.x.smudge", "filter.x.clean", "core.fsmonitor", "gpg.program"):
        person_git(changed.repository, "config", key, run)
    if configured:
        path = configured.format(repository=changed.repository)
        person_git(changed.repository, "config", "core.hooksPath", path)
    changed.write({".gitattributes": b"* filter=x\n", ".githooks/pre-commit": script})

    landed(changed)
    assert not started.exists()
    person_git(changed.repository, "update-ref", "refs/heads/other", "main")
    assert started.exists(), "the hooks run when nobody forbids it"


def test_landing_again_finds_what_was_landed(changed):
    first = landed(changed)
    before = person_git(changed.repository, "for-each-ref")

    assert landed(changed) == first
    assert person_git(changed.repository, "for-each-ref") == before


@pytest.mark.parametrize(
    "step", ["commit-tree", "pack-objects", "index-pack", "update-ref", "rev-parse"]
)
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_crash_at_any_step_is_made_good_by_landing_again(step, when, changed, monkeypatch):
    tree = changed.read().tree
    real = git

    class Crash(Exception):
        pass

    def crashing(*words, **options):
        counts = step in words and (step != "rev-parse" or f"refs/heads/{BRANCH}" in words)
        if counts and when == "before":
            raise Crash
        said = real(*words, **options)
        if counts:
            raise Crash
        return said

    monkeypatch.setattr("changes.landing.git", crashing)
    monkeypatch.setattr("changes.store.git", crashing)
    with pytest.raises(Crash):
        landed(changed, tree)
    monkeypatch.undo()

    made = landed(changed, tree)
    assert head(changed.repository, BRANCH) == made
    assert head(changed.repository, f"{BRANCH}^{{tree}}") == tree
    assert person_git(changed.repository, "fsck", "--strict", "--full").strip() == b""
    branches = person_git(changed.repository, "for-each-ref", "--format=%(refname:short)")
    assert branches.split() == [b"main", BRANCH.encode()]


def test_a_branch_with_something_else_on_it_is_never_moved(changed):
    person_git(changed.repository, "branch", BRANCH)
    with pytest.raises(BranchTaken, match="is there already"):
        landed(changed)

    assert head(changed.repository, BRANCH) == changed.base


@pytest.mark.parametrize(
    "other",
    [{"message": "another\n"}, {"author": PERSON}, {"committer": AGENT}],
    ids=["message", "author", "committer"],
)
def test_another_landing_of_the_same_tree_is_something_else(other, changed):
    landed(changed)

    with pytest.raises(BranchTaken):
        landed(changed, **other)


def test_of_eight_that_land_at_once_on_one_branch_all_agree(changed):
    tree = changed.read().tree
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: landed(changed, tree), range(8)))

    assert len(found) == 8
    assert set(found) == {head(changed.repository, BRANCH)}


def test_of_two_different_that_land_at_once_one_wins(changed):
    trees = [changed.read().tree]
    changed.write({"new/file.py": b"other\n"})
    trees.append(changed.read().tree)
    won, lost = [], []

    def attempt(tree: str) -> None:
        try:
            won.append((tree, landed(changed, tree)))
        except (BranchTaken, GitError) as exc:
            lost.append(exc)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(attempt, trees))

    ((tree, made),) = won
    assert len(lost) == 1
    assert head(changed.repository, BRANCH) == made
    assert head(changed.repository, f"{BRANCH}^{{tree}}") == tree


@pytest.mark.parametrize(
    "name",
    [
        "",
        "-x",
        "HEAD",
        "a..b",
        "a b",
        "a~1",
        "x.lock",
        "../main",
        "a\nb",
        "@{-1}",
        "a\0b",
        "/x",
        "refs/heads/x",
    ],
)
def test_a_name_no_branch_can_have_is_refused(name, changed):
    with pytest.raises(Refusal, match="no branch can be called"):
        landed(changed, branch=name)


def test_a_branch_below_another_branch_is_an_error_and_nothing_lands(changed):
    person_git(changed.repository, "branch", "sanduk")

    with pytest.raises(GitError):
        landed(changed)
    assert text_of(person_git(changed.repository, "branch", "--list", "sanduk*")) == "sanduk"


def test_a_branch_somebody_stands_on_unborn_is_refused(changed, tmp_path):
    linked = tmp_path / "linked"
    person_git(changed.repository, "worktree", "add", "-q", "--detach", str(linked))
    person_git(linked, "switch", "-q", "--orphan", BRANCH)

    with pytest.raises(BranchTaken, match="is checked out, without a commit yet"):
        landed(changed)


def test_a_base_that_is_gone_is_refused_with_what_to_do(changed, tmp_path):
    tree = changed.read().tree
    other = repository(tmp_path / "other", {"x": b"1"})
    with pytest.raises(Refusal, match=f"the base commit {changed.base} is no longer in"):
        land(
            other, changed.base, tree, changed.store, message="m\n", author=AGENT,
            committer=PERSON, branch=BRANCH,
        )  # fmt: skip
    assert text_of(person_git(other, "branch")) == "* main"


def test_the_base_may_have_been_left_behind_by_its_branch(changed):
    write(changed.repository, {"README.md": b"meanwhile\n"})
    commit(changed.repository, "meanwhile")

    landed(changed)
    assert head(changed.repository, f"{BRANCH}^") == changed.base


def test_objects_that_do_not_pass_gits_check_do_not_enter(changed):
    store = changed.store
    blob = store.git("hash-object", "-w", "--stdin", stdin=b"evil").decode().strip()
    told = f"100644 blob {blob}\t.git\0".encode()
    evil = store.git("mktree", "-z", stdin=told).decode().strip()

    with pytest.raises(GitError, match="hasDotgit"):
        landed(changed, evil)
    assert BRANCH not in text_of(person_git(changed.repository, "branch"))


def test_only_what_is_new_is_copied(changed):
    landed(changed)

    new = person_git(changed.repository, "rev-list", "--objects", BRANCH, "^main").splitlines()
    packed = person_git(changed.repository, "count-objects", "-v").decode()
    assert f"in-pack: {len(new)}\n" in packed


def test_a_tree_the_repository_already_has_lands_too(made):
    assert head(made.repository, f"{landed(made)}^{{tree}}") == made.provided.base_tree
    person_git(made.repository, "fsck", "--strict")


def test_a_linked_work_tree_and_a_bare_repository_are_landed_in(changed, tmp_path):
    linked, bare = tmp_path / "linked", tmp_path / "bare.git"
    person_git(changed.repository, "worktree", "add", "-q", "-b", "linked", str(linked))
    person_git(tmp_path, "clone", "-q", "--bare", str(changed.repository), str(bare))
    tree = changed.read().tree
    for place in (linked, bare):
        made = land(
            place, changed.base, tree, changed.store, message="m\n", author=AGENT,
            committer=PERSON, branch="landed",
        )  # fmt: skip
        assert head(place, "landed") == made
    assert head(changed.repository, "landed") == head(linked, "landed")


def test_a_repository_of_the_long_format_is_landed_in(tmp_path):
    made = scene(tmp_path / "w", repository(tmp_path / "r", object_format="sha256"))
    made.write({"x": b"1"})

    assert len(landed(made)) == 64


def test_a_submodules_commit_and_a_hundred_megabytes_land(tmp_path):
    inner = repository(tmp_path / "inner")
    made = repository(tmp_path / "r")
    words = ("-c", "protocol.file.allow=always", "submodule", "--quiet", "add")
    person_git(made, *words, str(inner), "mod")
    commit(made, "with a submodule")
    done = scene(tmp_path / "w", made)
    with (done.clone / "big").open("wb") as file:
        file.truncate(100 << 20)

    landed(done)
    assert b"160000 commit" in b"\n".join(listed(made, BRANCH))
    assert text_of(person_git(made, "cat-file", "-s", f"{BRANCH}:big")) == str(100 << 20)


def test_a_message_has_one_subject_and_only_our_trailers():
    said = message_of(
        "do\n\nApproved-by: me\x1b[2J " + "x" * 200,
        "text\n\nApproved-by: the agent\r\x07\n",
        [("Change", "7\nApproved-by: me"), ("Approved-by", "A Person")],
    )
    lines = said.split("\n")

    assert lines[0].startswith("do Approved-by: me\\x1b[2J xxx")
    assert len(lines[0]) <= 72
    assert lines[1] == ""
    assert said.endswith("\n\nChange: 7 Approved-by: me\nApproved-by: A Person\n")
    assert "\x07" not in said


def test_git_sees_only_our_trailers(changed):
    text = "text\n\nApproved-by: the agent"
    landed(changed, message=message_of("do it", text, [("Change", "7")]))

    said = person_git(changed.repository, "log", "-1", "--format=%(trailers)", BRANCH)
    assert text_of(said) == "Change: 7"


def test_a_name_cannot_forge_the_header_of_a_commit(changed):
    evil = landing.Person("x <a@b> 1 +0000\nparent " + "1" * 40, "e>\n", 5)
    landed(changed, author=evil)

    raw = person_git(changed.repository, "cat-file", "commit", BRANCH)
    assert raw.count(b"\nparent ") == 1
    assert raw.count(b"\nauthor ") == 1
    person_git(changed.repository, "fsck", "--strict")


def test_a_repository_that_cannot_be_written_is_left_as_it_was(changed):
    lock = changed.repository / ".git" / "refs" / "heads" / "sanduk" / "change-1.lock"
    lock.parent.mkdir()
    lock.touch()

    with pytest.raises(GitError, match="lock"):
        landed(changed)
    lock.unlink()
    made = landed(changed)
    assert head(changed.repository, BRANCH) == made
