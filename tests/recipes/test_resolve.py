"""Inheritance, removal, and where recipes are found."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from recipes import Recipe, RecipeError, load, recipe_names
from recipes.files import MAX_FILE_BYTES
from recipes.resolve import MAX_ANCESTRY
from tests.recipes.conftest import BASE, Write, apt

SHA = "0" * 64


def names(recipe: Recipe) -> list[str]:
    return [placed.section.name for placed in recipe.sections]


def test_a_child_replaces_in_place_and_appends(write: Write) -> None:
    write("base", sections=[apt("a"), apt("b")], env={"X": "1", "Y": "1"})
    child = write(
        "child",
        complete=False,
        inherits="./base.json",
        sections=[apt("a", "other"), apt("c")],
        env={"X": "2"},
        home="/home/child",
    )
    recipe = load(str(child))
    assert names(recipe) == ["a", "b", "c"]
    assert [placed.owner for placed in recipe.sections] == ["child", "base", "child"]
    assert recipe.env == {"X": "2", "Y": "1"}
    assert (recipe.home, recipe.base) == ("/home/child", BASE["from"])
    assert recipe.name == "child"


@pytest.mark.parametrize("order", [["lean", "other"], ["other", "lean"]])
@pytest.mark.parametrize("remove", [{"sections": ["a"]}, {"section_types": ["apt"]}])
def test_k4_what_one_side_of_a_diamond_removed_stays_removed(
    write: Write, order: list[str], remove: dict[str, list[str]]
) -> None:
    write("base", sections=[apt("a")], env={"X": "1"})
    write("lean", complete=False, inherits="./base.json", remove={**remove, "env": ["X"]})
    write("other", complete=False, inherits="./base.json", sections=[apt("b")])
    path = write("both", complete=False, inherits=[f"./{name}.json" for name in order])
    recipe = load(str(path))
    assert names(recipe) == ["b"]
    assert recipe.env == {}


@pytest.mark.parametrize("order", [["own", "plain"], ["plain", "own"]])
def test_what_one_side_of_a_diamond_changed_stays_changed(write: Write, order: list[str]) -> None:
    write("base", sections=[apt("a", "old")], env={"X": "old"})
    write(
        "own",
        complete=False,
        inherits="./base.json",
        sections=[apt("a", "new")],
        env={"X": "new"},
        entrypoint=["new"],
    )
    write("plain", complete=False, inherits="./base.json")
    path = write("both", complete=False, inherits=[f"./{name}.json" for name in order])
    recipe = load(str(path))
    assert recipe.sections[0].section.install == ["new"]
    assert recipe.env == {"X": "new"}
    assert recipe.entrypoint == ("new",)


def test_a_section_removed_on_one_side_and_replaced_on_the_other_is_the_replacement(
    write: Write,
) -> None:
    write("base", sections=[apt("a", "old")])
    write("lean", complete=False, inherits="./base.json", remove={"sections": ["a"]})
    write("own", complete=False, inherits="./base.json", sections=[apt("a", "new")])
    path = write("both", complete=False, inherits=["./lean.json", "./own.json"])
    (placed,) = load(str(path)).sections
    assert placed.owner == "own"


def test_shared_instructions_are_said_once_and_ancestors_first(write: Write) -> None:
    write("base", instructions={"text": "base"})
    write("one", complete=False, inherits="./base.json", instructions={"text": "one"})
    write("two", complete=False, inherits="./base.json", instructions={"text": "two\n"})
    path = write("both", complete=False, inherits=["./one.json", "./two.json"])
    assert load(str(path)).instructions == ("base\n", "one\n", "two\n")


@pytest.mark.parametrize(
    ("remove", "sections", "sentence"),
    [
        ({"sections": ["zz"]}, [], "$.remove.sections: zz is not inherited"),
        ({"env": ["ZZ"]}, [], "$.remove.env: ZZ is not inherited"),
        ({"kits": ["zz"]}, [], "$.remove.kits: zz is not inherited"),
        ({"section_types": ["pip"]}, [], "no section of type pip is inherited"),
        ({"sections": ["a"]}, [apt("a")], "this recipe itself adds a"),
    ],
)
def test_a_removal_that_cannot_be_meant_is_refused(
    write: Write, remove: dict[str, list[str]], sections: list[object], sentence: str
) -> None:
    write("base", sections=[apt("a")])
    path = write("child", complete=False, inherits="./base.json", remove=remove, sections=sections)
    with pytest.raises(RecipeError) as caught:
        load(str(path))
    assert str(caught.value).startswith(f"{path}: ")
    assert sentence in str(caught.value)


def test_a_cycle_is_refused_with_its_chain(write: Write) -> None:
    write("a", inherits="./b.json")
    write("b", inherits="./c.json")
    write("c", inherits="./a.json")
    with pytest.raises(RecipeError, match="a -> b -> c -> a"):
        load(str(write("a", inherits="./b.json")))


def test_what_must_be_set_is_named(write: Write) -> None:
    path = write("x", complete=False, agent="pi", user="u")
    with pytest.raises(RecipeError, match="not inherited: from, home, entrypoint"):
        load(str(path))


def test_the_name_must_be_the_file_s(write: Write, tmp_path: Path) -> None:
    path = write("x").rename(tmp_path / "y.json")
    with pytest.raises(RecipeError, match=r"\$\.name: x is not the file's name; expected y"):
        load(str(path))


def test_a_missing_parent_is_named_with_its_place(write: Write) -> None:
    path = write("x", inherits=["claude", "nowhere"])
    with pytest.raises(RecipeError, match=r"x\.json: \$\.inherits\[1\]: recipe nowhere"):
        load(str(path))


def test_names_are_found_in_the_configuration_and_never_in_the_working_directory(
    write: Write, tmp_path: Path, config_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    written = write("mine", inherits="pi")
    with pytest.raises(RecipeError, match="recipe mine: there is none"):
        load("mine")
    own = config_home / "sanduk" / "recipes"
    own.mkdir(parents=True)
    written.rename(own / "mine.json")
    assert load("mine").agent == "pi"
    assert "mine" in recipe_names()


def test_a_shipped_name_cannot_be_taken(write: Write, config_home: Path) -> None:
    own = config_home / "sanduk" / "recipes"
    own.mkdir(parents=True)
    write("pi").rename(own / "pi.json")
    with pytest.raises(RecipeError, match="shipped recipe, which cannot be replaced"):
        load("pi")


@pytest.mark.parametrize(
    "spec", ["", "UP", "a_b", "-a", "a-", "x\0y", "/", "./none.json", "~nobody/x"]
)
def test_a_bad_spec_is_refused(spec: str) -> None:
    with pytest.raises(RecipeError):
        load(spec)


def test_a_relative_path_starts_at_the_current_directory(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("x")
    monkeypatch.chdir(tmp_path)
    assert load("x.json").path == str(tmp_path / "x.json")


def copying(write: Write, source: str) -> Path:
    return write("x", sections=[{"name": "f", "type": "copy", "from": source, "to": "/opt/f"}])


def test_a_copied_file_is_read_with_its_executable_bit(write: Write, tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "f").write_bytes(b"\xff\n")
    (tmp_path / "d" / "f").chmod(0o700)
    (placed,) = load(str(copying(write, "d/f"))).sections
    assert placed.file is not None
    assert (placed.file.content, placed.file.mode) == (b"\xff\n", 0o755)


@pytest.mark.parametrize("kind", ["link", "link above", "fifo", "directory", "missing", "huge"])
def test_only_a_regular_file_beside_the_recipe_is_copied(
    write: Write, tmp_path: Path, kind: str
) -> None:
    target = tmp_path / "d" / "f"
    target.parent.mkdir()
    if kind == "link":
        target.symlink_to("/etc/hostname")
    elif kind == "link above":
        target.parent.rmdir()
        (tmp_path / "e").mkdir()
        (tmp_path / "e" / "f").write_text("x")
        target.parent.symlink_to(tmp_path / "e")
    elif kind == "fifo":
        os.mkfifo(target)
    elif kind == "directory":
        target.mkdir()
    elif kind == "huge":
        target.touch()
        os.truncate(target, MAX_FILE_BYTES + 1)
    path = copying(write, "d/f")
    with pytest.raises(RecipeError) as caught:
        load(str(path))
    assert str(caught.value).startswith(f"{path}: $.sections[0].from: d/f: ")


def test_a_removed_section_s_file_need_not_exist(write: Write) -> None:
    copying(write, "nowhere")
    path = write("y", complete=False, inherits="./x.json", remove={"sections": ["f"]})
    assert load(str(path)).sections == ()


@pytest.mark.parametrize(("content", "word"), [(b" \n", "blank"), (b"\xff", "not UTF-8")])
def test_instructions_must_say_something(
    write: Write, tmp_path: Path, content: bytes, word: str
) -> None:
    (tmp_path / "i.md").write_bytes(content)
    with pytest.raises(RecipeError, match=word):
        load(str(write("x", instructions="i.md")))


def chained(write: Write, length: int) -> Path:
    """A complete recipe and others upon it, each inheriting the one before; the last one."""
    path = write("c1")
    for number in range(2, length + 1):
        path = write(f"c{number}", complete=False, inherits=f"./c{number - 1}.json")
    return path


def test_as_many_recipes_upon_each_other_as_said_are_read_and_no_more(write: Write) -> None:
    last = chained(write, MAX_ANCESTRY + 1)
    assert load(str(last.with_name(f"c{MAX_ANCESTRY}.json"))).agent == "pi"
    with pytest.raises(RecipeError) as caught:
        load(str(last))
    assert str(caught.value) == (
        f"{last}: $.inherits: a chain of more than 32 recipes; "
        "inherit one that is nearer to its end"
    )


def test_a_kit_without_a_pin_is_refused_with_the_command_that_pins_it(write: Write) -> None:
    write("base", kits=[{"name": "docs"}])
    path = write("child", complete=False, inherits="./base.json")
    base = path.with_name("base.json")
    with pytest.raises(RecipeError) as caught:
        load(str(path))
    assert str(caught.value).endswith(
        f"{base}: $.kits[0]: object missing required field sha256; "
        f"pin it with: sanduk kit pin {base}"
    )
