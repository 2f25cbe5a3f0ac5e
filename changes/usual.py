"""What an attempt is made with where no flag says: the operator's rules of its repository."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from changes import rules
from changes.models.repository import identity_of
from changes.repository import find
from recipes.catalog import is_path
from runs import defaults
from runs.defaults import Usual
from runs.paths import expanded


def completed(asked: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """Values of run flags by name, with the rules of the repository where they say nothing.

    Args:
        path: a directory in the repository.
    Raises:
        Refusal: it is no repository, or its rules cannot be read.
    """
    repository = identity_of(str(find(path).top().resolve()))
    said = rules.of(repository)
    done = dict(asked)
    as_it_is = asked["image"] or asked["containerfile"]
    if asked["browser"] is None and not as_it_is:
        done["browser"] = said.browser
    if said.recipe and not (asked["recipe"] or as_it_is):
        # a path starts where the rules lie, as in changes.repository_image
        file = rules.file_of(repository)
        is_file = is_path(said.recipe)
        place = file.parent / expanded(said.recipe, what=f"{file}: recipe") if is_file else ""
        done["recipe"] = str(place or said.recipe)
    if not asked["mode"] and not asked["no_network"] and not asked["proxy"]:
        done["mode"] = said.mode or None
    done["runtime"] = asked["runtime"] or said.runtime
    return defaults.completed(done, Usual(said.agent, said.provider, said.model))
