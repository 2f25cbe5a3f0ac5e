"""The list of changed paths and the patch say what the trees say, whatever is in them."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from changes.git import GitError
from changes.patches import changed_paths, digest_of, patch
from tests.changes.making import Scene, listed, person_git, repository, scene, write


def patch_of(made: Scene, **options) -> bytes:
    return patch(made.store, made.provided.base_tree, made.read().tree, **options)


def applied(made: Scene, text: bytes, where) -> list[bytes]:
    """The tree git makes of the base and a patch, in a repository of its own."""
    person_git(where, "init", "-q", "target")
    target = where / "target"
    person_git(target, "fetch", "-q", str(made.store.path), made.base)
    person_git(target, "read-tree", made.base)
    if text:
        person_git(target, "apply", "--cached", "--whitespace=nowarn", input=text)
    return listed(target, os.fsdecode(person_git(target, "write-tree")).strip())


def test_nothing_changed_is_an_empty_list_and_an_empty_patch(made):
    assert made.changed() == {}
    assert patch_of(made) == b""


def test_each_kind_of_change_is_named(made):
    made.write({"added": b"1\n2\n", "lib/a.py": b"edited\n", "data": bytes(9), "empty": b""})
    (made.clone / "lib" / "b.py").unlink()
    (made.clone / "run.sh").chmod(0o755)
    (made.clone / "README.md").unlink()
    (made.clone / "README.md").symlink_to("run.sh")
    (made.clone / "src" / "app.py").rename(made.clone / "src" / "moved.py")

    found = made.changed()
    assert {path: one.kind for path, one in found.items()} == {
        b"README.md": "type", b"added": "added", b"data": "added", b"empty": "added",
        b"lib/a.py": "modified", b"lib/b.py": "deleted", b"run.sh": "mode",
        b"src/moved.py": "renamed",
    }  # fmt: skip
    assert (found[b"lib/a.py"].added_lines, found[b"lib/a.py"].deleted_lines) == (1, 1)
    assert found[b"added"].added_lines == 2
    assert found[b"data"].binary
    assert not found[b"empty"].binary
    assert found[b"src/moved.py"].old_path == b"src/app.py"
    assert found[b"lib/b.py"].new_id == ""
    assert found[b"added"].old_id == ""
    assert (found[b"run.sh"].old_mode, found[b"run.sh"].new_mode) == ("100644", "100755")
    assert found[b"run.sh"].old_id == found[b"run.sh"].new_id


def test_a_rename_that_is_also_edited_and_made_executable_shows_all_of_it(made):
    made.write({"lib/long.py": b"".join(b"line %d\n" % n for n in range(50))})
    tree = made.read().tree
    (made.clone / "lib" / "long.py").rename(made.clone / "other.py")
    with (made.clone / "other.py").open("ab") as file:
        file.write(b"one more\n")
    (made.clone / "other.py").chmod(0o755)

    (found,) = changed_paths(made.store, tree, made.read().tree)
    assert (found.kind, found.path, found.old_path) == ("renamed", b"other.py", b"lib/long.py")
    assert (found.old_mode, found.new_mode, found.added_lines) == ("100644", "100755", 1)


def test_empty_files_are_not_taken_for_renamed_ones(tmp_path):
    made = scene(tmp_path / "w", repository(tmp_path / "r", {"a/empty": b""}))
    (made.clone / "a" / "empty").unlink()
    made.write({"b/other": b""})

    kinds = {path: one.kind for path, one in made.changed().items()}
    assert kinds == {b"a/empty": "deleted", b"b/other": "added"}


def test_lines_that_look_like_headers_are_content(tmp_path):
    made = scene(
        tmp_path / "w", repository(tmp_path / "r", {"q.sql": b"-- /etc/passwd\nselect 1;\n"})
    )
    made.write({"q.sql": b"select 1;\n++ b/evil\n", "d": b"--- a/x\n+++ b/y\n@@ -1 +1 @@\n"})
    made.write({"u": "diff --git a/x b/x\u2028rename to ../z\n".encode()})

    found = made.changed()
    assert set(found) == {b"q.sql", b"d", b"u"}
    assert (found[b"q.sql"].added_lines, found[b"q.sql"].deleted_lines) == (1, 1)
    assert applied(made, patch_of(made), tmp_path) == listed(made.store.path, made.read().tree)


@pytest.mark.parametrize(
    ("key", "value"),
    [("diff.noprefix", "true"), ("diff.mnemonicPrefix", "true"), ("diff.srcPrefix", "x/"),
     ("diff.external", "false"), ("diff.orderFile", "/dev/null"), ("diff.renames", "copies"),
     ("diff.context", "0"), ("diff.submodule", "log"), ("diff.relative", "true"),
     ("diff.wordRegex", "."), ("color.ui", "always"), ("diff.algorithm", "patience"),
     ("diff.interHunkContext", "9"), ("core.quotePath", "true"), ("diff.indentHeuristic", "false"),
     ("diff.suppressBlankEmpty", "true")],
)  # fmt: skip
def test_no_setting_of_the_account_shapes_the_patch(key, value, made, tmp_path, monkeypatch):
    lines = b"".join(b"line %d\n\n" % n for n in range(9))
    made.write({"docs/x.yml": lines, "README.md": b"edited\n", "ü": b"1"})
    before, listed_before = patch_of(made), made.changed()
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home))
    person_git(made.repository, "config", "--file", str(home / ".gitconfig"), key, value)
    (home / "git").mkdir()
    (home / "git" / "attributes").write_text("* -diff\n")

    assert patch_of(made) == before
    assert made.changed() == listed_before
    assert b"+++ b/docs/x.yml\n" in before


def test_attributes_of_either_tree_hide_no_line(tmp_path):
    files = {".gitattributes": b"*.py -diff\n*.md binary\n", "b.md": b"1\n"}
    made = scene(tmp_path / "w", repository(tmp_path / "r", files))
    made.write({"src/app.py": b"evil\n", "b.md": b"evil\n", "sub/.gitattributes": b"* -diff\n"})
    made.write({"sub/x": b"evil\n"})

    text = patch_of(made)
    assert text.count(b"\n+evil\n") == 3
    assert not any(one.binary for one in made.changed().values())


def test_a_binary_file_is_whole_in_the_patch(made, tmp_path):
    made.write({"secrets.pem\n": bytes(range(256)) * 40, "latin": b"caf\xe9\n"})

    assert applied(made, patch_of(made), tmp_path) == listed(made.store.path, made.read().tree)


def test_a_patch_can_be_limited_to_paths_taken_as_they_are(made):
    made.write({"*": b"star\n", "other": b"other\n", ":(top)x": b"magic\n"})

    text = patch_of(made, paths=[b"*"])
    assert b"star" in text
    assert b"other" not in text
    assert b"magic" in patch_of(made, paths=[b":(top)x"])


def test_a_patch_over_the_limit_is_an_error_and_not_a_shorter_patch(made):
    made.write({"long": b"line\n" * 1000})

    with pytest.raises(GitError, match="printed more than 1000 bytes"):
        patch_of(made, limit_bytes=1000)


def test_only_full_ids_are_compared(made):
    for pair in (("HEAD", made.provided.base_tree), (made.provided.base_tree, "--output=x")):
        with pytest.raises(GitError, match="no object id"):
            changed_paths(made.store, *pair)
        with pytest.raises(GitError, match="no object id"):
            patch(made.store, *pair)


def test_the_digest_names_base_tree_and_patch():
    one, two = "1" * 40, "2" * 40
    digests = {
        digest_of(one, two, b"p"), digest_of(two, one, b"p"), digest_of(one, one, b"p"),
        digest_of(one, two, b"q"), digest_of(one, two, b""),
    }  # fmt: skip

    assert len(digests) == 5
    assert all(len(digest) == 64 for digest in digests)
    assert digest_of(one, two, b"p") == digest_of(one, two, b"p")
    with pytest.raises(GitError):
        digest_of("main", two, b"p")


NAMES = st.binary(min_size=1, max_size=12).filter(
    lambda name: not {0, ord("/")} & set(name) and name not in (b".", b"..") and name != b".git"
)
FILES = st.dictionaries(NAMES, st.binary(max_size=200), max_size=6)


@settings(max_examples=15, deadline=None)
@given(before=FILES, after=FILES)
def test_base_and_patch_make_exactly_the_tree(before, after):
    """Whatever names and bytes: what is shown is what lands."""
    with tempfile.TemporaryDirectory() as scratch:
        where = Path(scratch)
        made = scene(where / "w", repository(where / "r"))
        write(made.clone, {b"d/" + name: data for name, data in before.items()})
        middle = made.read().tree
        for name in before.keys() - after.keys():
            (made.clone / "d" / os.fsdecode(name)).unlink()
        write(made.clone, {b"d/" + name: data for name, data in after.items()})
        final = made.read().tree

        whole = patch(made.store, made.provided.base_tree, final)
        assert applied(made, whole, where) == listed(made.store.path, final)
        entries = {one: set(listed(made.store.path, one)) for one in (middle, final)}
        differing = {line.split(b"\t", 1)[1] for line in entries[middle] ^ entries[final]}
        found = changed_paths(made.store, middle, final)
        assert {p for one in found for p in (one.path, one.old_path) if p is not None} == differing
