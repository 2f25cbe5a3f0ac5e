"""Skills that a kit holds: the listing and the directory agree, and SKILL.md says what it is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recipes import RecipeError, load_kit
from recipes.skills import front_matter
from tests.recipes.conftest import WriteKit, held, sha, skill_text


def refusal(path: Path) -> str:
    with pytest.raises(RecipeError) as caught:
        load_kit(str(path))
    return str(caught.value)


@pytest.fixture
def kit(write_kit: WriteKit) -> Path:
    skill, files = held("s")
    skill["files"]["more/a.txt"] = sha("a")
    return write_kit("k", {**files, "skills/s/more/a.txt": "a"}, skills=[skill])


def test_a_skill_is_read_file_by_file(kit: Path) -> None:
    (skill,) = load_kit(str(kit)).skills
    assert {name: file.content for name, file in skill.files.items()} == {
        "SKILL.md": skill_text("s").encode(),
        "more/a.txt": b"a",
    }


def test_k7_what_was_hashed_is_what_is_built(kit: Path) -> None:
    """The file changes between the look at its hash and the build."""
    loaded = load_kit(str(kit))
    (kit.parent / "skills/s/more/a.txt").write_text("b")
    assert loaded.skills[0].files["more/a.txt"].content == b"a"


def test_a_file_with_another_content_is_refused_with_both_hashes(kit: Path) -> None:
    (kit.parent / "skills/s/more/a.txt").write_text("b")
    said = refusal(kit)
    assert said.startswith(f"{kit}: $.skills[0].files: skills/s/more/a.txt has another content: ")
    assert sha("a") in said
    assert sha("b") in said


def test_a_file_that_is_not_listed_is_refused(kit: Path) -> None:
    (kit.parent / "skills/s/more/b").touch()
    assert "skills/s/more/b is there but not listed" in refusal(kit)


def test_a_listed_file_that_is_not_there_is_refused(kit: Path) -> None:
    (kit.parent / "skills/s/more/a.txt").unlink()
    assert "skills/s has no file more/a.txt" in refusal(kit)


@pytest.mark.parametrize("kind", ["file", "directory", "above", "fifo"])
def test_only_plain_files_make_a_skill(kit: Path, tmp_path: Path, kind: str) -> None:
    skill = kit.parent / "skills" / "s"
    if kind == "file":
        (skill / "more/a.txt").unlink()
        (skill / "more/a.txt").symlink_to("/etc/hostname")
    elif kind == "directory":
        (skill / "more").rename(tmp_path / "more")
        (skill / "more").symlink_to(tmp_path / "more")
    elif kind == "above":
        skill.parent.rename(tmp_path / "skills")
        skill.parent.symlink_to(tmp_path / "skills")
    else:
        os.mkfifo(skill / "pipe")
    assert "symbolic link" in refusal(kit) or "no regular file" in refusal(kit)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("# s\n", "it must begin with a front matter"),
        ("---\nname: s\n", "its front matter has no end"),
        ("---\nname: t\ndescription: d\n---\n", "its name must be s, as its directory is called"),
        ("---\ndescription: d\n---\n", "it says nothing"),
        ("---\nname: s\n---\n", "needs a description that is not empty"),
        ("---\nname: s\ndescription: ''\n---\n", "needs a description that is not empty"),
        ("---\nname: s\ndescription: >\n---\n", "needs a description that is not empty"),
        ("---\nname: s\nname: s\n---\n", "has name twice"),
        ("---\nname: s\nwhat\n---\n", "line 3 of its front matter is not"),
        ('---\nname: "s\n---\n', "is not closed"),
    ],
)
def test_a_skill_says_its_name_and_what_it_is_for(
    write_kit: WriteKit, text: str, sentence: str
) -> None:
    skill = {"path": "skills/s", "files": {"SKILL.md": sha(text)}}
    assert sentence in refusal(write_kit("k", {"skills/s/SKILL.md": text}, skills=[skill]))


def test_a_skill_without_skill_md_is_refused(write_kit: WriteKit) -> None:
    skill = {"path": "skills/s", "files": {"README.md": sha("x")}}
    assert "a skill has a file SKILL.md" in refusal(
        write_kit("k", {"skills/s/README.md": "x"}, skills=[skill])
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name: s\ndescription: a: b # c\n", {"name": "s", "description": "a: b"}),
        ("name: 's' # the name\n", {"name": "s"}),
        ("name: 'it''s'\n", {"name": "it's"}),
        ('name: "a \\"b\\" \\\\ #"\n', {"name": 'a "b" \\ #'}),
        ("description: >\n  one\n  two\nname: s\n", {"description": "one two", "name": "s"}),
        ("description: |-\n  one\n  two\n", {"description": "one\ntwo"}),
        ("description: one\n  two\n", {"description": "one two"}),
        ("metadata:\n  name: inner\n  list:\n  - a\nname: s\n", {"name": "s"}),
        ("# name: x\n\nname: s\n", {"name": "s"}),
        ("allowed-tools: [a, b]\nname: s\r\n", {"name": "s"}),
    ],
)
def test_k7_front_matter_is_read_as_yaml_writes_scalars(
    text: str, expected: dict[str, str]
) -> None:
    assert expected.items() <= front_matter(f"---\n{text}---\nname: not here\n").items()


@given(st.text(st.sampled_from("ab:#'\"|> -\n\t\\\u2028[]{}"), max_size=60))
def test_any_front_matter_is_read_or_refused_in_a_sentence(text: str) -> None:
    try:
        front_matter(f"---\n{text}\n---\n")
    except ValueError as error:
        assert "front matter" in str(error)  # noqa: PT017
