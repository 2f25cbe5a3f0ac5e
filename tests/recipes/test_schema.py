"""What a recipe file may say, and how an error names the place."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recipes.schema import RecipeError, parse

SHA = "0" * 64


def refusal(**keys: Any) -> str:
    with pytest.raises(RecipeError) as caught:
        parse(json.dumps({"name": "x", **keys}).encode(), "recipes/x.json")
    return str(caught.value)


def section(**keys: Any) -> dict[str, Any]:
    return {"name": "s", **keys}


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ({"sections": None}, "$.sections: expected list, got null"),
        ({"kits": None}, "$.kits: expected list, got null"),
        ({"env": None}, "$.env: expected object, got null"),
        ({"name": 5}, "$.name: expected string, got whole number"),
        ({"nam": 5}, "$: object contains unknown field nam"),
        ({"agent": None}, "$.agent: expected string, got null"),
        ({"entrypoint": []}, "$.entrypoint: expected list that is not empty"),
        ({"entrypoint": ["a\nb"]}, "$.entrypoint[0]: expected text on a single line"),
        ({"env": {"A-B": "x"}}, "$.env.A-B (a key): expected the name of a variable"),
        ({"env": {"A": 1}}, "$.env.A: expected string, got whole number"),
        ({"env": {"A": "x\n"}}, "$.env.A: expected text on a single line"),
        ({"from": "--platform"}, "$.from: expected an image name like node:22-slim"),
        ({"from": "a b"}, "$.from: expected an image name like node:22-slim"),
        ({"user": "Root"}, "$.user: expected a lower-case user name"),
        ({"home": "/home/../etc"}, "$.home: expected an absolute path without . or .."),
        ({"home": "home"}, "$.home: expected an absolute path without . or .."),
        ({"remove": {"sections": []}}, "$.remove.sections: expected list that is not empty"),
        ({"remove": {"section_types": ["rpm"]}}, "$.remove.section_types[0]: invalid value 'rpm'"),
        ({"instructions": "/etc/passwd"}, "$.instructions: expected a relative path"),
        ({"instructions": "../x.md"}, "$.instructions: expected a relative path"),
        ({"kits": [{"name": "docs"}]}, "$.kits[0]: object missing required field sha256"),
        (
            {"kits": [{"name": "docs", "path": "k", "sha256": SHA}]},
            "$.kits[0]: a kit is given by exactly one of name and path",
        ),
        ({"kits": [{"name": "docs", "sha256": "ab"}]}, "$.kits[0].sha256: expected a SHA-256"),
        (
            {
                "kits": [
                    {"name": "docs", "sha256": SHA},
                    {"path": "my/docs/kit.json", "sha256": SHA},
                ]
            },
            "$.kits[1].name: docs is there twice",
        ),
    ],
)
def test_a_wrong_key_is_refused_with_its_place(keys: dict[str, Any], sentence: str) -> None:
    assert refusal(**keys).startswith(f"recipes/x.json: {sentence}")


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ({"type": "rpm"}, ".type: invalid value 'rpm'"),
        ({}, ": object missing required field type"),
        ({"type": "apt"}, ": object missing required field install"),
        ({"type": "apt", "install": "git"}, ".install: expected list, got string"),
        ({"type": "apt", "install": ["-o=x"]}, ".install[0]: expected the name of a package"),
        ({"type": "apt", "install": ["git;id"]}, ".install[0]: expected the name of a package"),
        ({"type": "apt", "install": ["git\n"]}, ".install[0]: expected the name of a package"),
        ({"type": "npm", "install": ["left-pad"]}, ".install[0]: expected a package with its"),
        ({"type": "npm", "install": ["a@latest"]}, ".install[0]: expected a package with its"),
        ({"type": "pip", "install": ["six>=1"]}, ".install[0]: expected a package with its"),
        ({"type": "pip", "install": ["six==1"], "flags": ["a"]}, ".flags[0]: expected a flag"),
        ({"type": "run", "lines": ["a\nb"]}, ".lines[0]: expected text on a single line"),
        ({"type": "run", "lines": ["a"], "user": "x"}, ".user: invalid value 'x'"),
        ({"type": "copy", "from": "../x", "to": "/x"}, ".from: expected a relative path"),
        ({"type": "copy", "from": "x", "to": "x"}, ".to: expected an absolute path"),
        ({"type": "copy", "from": "x", "to": "/$x"}, ".to: expected an absolute path"),
        ({"type": "copy", "from": "x", "to": "/x", "mode": "9"}, ".mode: expected an octal mode"),
        (
            {"type": "binary", "artifacts": {"amd64": {"url": "http://x/y", "sha256": SHA}}},
            ".artifacts.amd64.url: expected an https:// address",
        ),
        (
            {"type": "binary", "artifacts": {"mips": {"url": "https://x/y", "sha256": SHA}}},
            ".artifacts.mips (a key): invalid value 'mips'",
        ),
        (
            {
                "type": "binary",
                "artifacts": {
                    "amd64": {"url": "https://x/y", "sha256": SHA, "member": "m"},
                    "arm64": {"url": "https://x/y", "sha256": SHA},
                },
            },
            ": either every artifact has a member or none has",
        ),
        (
            {
                "type": "archive",
                "dest": "/opt/x",
                "artifacts": {"amd64": {"url": "https://x/y", "sha256": SHA, "strip": True}},
            },
            ".artifacts.amd64.strip: expected whole number, got true or false",
        ),
    ],
)
def test_a_wrong_section_is_refused_with_its_place(keys: dict[str, Any], sentence: str) -> None:
    assert refusal(sections=[section(**keys)]).startswith(
        f"recipes/x.json: $.sections[0]{sentence}"
    )


def test_two_sections_of_one_name_are_refused() -> None:
    twice = [section(type="apt", install=["a"]), section(type="apt", install=["b"])]
    assert "$.sections[1].name: s is there twice" in refusal(sections=twice)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"{", "not valid JSON"),
        (b"\xff{}", "not UTF-8"),
        (b'{"name": "x", "name": "y"}', "the key 'name' is there twice"),
        (b'{"name": NaN}', "NaN is no JSON number"),
        (b"[" * 100_000, "nested too deeply"),
        (b"[]", "$: expected object, got list"),
    ],
)
def test_a_file_that_is_no_recipe_is_refused_by_name(data: bytes, sentence: str) -> None:
    with pytest.raises(RecipeError) as caught:
        parse(data, "recipes/x.json")
    assert str(caught.value).startswith("recipes/x.json: ")
    assert sentence in str(caught.value)


def test_every_key_of_the_format_is_read() -> None:
    recipe = parse(
        json.dumps(
            {
                "$schema": 5,
                "name": "x",
                "description": "d",
                "inherits": "claude",
                "agent": "claude",
                "from": "docker.io/library/node:22-slim@sha256:" + SHA,
                "user": "node",
                "home": "/home/node",
                "sections": [],
                "kits": [{"path": "../kits/docs/", "sha256": SHA}],
                "remove": {"env": ["A"], "kits": ["docs"], "section_types": ["npm"]},
                "env": {"PATH": "/x:$PATH"},
                "entrypoint": ["a b"],
                "instructions": {"text": "Be brief."},
            }
        ).encode(),
        "x",
    )
    assert recipe.parents == ["claude"]
    assert recipe.kits[0].key == "docs"


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: (
    st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["name", "type", "install", "sections", "env", "kits", "remove", "x"]),
        inner,
        max_size=4,
    )
), max_leaves=12))  # fmt: skip
def test_any_json_gives_a_recipe_or_a_refusal(document: Any) -> None:
    try:
        parse(json.dumps(document).encode(), "x.json")
    except RecipeError as error:
        assert str(error).startswith("x.json: ")  # noqa: PT017
