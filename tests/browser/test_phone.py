"""On a phone every value has its name, nothing is too small to read, and no bar hides the page."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.going import ADMIN, GoingSite
from tests.browser.visitor import PHONE, Visitor, Visits

pytestmark = pytest.mark.browser

_NAMES = """cells => cells.map(cell => getComputedStyle(cell, '::before').content)"""
_ROOM = """cell => {
  const style = getComputedStyle(cell, '::before');
  const pen = document.createElement('canvas').getContext('2d');
  pen.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
  return parseFloat(style.width) - pen.measureText(cell.dataset.label).width;
}"""


@pytest.fixture
def visitor(site: GoingSite, visits: Visits) -> Visitor:
    return visits(site, name=ADMIN, size=PHONE)


@pytest.mark.parametrize("path", ["runs/run", "runs/auditevent", "auth/user"])
def test_a_list_of_the_admin_names_each_value(site: GoingSite, visitor: Visitor, path: str):
    site.rows.one("run", 1)
    page = visitor.open(f"/admin/{path}/")
    cells = page.locator("#result_list tbody tr").first.locator("th, td")
    heads = [text.strip() for text in page.locator("#result_list thead th").all_text_contents()]
    names = [each.replace('"', "").strip() for each in cells.evaluate_all(_NAMES)]
    assert names == heads
    assert all(names)
    assert visitor.overflow_px() == 0


def test_the_name_of_a_value_is_not_broken(visitor: Visitor):
    page = visitor.open("/sessions")
    labels = page.locator("td[data-label]")
    assert labels.count() >= 4
    assert min(labels.nth(at).evaluate(_ROOM) for at in range(labels.count())) > -1


def test_the_sums_have_the_whole_width_and_the_axis_can_be_read(site: GoingSite, visitor: Visitor):
    site.rows.one("run", 1)
    page = visitor.open("/spend/")
    for place in ("tbody", "tfoot"):
        row = page.locator(f".sk-cards {place} tr").first
        assert row.evaluate("row => row.clientWidth / row.closest('table').clientWidth") > 0.95
    size = page.locator(".sk-axis").evaluate("axis => parseFloat(getComputedStyle(axis).fontSize)")
    assert size >= 12
    expect(page.locator("svg.sk-chart text")).to_have_count(0)


def box_of(page: Page, selector: str) -> Any:
    found = page.locator(selector).first.bounding_box()
    assert found is not None
    return found


@pytest.mark.parametrize("what", ["gate", "memory"])
def test_the_bar_of_a_decision_is_low_and_covers_no_risk(
    site: GoingSite, visitor: Visitor, what: str
):
    paths = site.rows.one("scene_of", "# Seen\n\nghp_" + "a1B2" * 9 + "\n", ["plan.md"])
    page = visitor.open(paths[what])
    bar = box_of(page, ".sk-decide")
    assert bar["height"] <= 125
    padding = page.evaluate(
        "parseFloat(getComputedStyle(document.documentElement).scrollPaddingBottom)"
    )
    assert padding >= bar["height"]  # what gets the focus is scrolled to above of it
    first = box_of(page, ".sk-risks li p")
    assert first["y"] + first["height"] <= bar["y"] or first["y"] >= bar["y"] + bar["height"]
