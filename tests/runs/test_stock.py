"""Which images are whose, and which of them may go."""

from __future__ import annotations

import datetime as dt

import pytest

from runs import clock, images, locks, stock
from runs.engines.base import ImageRow
from runs.models import Run
from tests.factories import make_run
from tests.runs.fake_engine import FakeEngine

pytestmark = pytest.mark.django_db


def row(number: int, recipe: str = "pi", *, tag: str = "", kits: str = "", name: str = ""):
    labels = {"sanduk.recipe": recipe, "sanduk.kits": kits}
    tags = (name or f"sanduk-{recipe}:{number}",) if tag != "none" else ()
    return ImageRow(f"sha256:{number:064d}", tags, labels, 10**8, f"2026-01-{number:02d}T10:00:00Z")


def states(*rows: ImageRow) -> dict[str, str]:
    return {each.name: each.standing for each in stock.stocked(rows)}


def test_of_each_recipe_the_newest_build_is_current():
    assert states(row(1), row(3), row(2), row(4, "codex")) == {
        "sanduk-pi:3": "current",
        "sanduk-pi:2": "superseded",
        "sanduk-pi:1": "superseded",
        "sanduk-codex:4": "current",
    }


def test_another_set_of_kits_is_another_image_and_a_changed_kit_is_not():
    found = states(row(1), row(2, kits="docs@aa"), row(3, kits="docs@bb"))

    assert found["sanduk-pi:1"] == "current"
    assert found["sanduk-pi:2"] == "superseded"
    assert found["sanduk-pi:3"] == "current"


def test_without_tag_without_recipe_and_from_a_file_of_ones_own():
    untagged = row(1, tag="none")
    own = row(3, "pi", name="sanduk-custom:abc")  # it inherits the labels of what it is made from

    assert states(untagged, row(2, "gone"), own) == {
        untagged.id: "untagged",
        "sanduk-gone:2": "no recipe",
        "sanduk-custom:abc": "own file",
    }


def test_a_recipe_given_by_a_path_is_there_as_long_as_its_file(tmp_path):
    file = tmp_path / "mine.json"
    labels = {"sanduk.recipe": "mine", images.LABEL_RECIPE_FILE: str(file)}
    built = ImageRow("sha256:1", ("sanduk-mine:1",), labels, 0, "2026-01-01T10:00:00Z")

    assert states(built) == {"sanduk-mine:1": "no recipe"}
    file.write_text("{}")
    assert states(built) == {"sanduk-mine:1": "current"}


def test_a_date_that_cannot_be_read_is_unknown_and_never_old():
    odd = ImageRow("sha256:1", ("sanduk-pi:1",), {"sanduk.recipe": "pi"}, 0, "yesterday")
    (found,) = stock.stocked([odd])

    assert (found.built_at, found.unused_since) == (None, None)
    assert stock.going([found], recipe="", unused_before=clock.now()) == []


def test_prune_takes_what_no_run_will_ask_for_and_with_conditions_what_meets_all():
    found = stock.stocked([row(1), row(2), row(3, "gone"), row(4, "codex")])
    day = dt.datetime(2026, 1, 3, tzinfo=dt.UTC)

    def names(recipe: str = "", before: dt.datetime | None = None) -> list[str]:
        return [e.name for e in stock.going(found, recipe=recipe, unused_before=before)]

    assert names() == ["sanduk-gone:3", "sanduk-pi:1"]
    assert names("pi") == ["sanduk-pi:2", "sanduk-pi:1"]
    assert names(before=day) == ["sanduk-pi:2", "sanduk-pi:1"]
    assert names("codex", day) == []


def test_a_live_run_keeps_its_image_and_every_relayed_one_the_newest_link():
    make_run(image="sanduk-pi:1", state=Run.State.RUNNING, mode="sealed")
    found = stock.stocked([row(1), row(2), row(3, "link"), row(4, "link")])

    assert {each.name: each.is_live for each in found} == {
        "sanduk-link:4": True,
        "sanduk-link:3": False,
        "sanduk-pi:2": False,
        "sanduk-pi:1": True,
    }
    assert "sanduk-pi:1" not in [e.name for e in stock.going(found, recipe="", unused_before=None)]


@pytest.mark.anyio
async def test_a_run_that_is_being_started_wins():
    engine = FakeEngine()
    found = stock.Stocked(
        "sha256:1", "sanduk-pi:1", "pi", "current", 1, None, (), is_live=False, last_used_at=None
    )

    async with images.kept([found.tag]):
        spared = await stock.remove(engine, [found])
    removed = await stock.remove(engine, [found])

    assert spared == {found.name: "a run is being started with it"}
    assert removed == {found.name: "removed"}


@pytest.mark.anyio
async def test_two_runs_start_with_one_image_and_neither_waits():
    async with images.kept(["sanduk-pi:1", "sanduk-link:1"]), images.kept(["sanduk-pi:1"]):
        with locks.held_if_free(images.keeping("sanduk-pi:1")) as free:
            assert not free
