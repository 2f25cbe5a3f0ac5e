"""Recipes and the images built from them, to be read: building and removing is done on the host."""

from __future__ import annotations

import asyncio

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

import recipes
from runs import shelf, stock
from runs.engines import get_engine
from runs.engines.base import EngineError
from runs.locality import explained
from runs.pages import for_those_who_may, page
from runs.stock import Stocked
from runs.visible import visible


@require_safe
@for_those_who_may("runs.view_run")
def listed(request: HttpRequest) -> HttpResponse:
    """Every recipe; which of them are built, when the engine is asked for."""
    found, trouble = None, ""
    rows: list[shelf.Shelved] = []
    try:
        rows = shelf.shelved()
        if request.GET.get("engine") == "ask":
            found = _images()
    except (recipes.RecipeError, EngineError) as exc:
        trouble = visible(str(exc))
    of_recipes, of_none = shelf.by_recipe(found or ())
    context = {
        "rows": [(each, of_recipes.get(each.name, ())) for each in rows],
        "is_asked": found is not None,
        "of_none": of_none,
        "of_files": [
            each
            for name, images in of_recipes.items()
            if name not in {row.name for row in rows}
            for each in images
        ],
        "trouble": trouble,
    }
    return page(request, "runs/images.html", context, title="Recipes", section="images")


@require_safe
@for_those_who_may("runs.view_run")
def recipe(request: HttpRequest, name: str) -> HttpResponse:
    """What one recipe puts into its image."""
    try:
        if name not in recipes.recipe_names():
            raise Http404
    except recipes.RecipeError:
        raise Http404 from None
    context = {"recipe": shelf.one(name)}
    crumbs = [(reverse("images"), "Recipes"), ("", name)]
    return page(request, "runs/recipe.html", context, title=name, section="images", crumbs=crumbs)


def _images() -> list[Stocked]:
    """This installation's images, as the engine that runs use lists them. Raises EngineError."""
    engine = get_engine(settings.SANDUK_RUNTIME or None)
    return stock.stocked(asyncio.run(explained(engine, stock.listed(engine))))
