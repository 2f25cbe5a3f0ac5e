"""The browser of an image: a shipped kit, added where the order or SANDUK_BROWSER wants it."""

from __future__ import annotations

from collections.abc import Sequence

from django.conf import settings

import recipes
from runs.agents import get_agent
from runs.refusal import Refusal

KIT = "browser"  # and what any kit that brings one provides


def kits(spec: str, asked: Sequence[str], *, wanted: bool | None) -> tuple[str, ...]:
    """What is added to a recipe: the kits that were asked for, and a browser's.

    Args:
        spec: the recipe. When it holds a browser, or one of the kits does, none is added.
        wanted: None for what SANDUK_BROWSER says.
    Raises:
        Refusal: the recipe's agent reads no skills, and the kit has one.
        AgentRefusal: there is no such agent.
        recipes.RecipeError: as `recipes.load` does.
    """
    if not (settings.SANDUK_BROWSER if wanted is None else wanted):
        return tuple(asked)
    recipe = recipes.load(spec, kits=asked)
    if any(KIT in kit.provides for kit in recipe.kits):
        return tuple(asked)
    if get_agent(recipe.agent).skills_dir is None:
        said = "SANDUK_BROWSER" if wanted is None else "--browser"
        raise Refusal(
            f"{said}: the kit {KIT} has a skill, and where {recipe.agent} reads skills is not "
            "known; use --no-browser"
        )
    return (*asked, KIT)


def refuse_in(flag: str, *, wanted: bool | None) -> None:
    """Raise Refusal where a browser was asked for, and `flag` names an image used as it is."""
    if wanted:
        raise Refusal(
            f"--browser goes into an image that sanduk builds, and {flag} is used as it is: "
            "leave one of them out"
        )
