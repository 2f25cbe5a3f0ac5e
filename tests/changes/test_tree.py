"""What an agent left is read file by file: exactly, or refused by name."""

from __future__ import annotations

import os
import socket

import pytest

from tests.changes.making import content, names, person_git


def test_an_untouched_clone_is_the_base(made):
    result = made.read()

    assert result.tree == made.provided.base_tree
    assert (result.ignored_created, result.refused, result.files) == ((), (), 0)


def test_files_are_added_edited_and_deleted(made):
    made.write({"new/deep/file.py": b"new\n", "lib/a.py": b"edited\n"})
    (made.clone / "lib" / "b.py").unlink()

    changed = made.changed()
    assert {path: one.kind for path, one in changed.items()} == {
        b"new/deep/file.py": "added", b"lib/a.py": "modified", b"lib/b.py": "deleted",
    }  # fmt: skip
    assert content(made, b"lib/a.py") == b"edited\n"


def test_the_tree_is_the_one_git_makes_of_the_same_files(made):
    made.write({"x/y": b"1", "x.z": b"2", "x-": b"3", "lib/c": b"4", "README.md": b"5"})
    (made.clone / "run.sh").chmod(0o755)
    (made.clone / "link").symlink_to("lib/a.py")
    result = made.read()

    person_git(made.clone, "add", "-A")
    assert result.tree == os.fsdecode(person_git(made.clone, "write-tree")).strip()


def test_a_changed_mode_is_taken_and_only_that(made):
    (made.clone / "run.sh").chmod(0o755)
    (made.clone / "README.md").chmod(0o660)

    changed = made.changed()
    assert [(one.path, one.kind, one.new_mode) for one in changed.values()] == [
        (b"run.sh", "mode", "100755")
    ]


def test_a_link_is_taken_as_a_link_and_never_followed(made, tmp_path):
    outside = tmp_path / "outside"
    outside.write_bytes(b"a secret of the host")
    (made.clone / "out").symlink_to(outside)
    (made.clone / "README.md").unlink()
    (made.clone / "README.md").symlink_to("/etc/passwd")
    (made.clone / "loop").symlink_to("loop")
    (made.clone / "odd").symlink_to(os.fsdecode(b"no\xffutf8"))

    result = made.read()
    changed = made.changed(result)
    assert {path: one.new_mode for path, one in changed.items()} == dict.fromkeys(
        [b"out", b"README.md", b"loop", b"odd"], "120000"
    )
    assert changed[b"README.md"].kind == "type"
    assert content(made, b"out", result) == os.fsencode(outside)
    assert content(made, b"odd", result) == b"no\xffutf8"


def test_a_directory_swapped_for_a_link_is_not_looked_into(made, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.py").write_bytes(b"a secret of the host")
    for file in (made.clone / "lib").iterdir():
        file.unlink()
    (made.clone / "lib").rmdir()
    (made.clone / "lib").symlink_to(outside)

    changed = made.changed()
    assert {path: one.kind for path, one in changed.items()} == {
        b"lib": "added", b"lib/a.py": "deleted", b"lib/b.py": "deleted",
    }  # fmt: skip


def test_the_clone_itself_may_not_be_a_link(made, tmp_path):
    made.clone.rename(tmp_path / "elsewhere")
    made.clone.symlink_to(tmp_path / "elsewhere")

    with pytest.raises(OSError, match=r"Not a directory|Too many levels"):
        made.read()


@pytest.mark.parametrize("kind", ["pipe", "socket"])
def test_what_is_no_file_is_refused_and_the_base_stays(kind, made, monkeypatch):
    (made.clone / "README.md").unlink()
    monkeypatch.chdir(made.clone)  # the name of a socket has to be short
    for name in ("README.md", "new"):
        if kind == "pipe":
            os.mkfifo(name)
        else:
            with socket.socket(socket.AF_UNIX) as one:
                one.bind(name)

    result = made.read()
    assert names(result) == dict.fromkeys([b"README.md", b"new"], "is a pipe, a socket or a device")
    assert result.tree == made.provided.base_tree


def test_a_pipe_in_place_of_a_directory_leaves_all_below_it_as_it_was(made):
    for file in (made.clone / "lib").iterdir():
        file.unlink()
    (made.clone / "lib").rmdir()
    os.mkfifo(made.clone / "lib")

    assert made.read().tree == made.provided.base_tree


def test_hard_links_are_two_files(made):
    os.link(made.clone / "README.md", made.clone / "twin")

    assert content(made, b"twin") == b"hello\n"


def test_any_name_a_file_may_have_lands_exactly(made):
    odd = [
        b"line\nfeed", b"quo\"te'", b"\xff\xe9", b"a:b", b":(top)x", b":(bad)x", b"-rf", b"!not",
        b"#hash",
        b" ", b"trailing ", b"\x1b[2J", b"tab\there", b"*", b"[a]", b"back\\slash",
        b"\xe2\x80\xae", "ü".encode(), b"con", b"a" * 255,
    ]  # fmt: skip
    made.write({name: b"content of " + name for name in odd})
    made.write({b"in/" + name + b"/" + name: b"deep " + name for name in odd})

    result = made.read()
    assert names(result) == {}
    assert set(made.changed(result)) == {*odd, *(b"in/" + name + b"/" + name for name in odd)}
    for name in odd:
        assert content(made, name, result) == b"content of " + name


@pytest.mark.parametrize("where", [b"", b"sub/", b"lib/"])
def test_no_spelling_of_gits_own_directory_lands(where, made):
    spellings = [
        b".GIT", b".Git", b".git\xe2\x80\x8c", b".g\xe2\x80\x8dit", b"\xef\xbb\xbf.git", b"git~1",
        b"GIT~2", b".git.", b".git ", b".git . .", b".git::$INDEX_ALLOCATION", b".git:x",
        b".git\\x", b"a\\.git\\hooks",
    ]  # fmt: skip
    made.write({where + name + b"/hooks/post-checkout": b"evil" for name in spellings})
    made.write({where + b"ok": b"1"})

    result = made.read()
    reason = "is a name of git's own directory"
    assert names(result) == {where + name: reason for name in spellings}
    assert set(made.changed(result)) == {where + b"ok"}


def test_names_that_only_resemble_it_land(made):
    alike = [b"git", b".github", b".gitignore", b".git-x", b"x.git", b".gi", b"git~", b"legit~1"]
    made.write({b"sub/" + name: b"" for name in alike})

    assert names(made.read()) == {}
    assert len(made.changed()) == len(alike)


def test_the_clones_own_git_directory_is_not_looked_at(made, tmp_path):
    outside = tmp_path / "outside"
    (made.clone / ".git").rename(outside)
    assert made.read().tree == made.provided.base_tree

    (made.clone / ".git").symlink_to(outside)
    assert made.read().tree == made.provided.base_tree

    (made.clone / ".git").unlink()
    (made.clone / ".git").write_text("gitdir: /etc")
    assert made.read().tree == made.provided.base_tree


def test_nothing_in_the_clones_configuration_is_run_or_believed(made, tmp_path):
    started = tmp_path / "started"
    run = f"touch '{started}'; cat"
    for key in ("core.fsmonitor", "filter.x.clean", "filter.x.process", "core.sshCommand",
                "diff.x.textconv", "diff.external", "core.pager", "gpg.program"):  # fmt: skip
        person_git(made.clone, "config", key, run)
    person_git(made.clone, "config", "diff.noprefix", "true")
    person_git(made.clone, "config", "core.worktree", "/etc")
    person_git(made.clone, "config", "core.excludesFile", str(made.clone / "all"))
    made.write({
        ".git/info/attributes": b"* -diff filter=x diff=x\n", ".git/info/exclude": b"*\n",
        ".git/hooks/post-index-change": run.encode(), "all": b"*\n",
        ".git/objects/info/alternates": b"/etc\n", "docs/x.yml": b"on: push\n",
    })  # fmt: skip
    (made.clone / ".git" / "hooks" / "post-index-change").chmod(0o755)

    changed = made.changed()
    assert set(changed) == {b"all", b"docs/x.yml"}
    assert changed[b"docs/x.yml"].added_lines == 1
    assert not started.exists()


def test_attributes_the_agent_writes_hide_nothing(made):
    made.write(
        {".gitattributes": b"* -diff -text binary filter=x eol=crlf\n", "evil.py": b"1\n2\n"}
    )

    change = made.changed()[b"evil.py"]
    assert (change.binary, change.added_lines) == (False, 2)


def test_line_ends_land_as_they_are(made):
    made.write(
        {".gitattributes": b"* text=auto eol=lf\n", "README.md": b"hello\r\n", "m": b"\r\n\n"}
    )

    result = made.read()
    assert content(made, b"README.md", result) == b"hello\r\n"
    assert content(made, b"m", result) == b"\r\n\n"


def test_bytes_that_are_no_text_land_as_they_are(made):
    latin, binary = "café\n".encode("latin-1"), bytes(range(256)) * 9
    made.write({"latin.txt": latin, "binary": binary, "empty": b""})

    result = made.read()
    assert [content(made, path, result) for path in (b"latin.txt", b"binary", b"empty")] == [
        latin, binary, b"",
    ]  # fmt: skip
