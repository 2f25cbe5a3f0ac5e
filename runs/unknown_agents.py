"""Names of agents, in recipes and kits, that no agent here has: most often they are misspelt."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import recipes
from recipes import catalog
from runs.agents import agent_names
from runs.agents.registry import BUILT_IN


def in_recipe(recipe: recipes.Recipe) -> list[str]:
    """A sentence for each such name in a recipe and its kits; none of what sanduk ships."""
    place = recipe.place("agent")
    own = [] if place.file.is_relative_to(catalog.SHIPPED) else [(str(place), recipe.agent)]
    return list(_unknown([*own, *(pair for kit in recipe.kits for pair in _named(kit))]))


def in_kit(kit: recipes.Kit) -> list[str]:
    """A sentence for each such name in a kit, or for a kit that is for no agent at all."""
    if kit.agents is not None and not kit.agents:
        return [f"{kit.path}: $.agents: it suits no agent; without the key it suits every agent"]
    return list(_unknown(_named(kit)))


def _named(kit: recipes.Kit) -> list[tuple[str, str]]:
    return [(f"{kit.path}: $.agents.{name}", name) for name in kit.agents or ()]


def _unknown(named: Iterable[tuple[str, str]]) -> Iterator[str]:
    # other packages are asked only where a name is not one of ours: that takes time
    if odd := [(place, name) for place, name in named if name not in BUILT_IN]:
        known = agent_names(for_tests=True)
        for place, name in odd:
            if name not in known:
                offered = ", ".join(agent_names())
                yield f"{place}: there is no agent {name} here; known are {offered}"
