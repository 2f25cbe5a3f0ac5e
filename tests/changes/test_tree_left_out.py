"""What is no part of a result: ignored, ours, or a repository of its own; all of it is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from changes.tree import Ignored
from tests.changes.making import Scene, listed, names, person_git, repository, scene


def test_what_the_rules_leave_out_is_counted_and_offered(made):
    made.write({
        "dist/out.js": b"1", "dist/more/deep.js": b"2", "x.log": b"3", "new/y.log": b"4",
        "only-dirs": b"a file", "sub/only-dirs/z": b"5", "kept.log": b"edited",
    })  # fmt: skip

    result = made.read()
    assert result.ignored_created == (
        Ignored(b"dist/", 2), Ignored(b"new/y.log", 1), Ignored(b"x.log", 1),
    )  # fmt: skip
    assert set(made.changed(result)) == {b"only-dirs", b"sub/only-dirs/z", b"kept.log"}


def test_ignored_files_are_taken_when_they_are_asked_for(made):
    made.write({"dist/out.js": b"1", "dist/more/deep.js": b"2", "x.log": b"3"})

    one = made.read(take={b"dist/out.js"})
    assert set(made.changed(one)) == {b"dist/out.js"}
    assert one.taken == (b"dist/out.js",)
    assert one.ignored_created == (Ignored(b"dist/more/", 1), Ignored(b"x.log", 1))

    both = made.read(take={b"dist", b"x.log"})
    assert set(made.changed(both)) == {b"dist/out.js", b"dist/more/deep.js", b"x.log"}
    assert both.ignored_created == ()


def test_force_added_files_count_as_ignored_since_the_agents_index_is_not_read(made):
    made.write({"dist/out.js": b"1"})
    person_git(made.clone, "add", "-f", "dist/out.js")

    assert made.read().ignored_created == (Ignored(b"dist/", 1),)


def test_a_name_that_begins_with_a_colon_is_only_a_name(tmp_path):
    made = scene(tmp_path / "w", repository(tmp_path / "r", {".gitignore": b":*\n"}))
    made.write({":(top)x": b"1", ":(exclude)y": b"2", "x": b"3"})

    result = made.read()
    assert [one.path for one in result.ignored_created] == [b":(exclude)y", b":(top)x"]
    assert set(made.changed(result)) == {b"x"}


def test_rules_the_agent_writes_leave_nothing_out(made):
    made.write({".gitignore": b"*\n", "sub/.gitignore": b"*\n", "sub/evil.py": b"1"})

    result = made.read()
    assert result.ignored_created == ()
    assert set(made.changed(result)) == {b".gitignore", b"sub/.gitignore", b"sub/evil.py"}


def test_rules_of_the_account_leave_nothing_out(made, tmp_path, monkeypatch):
    (tmp_path / "git").mkdir()
    (tmp_path / "git" / "ignore").write_text("*.py\n")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    made.write({"new.py": b"1"})

    assert set(made.changed()) == {b"new.py"}


def test_our_own_directories_never_land(tmp_path):
    made = scene(tmp_path / "w", repository(tmp_path / "r", {".sanduk/tracked": b"1"}))
    made.write({
        ".sanduk/skills/a.md": b"1", ".sandkeep/results.json": b"2", ".sanduk/tracked": b"2",
        ".Sanduk/x": b"3", "sub/.sanduk/y": b"4",
    })  # fmt: skip
    result = made.read()

    assert set(made.changed(result)) == {b"sub/.sanduk/y"}
    (made.clone / ".sanduk" / "tracked").unlink()
    assert set(made.changed()) == {b"sub/.sanduk/y"}


def test_a_nested_repository_is_refused_by_name_and_can_be_asked_for(made):
    inner = repository(made.clone / "vendor" / "inner", {"deep/x": b"1"})
    person_git(made.clone / "vendor", "clone", "-q", "--bare", "inner", "bare")
    assert inner.exists()

    result = made.read()
    reason = "is a repository of its own; its files can be asked for"
    assert names(result) == {b"vendor/bare": reason, b"vendor/inner": reason}
    assert result.tree == made.provided.base_tree

    taken = made.read(take={b"vendor/inner"})
    assert set(made.changed(taken)) == {
        b"vendor/inner/README.md", b"vendor/inner/deep/x", b"vendor/inner/src/app.py",
    }  # fmt: skip
    assert names(taken)[b"vendor/inner/.git"] == "is a name of git's own directory"
    assert all(b"160000" not in one for one in listed(made.store.path, taken.tree))


def test_a_repository_made_of_a_tracked_directory_hides_none_of_its_files(made):
    person_git(made.clone / "lib", "init", "-q")
    made.write({"lib/a.py": b"edited", "lib/new": b"1"})

    result = made.read()
    assert set(made.changed(result)) == {b"lib/a.py", b"lib/new"}
    assert names(result) == {b"lib/.git": "is a name of git's own directory"}


@pytest.fixture
def with_submodule(tmp_path: Path) -> Scene:
    inner = repository(tmp_path / "inner")
    made = repository(tmp_path / "r")
    words = ("-c", "protocol.file.allow=always", "submodule", "--quiet", "add")
    person_git(made, *words, str(inner), "mod")
    person_git(made, "commit", "-qam", "with a submodule")
    return scene(tmp_path / "w", made)


def test_what_is_written_in_a_submodule_is_refused_and_its_commit_stays(with_submodule):
    with_submodule.write({"mod/x": b"1"})

    result = with_submodule.read()
    assert names(result) == {b"mod": "is a submodule: what was written in it cannot land here"}
    assert result.tree == with_submodule.provided.base_tree


def test_a_submodule_that_was_removed_is_a_change(with_submodule):
    (with_submodule.clone / "mod").rmdir()

    change = with_submodule.changed()[b"mod"]
    assert (change.kind, change.old_mode) == ("deleted", "160000")
