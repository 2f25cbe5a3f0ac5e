"""The JSON Schema of both formats is the one the files hold, and accepts what the parser does."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from recipes import load, recipe_names
from recipes.catalog import SHIPPED
from recipes.json_schema import FORMATS, json_schema, path_of, text_of
from tests.recipes.test_schema import section

SHA = "0" * 64


@pytest.mark.parametrize("of", FORMATS)
def test_the_shipped_schema_is_what_the_definitions_say(of: Any) -> None:
    assert path_of(of).read_text() == text_of(of), "run: python -m recipes.json_schema"


def accepts(schema: Mapping[str, Any], value: Any, root: Mapping[str, Any]) -> bool:
    """The words of JSON Schema that ours use; any other one fails the test."""
    known = {
        "$ref": lambda ref: accepts(root["$defs"][ref.rpartition("/")[2]], value, root),
        "type": lambda name: (
            isinstance(value, _TYPES[name]) and not (name == "integer" and isinstance(value, bool))
        ),
        "enum": lambda values: value in values,
        "pattern": lambda text: not isinstance(value, str) or bool(re.search(text, value)),
        "maxLength": lambda most: not isinstance(value, str) or len(value) <= most,
        "minItems": lambda least: not isinstance(value, list) or len(value) >= least,
        "minProperties": lambda least: not isinstance(value, dict) or len(value) >= least,
        "maxProperties": lambda most: not isinstance(value, dict) or len(value) <= most,
        "minimum": lambda least: not isinstance(value, int) or value >= least,
        "maximum": lambda most: not isinstance(value, int) or value <= most,
        "required": lambda keys: not isinstance(value, dict) or set(keys) <= set(value),
        "anyOf": lambda each: any(accepts(one, value, root) for one in each),
        "oneOf": lambda each: [accepts(one, value, root) for one in each].count(True) == 1,
        "items": lambda item: (
            not isinstance(value, list) or all(accepts(item, each, root) for each in value)
        ),
        "properties": lambda named: (
            not isinstance(value, dict)
            or all(accepts(named[key], each, root) for key, each in value.items() if key in named)
        ),
        "propertyNames": lambda names: (
            not isinstance(value, dict) or all(accepts(names, key, root) for key in value)
        ),
        "additionalProperties": lambda more: (
            not isinstance(value, dict)
            or all(
                more is not False and accepts(more, each, root)
                for key, each in value.items()
                if key not in schema.get("properties", {})
            )
        ),
    }
    ignored = {"$schema", "$defs", "title", "description", "default", "discriminator"}
    assert set(schema) <= set(known) | ignored, set(schema) - set(known) - ignored
    return all(known[word](told) for word, told in schema.items() if word in known)


_TYPES: dict[str, Any] = {
    "string": str, "array": list, "object": dict, "boolean": bool, "integer": int,
}  # fmt: skip


def holds(of: Any, document: Any) -> bool:
    schema = json_schema(of)
    return accepts(schema, document, schema)


@pytest.mark.parametrize("name", recipe_names())
def test_the_schema_accepts_every_shipped_recipe(name: str) -> None:
    assert holds("recipe", json.loads(Path(load(name).path).read_text()))


@pytest.mark.parametrize(
    "path", sorted(SHIPPED.glob("kits/*/kit.json")), ids=lambda p: p.parent.name
)
def test_the_schema_accepts_every_shipped_kit(path: Path) -> None:
    assert holds("kit", json.loads(path.read_text()))


@pytest.mark.parametrize(
    "keys",
    [
        {"sections": None},
        {"nam": "x"},
        {"env": {"A-B": "x"}},
        {"env": {"A": "x\n"}},
        {"entrypoint": []},
        {"kits": [{"name": "docs"}]},
        {"kits": [{"name": "docs", "path": "k", "sha256": SHA}]},
        {"instructions": "../x.md"},
        {"sections": [section(type="rpm", install=["x"])]},
        {"sections": [section(type="npm", install=["left-pad"])]},
        {"sections": [section(type="copy", **{"from": "/x", "to": "/x"})]},
        {"remove": {"sections": []}},
        {"description": "d" * 501},
        {"env": {"A": "\u202e"}},
        {"env": {"A": "\x85"}},
    ],
)
def test_the_schema_refuses_what_the_parser_does(keys: dict[str, Any]) -> None:
    assert holds("recipe", {"name": "x"})
    assert not holds("recipe", {"name": "x", **keys})


@pytest.mark.parametrize(
    "keys",
    [
        {"skills": [{"path": "s"}]},
        {"skills": [{"name": "s", "url": "https://x.invalid/", "sha256": SHA, "path": "s"}]},
        {"agents": {"pi": {"setup": ["id"]}}},
        {"egress": "yes"},
    ],
)
def test_the_schema_of_kits_refuses_what_the_parser_does(keys: dict[str, Any]) -> None:
    assert holds("kit", {"name": "x", "$schema": 5})
    assert not holds("kit", {"name": "x", **keys})
