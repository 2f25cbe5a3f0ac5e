"""Every recipe as it stands: what it pins, what its image is called, what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import recipes
from recipes import pins
from recipes.catalog import seen_once
from runs.agents.base import AgentRefusal
from runs.plan import from_recipe
from runs.stock import Stocked
from runs.visible import visible


@dataclass(frozen=True, slots=True)
class Pin:
    """One thing an image holds, and the version or digest that is meant."""

    name: str
    kind: str
    owner: str
    what: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Shelved:
    """A recipe; with `problems` it is not built, and has neither a tag nor a Containerfile.

    Attributes:
        tag: of its image, as far as it is known before the base image's id counts too.
        kits: name and hash of each.
    """

    name: str
    description: str = ""
    agent: str = ""
    base: str = ""
    tag: str = ""
    containerfile: str = ""
    path: str = ""
    kits: tuple[str, ...] = ()
    pinned: tuple[Pin, ...] = ()
    problems: tuple[str, ...] = ()


def shelved() -> list[Shelved]:
    """All of them by name. Raises recipes.RecipeError: a directory of recipes cannot be read."""
    with seen_once():
        return [one(name) for name in recipes.recipe_names()]


def one(name: str) -> Shelved:
    """A recipe of the catalogue; what is wrong with it is told, not raised.

    Args:
        name: one of `recipes.recipe_names`.
    """
    try:
        recipe = recipes.load(name)
        problems = tuple(visible(each.sentence) for each in pins.problems(recipe))
        image = None if problems else from_recipe(name)[1]
    except (recipes.RecipeError, AgentRefusal) as exc:
        return Shelved(name, problems=(visible(str(exc)),))
    data = recipes.recipe_as_data(recipe)
    return Shelved(
        name,
        description=visible(recipe.description),
        agent=visible(recipe.agent),
        base=visible(recipe.base),
        tag=image.tag if image else "",
        containerfile=image.context.containerfile if image and image.context else "",
        path=recipe.path,
        kits=tuple(f"{kit.name}@{kit.sha256[:12]}" for kit in recipe.kits),
        pinned=tuple(_pin(section) for section in data["sections"]),
        problems=problems,
    )


def by_recipe(stock: Iterable[Stocked]) -> tuple[dict[str, list[Stocked]], list[Stocked]]:
    """The images of each recipe there is, and those of none: deleted recipes, lost tags, others."""
    of_recipes: dict[str, list[Stocked]] = {}
    of_none = []
    for each in stock:
        if each.standing in ("current", "superseded"):
            of_recipes.setdefault(each.recipe, []).append(each)
        else:
            of_none.append(each)
    return of_recipes, of_none


def _pin(section: dict[str, Any]) -> Pin:
    what = [str(each) for each in section.get("install", ())]
    what += [str(line) for line in section.get("lines", ())]
    for architecture, artifact in sorted(section.get("artifacts", {}).items()):
        what.append(f"{architecture}: {artifact['url']} sha256 {artifact['sha256']}")
    if "from" in section:
        what.append(f"{section['from']} to {section['to']}")
    return Pin(
        visible(section["name"]), section["type"], section["owner"], tuple(map(visible, what))
    )
