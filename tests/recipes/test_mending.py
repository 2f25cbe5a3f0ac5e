"""Edits that keep the form of a file: pins renewed, and what is not built rewritten."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recipes import RecipeError, load, load_kit, render
from recipes.catalog import SHIPPED
from recipes.edits import add_after, drop, put
from recipes.mending import Mended, fix, pin
from recipes.pins import problems
from recipes.spans import line_of, spans
from tests.recipes.conftest import Write, WriteKit, held, pinned, sha, skill_text

SHA = "0" * 64
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)


@given(JSON, st.sampled_from([None, 1, 4, "\t"]))
def test_every_span_holds_its_value(document: object, indent: int | str | None) -> None:
    text = json.dumps(document, indent=indent)
    found = spans(text)
    whole = found["$"]
    assert json.loads(text[whole.start : whole.end]) == document
    for span in found.values():
        json.loads(text[span.start : span.end])


def test_the_line_of_a_path_is_told() -> None:
    text = '{\n  "a": [\n    1,\n    {"b.c": 2}\n  ]\n}\n'
    assert line_of(text, "$.a[0]") == 3
    assert line_of(text, "$.a[1].b.c") == 4
    assert line_of(text, "$.x") is None
    assert line_of("{", "$.x") is None


@pytest.mark.parametrize(
    ("text", "path", "expected"),
    [
        ('{"a": [1, 2, 3]}', "$.a[0]", '{"a": [2, 3]}'),
        ('{"a": [1, 2, 3]}', "$.a[1]", '{"a": [1, 3]}'),
        ('{"a": [1, 2, 3]}', "$.a[2]", '{"a": [1, 2]}'),
        ('{"a": [ 1 ]}', "$.a[0]", '{"a": []}'),
        ('{\n "a": 1,\n "b.c": 2\n}', "$.b.c", '{\n "a": 1\n}'),
        ('{\n "a": 1,\n "b": 2\n}', "$.a", '{\n "b": 2\n}'),
    ],
)
def test_a_dropped_value_takes_its_comma_with_it(text: str, path: str, expected: str) -> None:
    assert drop(text, path) == expected


def test_a_member_is_added_in_the_form_of_the_one_before() -> None:
    assert add_after('{"a": 1}', "$.a", "b", "x") == '{"a": 1, "b": "x"}'
    assert add_after('{\r\n\t"a": 1\r\n}', "$.a", "b", "x") == ('{\r\n\t"a": 1,\r\n\t"b": "x"\r\n}')
    assert put('{"a" : "ü"}', "$.a", "é") == '{"a" : "é"}'


def written(mended: Mended) -> None:
    for change in mended.changes:
        change.write()


# -- pins ------------------------------------------------------------------------------------------


def test_a_pin_is_renewed_and_nothing_else_is_touched(write: Write, write_kit: WriteKit) -> None:
    kit = write_kit("k")
    path = write("x")
    text = (
        '{ "name" : "x","inherits":"pi",\n\n'
        f'   "kits":[ {{"path":"./kits/k" , "sha256":"{SHA}"}} ]}}'
    )
    path.write_text(text)
    path.chmod(0o640)
    mended = pin(path)
    assert path.read_text() == text
    assert mended.told == (f"kit k was pinned at {SHA}, is pinned at {sha(kit)}",)
    assert f"-   \"kits\":[ {{\"path\":\"./kits/k\" , \"sha256\":\"{SHA}\"}} ]" in (
        mended.changes[0].diff()
    )  # fmt: skip
    written(mended)
    assert path.read_text() == text.replace(SHA, sha(kit))
    assert path.stat().st_mode & 0o777 == 0o640
    load(str(path))
    assert pin(path) == Mended(())


def test_a_pin_that_is_missing_is_added(write: Write, write_kit: WriteKit) -> None:
    kit = write_kit("k")
    path = write("x", kits=[{"path": "kits/k"}])
    written(pin(path))
    assert load(str(path)).kits[0].sha256 == sha(kit)


def test_the_hashes_in_a_kit_of_ones_own_are_renewed_with_it(
    write: Write, write_kit: WriteKit
) -> None:
    skill, files = held("s")
    skill["files"]["gone"] = SHA
    kit = write_kit(
        "k",
        {**files, "skills/s/new/b.txt": "b", "t": "one"},
        tools=[
            {"name": "t", "type": "copy", "from": "t", "to": "/opt/t"},
            {"name": "u", "type": "copy", "from": "t", "to": "/opt/u", "sha256": SHA},
        ],
        skills=[skill],
    )
    path = write("x", kits=[pinned(kit)])
    (kit.parent / "skills/s/SKILL.md").write_text(skill_text("s", "Other words."))
    written(pin(path))
    document = json.loads(kit.read_text())
    assert [tool["sha256"] for tool in document["tools"]] == [sha("one")] * 2
    assert document["skills"][0]["files"] == {
        "SKILL.md": sha(skill_text("s", "Other words.")),
        "new/b.txt": sha("b"),
    }
    render(load(str(path)), skills_dir=".agents/skills")
    assert pin(path) == pin(kit) == Mended(())


def test_a_shipped_file_is_never_rewritten() -> None:
    for path in (SHIPPED / "claude-docs.json", SHIPPED / "kits" / "docs" / "kit.json"):
        with pytest.raises(RecipeError, match="shipped with sanduk; copy it under another name"):
            pin(path)
        with pytest.raises(RecipeError, match="shipped with sanduk"):
            fix(path, {})


def test_a_shipped_kit_is_pinned_as_it_is(write: Write) -> None:
    path = write("x", kits=[{"name": "toolchain", "sha256": SHA}])
    mended = pin(path)
    assert [change.file for change in mended.changes] == [path]
    written(mended)
    assert load(str(path)).kits[0].name == "toolchain"


def test_a_file_that_changed_meanwhile_is_left_alone(write: Write, write_kit: WriteKit) -> None:
    write_kit("k")
    path = write("x", kits=[{"path": "kits/k", "sha256": SHA}])
    mended = pin(path)
    path.write_text("{}")
    with pytest.raises(RecipeError, match="has changed meanwhile"):
        written(mended)
    assert path.read_text() == "{}"
    assert sorted(each.name for each in path.parent.iterdir()) == ["kits", "x.json"]


# -- what is not built -----------------------------------------------------------------------------


def test_k2_what_is_not_built_is_rewritten_as_far_as_the_file_tells(write: Write) -> None:
    path = write(
        "x",
        user="root",
        home="/usr/x",
        env={"HOME": "/x", "A": "1"},
        sections=[
            {
                "name": "n", "type": "npm", "install": ["@s/a@1", "b@2.x", "c@3.0.0"],
                "flags": ["--reg=x", "--no-audit", "--registry=https://x.invalid"],
            },
            {"name": "p", "type": "pip", "install": ["six==1,<2"], "flags": ["--extra-index=x"]},
        ],
    )  # fmt: skip
    found = list(problems(load(str(path))))
    assert len(found) == 9
    assert all(f"sanduk recipe fix {path}" in problem.sentence for problem in found)
    mended = fix(path, {"@s/a": "1.2.3", "six": "1.17.0", "b": "2"})
    assert mended.left == (
        f"{path}: $.sections[0].install[1]: b@2.x may be several versions; give one exactly, "
        "like b@1.2.3: --exact b@1.2.3",
    )
    written(mended)
    written(fix(path, {"b": "2.0.0"}))
    recipe = load(str(path))
    assert list(problems(recipe)) == []
    npm, pip = (placed.section for placed in recipe.sections)
    assert npm.install == ["@s/a@1.2.3", "b@2.0.0", "c@3.0.0"]
    assert (npm.flags, pip.flags) == (["--no-audit"], [])
    assert pip.install == ["six==1.17.0"]
    assert (recipe.user, recipe.home, recipe.env) == ("agent", "/home/agent", {"A": "1"})


def test_a_recipe_may_hold_the_hash_of_what_it_copies(write: Write, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("one")
    section = {"name": "f", "type": "copy", "from": "f", "to": "/f", "sha256": sha("one")}
    path = write("x", sections=[section])
    load(str(path))
    (tmp_path / "f").write_text("two")
    with pytest.raises(RecipeError) as caught:
        load(str(path))
    assert str(caught.value).endswith(f"sanduk recipe fix {path}")
    written(fix(path, {}))
    load(str(path))


def test_the_command_that_mends_quotes_a_path_for_the_shell(write: Write, tmp_path: Path) -> None:
    place = tmp_path / "a b"
    place.mkdir()
    path = write("x", user="root").rename(place / "x.json")
    (problem,) = problems(load(str(path)))
    assert problem.sentence.endswith(f"sanduk recipe fix '{path}'")


@pytest.mark.parametrize("change", ["added", "removed"])
def test_a_skill_whose_files_changed_names_the_command_that_mends_it(
    write_kit: WriteKit, change: str
) -> None:
    text = skill_text("s")
    listed = {"SKILL.md": sha(text), "more.md": sha("x")}
    files = {"skills/s/SKILL.md": text, "skills/s/more.md": "x"}
    kit = write_kit("k", files, skills=[{"path": "skills/s", "files": listed}])
    skill = kit.parent / "skills" / "s"
    if change == "added":
        (skill / "new.md").write_text("new")
    else:
        (skill / "more.md").unlink()

    with pytest.raises(RecipeError) as caught:
        load_kit(str(kit))
    assert str(caught.value).endswith(f"; look at what changed, then: sanduk kit pin {kit}")
    for each in pin(kit).changes:
        each.write()
    assert load_kit(str(kit)).skills


def test_a_skill_that_no_command_mends_names_none(write_kit: WriteKit) -> None:
    skill, files = held("s")
    kit = write_kit("k", files, skills=[skill])
    (kit.parent / "skills" / "s" / "SKILL.md").rename(kit.parent / "skills" / "s" / "S.md")
    with pytest.raises(RecipeError, match=r"skills/s has no file SKILL\.md$"):
        load_kit(str(kit))


@pytest.mark.parametrize("data", [b"\xef\xbb\xbf{}", rb'{"name": "\ud800"}', b"1" * 10_000])
def test_what_cannot_be_read_is_not_mended(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(data)
    for mend in (pin, lambda file: fix(file, {})):
        with pytest.raises(RecipeError, match=r"x\.json: "):
            mend(path)
