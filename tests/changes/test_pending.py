"""Which waiting changes get in each other's way, by what a merge of them really says."""

from __future__ import annotations

import pytest

from changes import pending
from changes.models import Change
from tests.changes.rows import Project, run_git

pytestmark = pytest.mark.django_db


def named(change: Change) -> dict[str, tuple[bytes, ...]]:
    return {found.change.uid: found.paths for found in pending.with_waiting(change)}


def test_two_that_write_the_same_line_are_named_to_each_other_with_the_path(project):
    one = project.change({"README.md": "one\n"})
    two = project.change({"README.md": "two\n"})
    project.change({"other.md": "x\n"})

    assert named(one) == {two.uid: (b"README.md",)}
    assert named(two) == {one.uid: (b"README.md",)}


def test_one_that_is_decided_or_of_another_repository_is_in_nobodys_way(project, tmp_path):
    one = project.change({"README.md": "one\n"})
    two = project.change({"README.md": "two\n"})
    Change.objects.reject(two.pk, two.attempt_id)
    Project(tmp_path / "another").change({"README.md": "three\n"})

    assert named(one) == {}


def test_where_the_branch_moved_on_is_seen_only_where_both_changed(project):
    one = project.change({"README.md": "one\n"})
    two = project.change({"new.md": "x\n"})
    assert pending.with_head(one) == ()
    (project.path / "README.md").write_text("moved\n")
    run_git(project.path, "commit", "-q", "-a", "-m", "second")

    assert pending.with_head(one) == (b"README.md",)
    assert pending.with_head(two) == ()
