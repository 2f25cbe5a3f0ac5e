"""A browser that runs no script sees what waits, decides it, and reads a run's trace."""

from __future__ import annotations

import pytest

from tests.browser.going import ADMIN, GoingSite
from tests.browser.visitor import PHONE, Visitor, Visits

pytestmark = pytest.mark.browser


@pytest.fixture
def visitor(site: GoingSite, visits: Visits) -> Visitor:
    return visits(site, name=ADMIN, size=PHONE, scripts=False)


def test_what_home_lists_is_opened_and_approved(site: GoingSite, visits: Visits):
    item = site.rows.one("oldest_item", "# Plainly")
    visitor = visits(site, scripts=False)
    page = visitor.log_in(ADMIN)

    page.locator(f"a[href='/outbox/{item}/']").click()
    page.get_by_role("button", name="Approve").click()

    visitor.says(f"Item {item} is approved.")
    assert site.rows.one("state_of", item)[:2] == ["approved", ADMIN]


def test_a_rejection_without_its_reason_comes_back_with_the_form(site: GoingSite, visitor: Visitor):
    item = site.rows.one("item", "# No")
    page = visitor.open(f"/outbox/{item}/")

    page.get_by_role("button", name="Reject").click()
    visitor.says("a rejection needs a reason")
    page.get_by_label("Reason or note").fill("because")
    page.get_by_role("button", name="Reject").click()

    visitor.says("is rejected.")
    assert site.rows.one("state_of", item) == ["rejected", ADMIN, "because"]


def test_the_trace_of_a_run_that_goes_on_is_a_plain_list(site: GoingSite, visitor: Visitor):
    uid = site.rows.one("run", 30, "running")
    page = visitor.open(f"/runs/{uid}/")
    lines = page.get_by_role("list", name="Trace").get_by_role("listitem")
    assert lines.count() == 30
    assert not page.get_by_role("button", name="Pause").is_visible()

    site.rows.one("say_more", uid, "and one more")
    page.get_by_role("link", name="Reload").click()

    visitor.says("and one more")
    assert lines.count() == 31


def test_an_assistant_is_told_something(site: GoingSite, visitor: Visitor):
    name = site.rows.one("assistant", "reader")
    page = visitor.open(f"/assistants/{name}/")

    page.get_by_label("Tell it something").fill("read this")
    page.get_by_role("button", name="Tell", exact=True).click()

    visitor.says("It is told")
    visitor.says("read this")


def test_on_a_phone_every_part_is_behind_more(site: GoingSite, visitor: Visitor):
    page = visitor.open("/")
    assert not page.get_by_role("link", name="System").is_visible()

    page.get_by_text("More", exact=True).click()
    page.get_by_role("link", name="System").click()

    assert visitor.path() == "/system/"


@pytest.mark.parametrize("path", ["/admin/password_change/", "/admin/runs/run/", "/"])
def test_no_page_is_wider_than_a_phone(site: GoingSite, visitor: Visitor, path: str):
    site.rows.one("run", 3)
    visitor.open(path)
    assert visitor.overflow_px() == 0


def test_the_bar_of_the_gate_leaves_most_of_a_phone_to_what_is_decided(
    site: GoingSite, visitor: Visitor
):
    item = site.rows.one("item", "# Read me\n\n" + "A line of it.\n\n" * 60)
    bar = visitor.open(f"/outbox/{item}/").get_by_role("form", name="Your decision").bounding_box()
    assert bar is not None
    assert bar["height"] < PHONE["height"] / 4


@pytest.mark.parametrize("kind", ["run", "auditevent"])
def test_a_list_of_records_shows_every_column_and_folds_its_filters(
    site: GoingSite, visits: Visits, kind: str
):
    site.rows.one("run", 3)
    page = visits(site, name=ADMIN, scripts=False).open(f"/admin/runs/{kind}/")
    cut = page.locator(".results").evaluate("it => it.scrollWidth - it.clientWidth")
    assert cut == 0
    assert not page.locator("#changelist-filter").is_visible()
    page.get_by_text("Filters", exact=True).click()
    assert page.locator("#changelist-filter").is_visible()
