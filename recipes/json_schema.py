"""The formats as JSON Schema, for editors and for other programs.

Generated from the definitions that validate. The files beside are what `python -m
recipes.json_schema` writes; a test compares.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import msgspec

from recipes.schema import KitFile, RecipeFile

DIRECTORY = Path(__file__).parent / "schemas"
DIALECT = "https://json-schema.org/draft/2020-12/schema"
Format = Literal["recipe", "kit"]
FORMATS: dict[Format, type[msgspec.Struct]] = {"recipe": RecipeFile, "kit": KitFile}


def json_schema(of: Format) -> dict[str, Any]:
    """The schema of recipe or kit files. It knows each value, but no file beside: see `load`."""
    schema = msgspec.json.schema(FORMATS[of])
    head = {"$schema": DIALECT, "title": f"A {of} of sanduk"}
    return head | schema


def text_of(of: Format) -> str:
    """The schema as its file holds it."""
    return json.dumps(json_schema(of), indent=2) + "\n"


def path_of(of: Format) -> Path:
    """The shipped file."""
    return DIRECTORY / f"{of}.schema.json"


if __name__ == "__main__":
    for each in FORMATS:
        path_of(each).write_text(text_of(each))
