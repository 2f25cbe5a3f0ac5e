"""An agent's clone is an ordinary repository that knows nothing of ours."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from changes import clone
from changes.git import GitError, git
from tests.changes.making import Scene, head, person_git, text_of

AUTHOR = ("an agent", "agent@example.test")


def remade(made: Scene, where: Path, **options) -> Path:
    where.mkdir()
    told = {"branch": "sanduk/again", "author": AUTHOR, **options}
    clone.make(made.store, made.provided, where, **told)
    return where


def test_it_stands_on_its_branch_at_the_base_and_is_clean(made):
    assert text_of(person_git(made.clone, "symbolic-ref", "HEAD")) == "refs/heads/sanduk/change"
    assert head(made.clone) == made.base
    assert person_git(made.clone, "status", "--porcelain") == b""
    assert person_git(made.clone, "branch", "--all").count(b"\n") == 1
    assert person_git(made.clone, "remote") == b""


def test_the_agent_can_commit_in_it_under_its_own_name(made):
    made.write({"new": b"1"})
    git("add", "-A", git_dir=made.clone / ".git", cwd=made.clone)
    git("commit", "--quiet", "--message=mine", git_dir=made.clone / ".git", cwd=made.clone)

    said = person_git(made.clone, "log", "-1", "--format=%an|%ae|%cn")
    assert text_of(said) == "an agent|agent@example.test|an agent"


def test_no_file_of_it_names_a_place_of_ours(made):
    ours = [os.fsencode(made.repository), os.fsencode(made.store.path)]
    files = [path for path in made.clone.rglob("*") if path.is_file() and not path.is_symlink()]

    assert not [path for path in files if any(place in path.read_bytes() for place in ours)]


def test_no_template_of_the_account_gets_in(made, tmp_path, monkeypatch):
    template = tmp_path / "template" / "hooks"
    template.mkdir(parents=True)
    (template / "post-checkout").write_text("#!/bin/sh\nfalse\n")
    monkeypatch.setenv("GIT_TEMPLATE_DIR", str(template.parent))

    assert not (remade(made, tmp_path / "again") / ".git" / "hooks").exists()


def test_a_revision_starts_with_the_files_of_the_attempt_on_the_same_base(changed, tmp_path):
    attempt = changed.read()
    changed.clone = remade(changed, tmp_path / "again", tree=attempt.tree)

    assert changed.read().tree == attempt.tree
    assert head(changed.clone) == changed.base
    assert (changed.clone / "link").is_symlink()
    status = person_git(changed.clone, "status", "--porcelain", "-z").split(b"\0")
    assert set(status) - {b""} == {
        b" M README.md",
        b" M run.sh",
        b"?? data",
        b"?? link",
        b"?? new/",
    }


def test_a_revision_never_shows_the_objects_of_another_attempt(changed, tmp_path):
    changed.write({"secret-of-attempt-one": b"1"})
    changed.read()
    again = remade(changed, tmp_path / "again")

    said = person_git(again, "cat-file", "--batch-check", "--batch-all-objects")
    base = person_git(changed.repository, "rev-list", "--objects", "main").splitlines()
    assert len(said.splitlines()) == len(base)


def test_a_deleted_file_stays_deleted_in_a_revision(made, tmp_path):
    (made.clone / "README.md").unlink()
    again = remade(made, tmp_path / "again", tree=made.read().tree)

    assert not (again / "README.md").exists()


def test_everything_in_it_is_given_to_the_agents_account(made, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    outside = tmp_path / "outside"
    outside.write_bytes(b"")
    (made.clone / "link").symlink_to(outside)
    again = remade(made, tmp_path / "again", tree=made.read().tree, owner=(12345, 12346))

    owners = {(path.lstat().st_uid, path.lstat().st_gid) for path in (again, *again.rglob("*"))}
    assert owners == {(12345, 12346)}
    assert outside.stat().st_uid == 0


def test_a_tree_that_is_not_in_the_store_is_an_error(made, tmp_path):
    with pytest.raises(GitError):
        remade(made, tmp_path / "again", tree="1" * 40)
