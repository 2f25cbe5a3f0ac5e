"""A first recipe and a first kit: they pass their own check, and show what can be said."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from recipes import catalog
from recipes.schema import RecipeError

_SCRIPT = """\
#!/bin/sh
# Whatever the agent should be able to call: this file becomes /usr/local/bin/{name} in the image.
set -eu
echo "{name}: nothing to do yet"
"""
_SKILL = """\
---
name: {name}
description: What the agent learns here, and when it should read on. One or two sentences.
---

# {name}

Call `{name}` and read what it prints.
"""


def new_recipe(name: str, parent: str, directory: Path | None = None) -> Path:
    """Write a recipe that inherits another one, and return its path.

    Args:
        parent: the recipe it inherits, by name or path.
        directory: where; the user's own recipes when None.

    Raises:
        RecipeError: the name is none, or is taken, or there is no such parent.
        OSError: it cannot be written.
    """
    _check_name("recipe", name, catalog.SHIPPED / f"{name}.json", directory)
    catalog.find(parent)
    path = (directory or catalog.user_directory("recipe")) / f"{name}.json"
    if catalog.is_path(parent):
        parent = str(catalog.find(parent))
    recipe = {
        "name": name,
        "description": f"What {name} is for, in one line",
        "inherits": parent,
        "sections": [{"name": f"{name}-tools", "type": "apt", "install": ["less"]}],
        "env": {"LESS": "-R"},
    }
    _write(path, _json(recipe))
    return path


def new_kit(name: str, directory: Path | None = None) -> Path:
    """Write a kit with one tool and one skill, pinned, and return the path of its kit.json.

    Args:
        directory: what the kit's own directory is made in; the user's own kits when None.

    Raises:
        RecipeError: the name is none, or is taken.
        OSError: it cannot be written.
    """
    _check_name("kit", name, catalog.SHIPPED_KITS / name, directory)
    home = (directory or catalog.user_directory("kit")) / name
    if home.exists() or home.is_symlink():
        raise RecipeError(f"{home} is there already; choose another name, or remove it")
    script, skill = _SCRIPT.format(name=name), _SKILL.format(name=name)
    kit = {
        "name": name,
        "description": f"What {name} is for, in one line",
        "tools": [
            {
                "name": name,
                "type": "copy",
                "from": f"files/{name}",
                "to": f"/usr/local/bin/{name}",
                "sha256": _hash(script),
                "mode": "0755",
            }
        ],
        "skills": [{"path": f"skills/{name}", "files": {"SKILL.md": _hash(skill)}}],
        "env": {},
    }
    _write(home / "files" / name, script)
    (home / "files" / name).chmod(0o755)
    _write(home / "skills" / name / "SKILL.md", skill)
    _write(home / "kit.json", _json(kit))
    return home / "kit.json"


def _check_name(kind: str, name: str, shipped: Path, directory: Path | None) -> None:
    if not catalog.is_name(name):
        raise RecipeError(
            f"{kind} {name!r}: a name has lower-case letters, digits and single hyphens"
        )
    if directory is None and shipped.exists():
        raise RecipeError(f"{kind} {name} is shipped with sanduk, which cannot be replaced")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise RecipeError(f"{path} is there already; choose another name, or remove it") from None


def _json(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=2) + "\n"


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
