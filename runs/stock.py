"""The images this installation has built: who uses them, and which nothing will use again."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import recipes
from recipes.catalog import is_path
from runs import images, locks
from runs.engines.base import LABEL_INSTALL, LABEL_ROLE, Engine, ImageRow
from runs.installation import install_id
from runs.models import Run
from runs.plan import LINK_RECIPE

OWN_FILE = "sanduk-custom:"
RELAYED = ("sealed", "key-safe")
Standing = Literal["current", "superseded", "no recipe", "untagged", "own file"]
STALE: tuple[Standing, ...] = ("superseded", "no recipe", "untagged")  # no run will ask for them


@dataclass(frozen=True, slots=True)
class Stocked:
    """One image.

    Attributes:
        tag: what runs call it; "" when another build took its tag.
        recipe: the recipe it was built from; "" for a Containerfile of a person's own.
        standing: `current`, what a run of its recipe would use; `superseded`, built before that;
            `no recipe`, its recipe is not found any more; `untagged`; `own file`.
        built_at: None when the engine's date cannot be read.
        runs: those recorded with it, newest first.
        is_live: one of them has not ended.
        last_used_at: when the last of them ended.
    """

    id: str
    tag: str
    recipe: str
    standing: Standing
    size_bytes: int
    built_at: dt.datetime | None
    runs: tuple[str, ...]
    is_live: bool
    last_used_at: dt.datetime | None

    @property
    def unused_since(self) -> dt.datetime | None:
        """When it was last needed; None while it is, or when nobody knows."""
        return None if self.is_live else self.last_used_at or self.built_at

    @property
    def name(self) -> str:
        return self.tag or self.id


async def listed(engine: Engine) -> list[ImageRow]:
    """This installation's images. An image somebody made from one of ours carries our labels too:
    it has a name of its own. Raises EngineError."""
    rows = await engine.list_images({LABEL_INSTALL: install_id(), LABEL_ROLE: "image"})
    return [row for row in rows if not row.tags or _tag(row)]


def stocked(rows: Iterable[ImageRow]) -> list[Stocked]:
    """What is known of these images, newest first."""
    newest: dict[tuple[str, str], str] = {}
    found = sorted(rows, key=lambda row: row.created, reverse=True)
    names = set(recipes.recipe_names())
    stock = []
    for row in found:
        recipe = row.labels.get("sanduk.recipe", "") if not _tag(row).startswith(OWN_FILE) else ""
        runs = _runs_of(_tag(row), recipe)
        files = {row.labels.get(images.LABEL_RECIPE_FILE, ""), *(run.recipe for run in runs)}
        is_found = recipe in names or any(is_path(each) and Path(each).is_file() for each in files)
        standing = _standing(row, recipe, newest, is_found=is_found)
        if recipe == LINK_RECIPE and standing != "current":
            runs = []  # which link a run had is not recorded; the newest is what they have
        stock.append(_described(row, recipe, standing, runs))
    return stock


def _tag(row: ImageRow) -> str:
    return next((tag for tag in row.tags if tag.startswith("sanduk-")), "")


def _standing(
    row: ImageRow, recipe: str, newest: dict[tuple[str, str], str], *, is_found: bool
) -> Standing:
    """Rows must come newest first: of each recipe and set of kits the first one is current."""
    if not _tag(row):
        return "untagged"
    if not recipe:
        return "own file"
    if not is_found:
        return "no recipe"
    kits = [each.partition("@")[0] for each in row.labels.get("sanduk.kits", "").split(",")]
    first = newest.setdefault((recipe, ",".join(sorted(kits))), row.id)
    return "current" if first == row.id else "superseded"


def _runs_of(tag: str, recipe: str) -> list[Run]:
    """The runs of an image, newest first; of the link every run that had one."""
    chosen = Run.objects.only("uid", "state", "ended_at", "recipe")
    if recipe == LINK_RECIPE:
        return list(chosen.filter(mode__in=RELAYED))
    return list(chosen.filter(image=tag)) if tag else []


def _described(row: ImageRow, recipe: str, standing: Standing, runs: list[Run]) -> Stocked:
    ended = [run.ended_at for run in runs if run.ended_at is not None]
    return Stocked(
        id=row.id,
        tag=_tag(row),
        recipe=recipe,
        standing=standing,
        size_bytes=row.size_bytes,
        built_at=_moment(row.created),
        runs=tuple(run.uid for run in runs),
        is_live=any(run.state != Run.State.ENDED for run in runs),
        last_used_at=max(ended, default=None),
    )


def _moment(text: str) -> dt.datetime | None:
    try:
        found = dt.datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=dt.UTC)


def going(
    stock: Iterable[Stocked], *, recipe: str, unused_before: dt.datetime | None
) -> list[Stocked]:
    """Which of them `images prune` removes.

    Without a condition those that no run will ask for; with one, those that meet all of them,
    whatever their standing. What a live run uses is never among them.

    Args:
        recipe: only images of this recipe; "" for any.
        unused_before: only images that nothing needed since then.
    """
    spare = [each for each in stock if not each.is_live]
    if not recipe and unused_before is None:
        return [each for each in spare if each.standing in STALE]
    return meeting(spare, recipe=recipe, unused_before=unused_before)


def meeting(
    stock: Iterable[Stocked], *, recipe: str, unused_before: dt.datetime | None
) -> list[Stocked]:
    """Those that meet all of these conditions, see `going`."""
    chosen = list(stock)
    if recipe:
        chosen = [each for each in chosen if each.recipe == recipe]
    if unused_before is not None:
        since = [(each, each.unused_since) for each in chosen]
        chosen = [each for each, at in since if at is not None and at < unused_before]
    return chosen


async def remove(engine: Engine, chosen: Iterable[Stocked]) -> Mapping[str, str]:
    """Remove images, each unless a run needs it by now.

    Returns what became of each, by its name: "removed", or why it stays. Raises EngineError.
    """
    told = {}
    for each in chosen:
        with locks.held_if_free(images.keeping(each.tag)) as free:
            if not free:
                told[each.name] = "a run is being started with it"
            elif await engine.remove_image(each.name):
                told[each.name] = "removed"
            else:
                told[each.name] = "a container or another image needs it"
    return told
