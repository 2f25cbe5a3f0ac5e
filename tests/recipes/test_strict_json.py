"""JSON that the parser would take, and what it says of what it does not take."""

from __future__ import annotations

import json
from typing import Any

import pytest

from recipes import RecipeError
from recipes.schema import parse, parse_kit
from recipes.strict_json import MAX_DEPTH, decode
from tests.recipes.conftest import apt

SHA = "0" * 64


def refusal(data: bytes) -> str:
    with pytest.raises(ValueError, match=r".") as caught:
        decode(data)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (r'{"env": {"A": "\ud800"}}', "$.env.A"),
        (r'{"env": {"\udfffA": "x"}}', r'$.env["\udfffA"] (a key)'),
        (r'{"instructions": {"text": "a\udc00b"}}', "$.instructions.text"),
        (r'{"sections": [{"lines": ["ok", "\udbff"]}]}', "$.sections[0].lines[1]"),
        (r'"\ud800"', "$"),
    ],
)
def test_half_a_character_is_refused_with_its_place(text: str, place: str) -> None:
    said = refusal(text.encode())
    assert said.startswith(f"{place}: half a character")
    assert said.encode()


def test_a_whole_character_outside_the_first_plane_is_read() -> None:
    assert decode(rb'"\ud83d\ude00"') == "\N{GRINNING FACE}"


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"\xef\xbb\xbf{}", "not valid JSON: it begins with a byte order mark; save it without"),
        (b"1" * 10_000, "a number of 10000 digits; at most 18 are read"),
        (b"-" + b"1" * 19, "a number of 19 digits; at most 18 are read"),
        (b'{"a": 1,\n }', "not valid JSON: line 2, column 2: expecting property name"),
        (b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1), "nested too deeply"),
        (b'{"a": 1, "a": 2}', "not valid JSON: the key 'a' is there twice"),
    ],
)
def test_what_is_no_json_is_said_in_our_words(data: bytes, sentence: str) -> None:
    said = refusal(data)
    assert said.startswith(sentence)
    for pythons in ("utf-8-sig", "set_int_max_str_digits", "(char "):
        assert pythons not in said


def test_as_many_levels_and_digits_as_said_are_read() -> None:
    assert decode(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH)
    assert decode(b"9" * 18) == 10**18 - 1


@pytest.mark.parametrize(
    ("keys", "place"),
    [
        ({"env": {"A": "x", "B": "y", "C": 5, "D": "z", "E": "v"}}, "$.env.C: "),
        ({"env": {"A": 1, "B": "y"}}, "$.env.A: "),
        ({"env": {"A": "x", "B": "y", "c d": "z"}}, '$.env["c d"] (a key): '),
        ({"env": {"A": "x", "k" * 200: 5, "C": 6}}, f'$.env["{"k" * 60}..."]: '),
        (
            {"sections": [apt("a"), {
                "name": "s", "type": "archive", "dest": "/opt/s", "artifacts": {},
                "links": {"/usr/bin/a": "a", "/usr/bin/b": "../b"},
            }]},
            "$.sections[1].artifacts: ",
        ),
        (
            {"sections": [apt("a"), {
                "name": "s", "type": "archive", "dest": "/opt/s",
                "artifacts": {"amd64": {"url": "https://x.invalid/s", "sha256": SHA}},
                "links": {"/usr/bin/a": "a", "/usr/bin/b": "../b"},
            }]},
            '$.sections[1].links["/usr/bin/b"]: ',
        ),
    ],
)  # fmt: skip
def test_the_place_names_the_key(keys: dict[str, Any], place: str) -> None:
    with pytest.raises(RecipeError) as caught:
        parse(json.dumps({"name": "x", **keys}).encode(), "x.json")
    assert str(caught.value).startswith(f"x.json: {place}expected ")


def test_the_place_names_the_agent_and_the_file_of_a_kit() -> None:
    agents = {"pi": {"setup": [["id"]]}, "codex": {"setup": [[5]]}, "hax": {}}
    with pytest.raises(RecipeError, match=r"^k: \$\.agents\.codex\.setup\[0\]\[0\]: expected str"):
        parse_kit(json.dumps({"name": "k", "agents": agents}).encode(), "k")
    skill = {"path": "s", "files": {"SKILL.md": SHA, "more/a.md": "no", "z": SHA}}
    with pytest.raises(RecipeError, match=r"^k: \$\.skills\[0\]\.files\.more/a\.md: expected a S"):
        parse_kit(json.dumps({"name": "k", "skills": [skill]}).encode(), "k")


@pytest.mark.parametrize("odd", ["\u202e", "\u2066", "\u200f", "\u2028", "\x85", "\x9b", "\x1b"])
@pytest.mark.parametrize(
    "keys",
    [
        lambda odd: {"description": f"a{odd}b"},
        lambda odd: {"env": {"A": odd}},
        lambda odd: {"sections": [{"name": "r", "type": "run", "lines": [f"true # {odd}"]}]},
    ],
    ids=["description", "env", "lines"],
)
def test_nothing_that_hides_what_a_line_says_is_read(keys: Any, odd: str) -> None:
    with pytest.raises(RecipeError, match="text on a single line, without control characters"):
        parse(json.dumps({"name": "x", **keys(odd)}).encode(), "x.json")


def test_text_in_any_language_and_tabs_are_read() -> None:
    said = "de\u0301ja\u0300 vu,\t\u05e9\u05dc\u05d5\u05dd, \u4f60\u597d \N{GRINNING FACE}"
    assert parse(json.dumps({"name": "x", "description": said}).encode(), "x").description == said


def test_a_description_has_a_limit_and_no_error_repeats_a_long_value() -> None:
    def told(**keys: Any) -> str:
        with pytest.raises(RecipeError) as caught:
            parse(json.dumps({"name": "x", **keys}).encode(), "x.json")
        return str(caught.value)

    assert parse(json.dumps({"name": "x", "description": "d" * 500}).encode(), "x").description
    assert told(description="d" * 501) == (
        "x.json: $.description: expected a text of at most 500 characters"
    )
    assert len(told(sections=[{"name": "s", "type": "t" * 10**6}])) < 600
    assert len(told(**{"k" * 10**6: 1})) < 600
