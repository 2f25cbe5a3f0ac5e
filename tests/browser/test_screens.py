"""The pictures in docs/site.md, made from a real site; SANDUK_SCREENSHOTS=1 keeps them there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.going import ADMIN, GoingSite, going_site
from tests.browser.visitor import PHONE, Visits

pytestmark = pytest.mark.browser
SCREENS = Path(__file__).parents[2] / "docs" / "screens"


@pytest.fixture
def screens(tmp_path: Path) -> Path:
    """Where a picture goes: the documents only when they are asked for."""
    return SCREENS if os.environ.get("SANDUK_SCREENSHOTS") == "1" else tmp_path


@pytest.fixture(scope="module")
def morning(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GoingSite]:
    """A site of its own, with nothing on it but the story."""
    with going_site(tmp_path_factory.mktemp("sk")) as going:
        yield going


@pytest.fixture(scope="module")
def pages(morning: GoingSite) -> dict[str, str]:
    found: dict[str, str] = morning.rows.one("story_of")
    return found | {"change": morning.rows.one("changes_of", "")["change"]}


@pytest.mark.parametrize(
    ("page", "looks", "name"),
    [
        ("home", {}, "home"),
        ("home", {"scheme": "dark"}, "home-dark"),
        ("home", {"size": PHONE}, "home-phone"),
        ("gate", {}, "gate"),
        ("gate", {"size": PHONE, "scheme": "dark"}, "gate-phone-dark"),
        ("run-live", {}, "run-live"),
        ("change", {}, "change"),
        ("change", {"size": PHONE, "scheme": "dark"}, "change-phone-dark"),
    ],
)
def test_a_page_has_its_picture(
    morning: GoingSite,
    pages: dict[str, str],
    visits: Visits,
    page: str,
    looks: dict[str, Any],
    name: str,
    screens: Path,
):
    visitor = visits(morning, name=ADMIN, **looks)
    shown = visitor.open(pages[page])
    if page == "run-live":
        expect(shown.locator("[data-state]")).to_have_text("Live")

    if page == "change":
        shown.locator("#f3").evaluate("file => file.scrollIntoView()")
    screens.mkdir(exist_ok=True)
    shown.screenshot(path=screens / f"{name}.png")
    assert visitor.overflow_px() == 0
