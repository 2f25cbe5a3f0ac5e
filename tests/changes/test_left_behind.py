"""What a person might expect in an agent's clone and will not find there is said."""

from __future__ import annotations

import os
import subprocess

from tests.changes.making import commit, person_git, provided, repository, scene, write


def test_submodules_come_as_empty_directories_and_that_is_said(tmp_path):
    inner = repository(tmp_path / "inner")
    made = repository(tmp_path / "r")
    allowed = ("-c", "protocol.file.allow=always")
    person_git(made, *allowed, "submodule", "--quiet", "add", str(inner), "libs/inner")
    commit(made, "with a submodule")

    done = scene(tmp_path / "w", made)
    assert list((done.clone / "libs" / "inner").iterdir()) == []
    assert "1 submodule (libs/inner): the directory is there and empty" in done.provided.left_out
    assert done.read().tree == done.provided.base_tree
    inside = provided(made / "libs" / "inner", tmp_path)
    assert inside.repository == made / "libs" / "inner"


def test_pointers_of_lfs_are_counted(tmp_path):
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize 12345\n" % (
        b"a" * 64
    )
    files = {".gitattributes": b"*.bin filter=lfs diff=lfs\n", "a.bin": pointer, "b.txt": pointer}
    made = repository(tmp_path / "r", files)
    person_git(made, "config", "filter.lfs.smudge", "touch started; cat")
    person_git(made, "config", "filter.lfs.clean", "touch started; cat")

    done = scene(tmp_path / "w", made)
    assert "2 files (a.bin, b.txt) kept in Git LFS: the agent sees the pointer only" in (
        done.provided.left_out
    )
    assert (done.clone / "a.bin").read_bytes() == pointer
    assert not list(tmp_path.rglob("started"))


def test_a_sparse_checkout_does_not_count_and_that_is_said(tmp_path):
    made = repository(tmp_path / "r", {"docs/a": b"1"})
    person_git(made, "sparse-checkout", "set", "src")
    assert not (made / "docs").exists()

    done = scene(tmp_path / "w", made)
    assert (done.clone / "docs" / "a").exists()
    assert [said for said in done.provided.left_out if "sparse" in said]
    assert not [said for said in done.provided.left_out if "not committed" in said]


def test_what_is_not_committed_is_said(tmp_path):
    made = repository(tmp_path / "r", {".gitignore": b"*.log\n", "staged": b"1", "gone": b"1"})
    write(made, {"README.md": b"edited\n", "new\x1b[2J": b"", "noise.log": b"", "staged": b"2"})
    person_git(made, "add", "staged")
    (made / "gone").unlink()
    write(made, {".git/info/exclude": b"private\n", "private": b"1"})

    left_out = provided(made, tmp_path).left_out
    assert left_out[0] == "3 files (README.md, gone, staged) with changes that are not committed"
    assert left_out[1] == "1 untracked path (new\\x1b[2J)"
    assert len(left_out) == 2


def test_an_edit_of_the_same_size_and_moment_is_not_overlooked(tmp_path):
    made = repository(tmp_path / "r", {"a": b"1"})
    index, moment = made / ".git" / "index", 1_700_000_000
    os.utime(made / "a", (moment, moment))
    person_git(made, "update-index", "--refresh")
    (made / "a").write_bytes(b"2")
    os.utime(made / "a", (moment, moment))
    os.utime(index, (moment, moment))

    assert provided(made, tmp_path).left_out[0].startswith("1 file (a) with changes")


def test_looking_for_what_is_not_committed_runs_no_filter_and_no_monitor(tmp_path):
    made = repository(tmp_path / "r", {".gitattributes": b"*.py filter=run\n"})
    started = tmp_path / "started"
    person_git(made, "config", "filter.run.clean", f"touch '{started}'; cat")
    person_git(made, "config", "core.fsmonitor", f"touch '{started}'; false")
    write(made, {"src/app.py": b"print(2)\n"})

    assert "src/app.py" in provided(made, tmp_path).left_out[0]
    assert not started.exists()
    subprocess.run(["git", "status"], cwd=made, check=True, capture_output=True, timeout=30)
    assert started.exists(), "they run when nobody forbids it"


def test_a_checkout_is_not_written_to(tmp_path):
    made = repository(tmp_path / "r")
    (made / "README.md").touch()
    before = {path: path.stat().st_mtime_ns for path in (made / ".git").rglob("*")}
    provided(made, tmp_path)

    assert {path: path.stat().st_mtime_ns for path in (made / ".git").rglob("*")} == before


def test_our_own_directories_tracked_are_said(tmp_path):
    made = repository(tmp_path / "r", {".sanduk/skills/a.md": b"1", ".sandkeep/b": b"1"})

    said = provided(made, tmp_path).left_out
    assert said[0].startswith("2 tracked files (.sandkeep/b, .sanduk/skills/a.md): nothing below")
