"""A resolved recipe and a kit as plain data, for listings and `--json`."""

from __future__ import annotations

from typing import Any

import msgspec

from recipes.kits import Kit
from recipes.placed import PlacedSection
from recipes.resolve import Recipe


def recipe_as_data(recipe: Recipe) -> dict[str, Any]:
    """What a recipe amounts to after inheritance, in the words of the format."""
    return {
        "name": recipe.name,
        "description": recipe.description,
        "agent": recipe.agent,
        "from": recipe.base,
        "user": recipe.user,
        "home": recipe.home,
        "sections": [_section(each) for each in recipe.sections],
        "kits": [
            {"name": kit.name, "sha256": kit.sha256, "pinned": kit.pinned, "path": kit.path}
            for kit in recipe.kits
        ],
        "env": dict(recipe.env),
        "entrypoint": list(recipe.entrypoint),
        "instructions": list(recipe.instructions),
    }


def kit_as_data(kit: Kit) -> dict[str, Any]:
    """A kit in the words of the format, with its hash and its marks."""
    return {
        "name": kit.name,
        "sha256": kit.sha256,
        "description": kit.description,
        "tools": [_section(each) for each in kit.tools],
        "skills": [skill.name for skill in kit.skills],
        "env": dict(kit.env),
        "agents": sorted(kit.agents) if kit.agents is not None else None,
        "egress": kit.egress,
        "provides": list(kit.provides),
        "hook": kit.hook,
        "marks": list(kit.marks),
        "path": kit.path,
    }


def _section(placed: PlacedSection) -> dict[str, Any]:
    data: dict[str, Any] = msgspec.to_builtins(placed.section)
    return data | {"owner": placed.owner}
