"""A change in a browser: read with its lines, marked, commented on, accepted; with and without
scripts, on a phone, and with whatever an agent may have written into it."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.going import ADMIN, GoingSite
from tests.browser.test_accessible import OF_COLOURS, RULES, broken_rules, each_page
from tests.browser.visitor import PHONE, Visitor, Visits
from tests.site.pages import EVIL

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def pages(site: GoingSite) -> dict[str, str]:
    found: dict[str, str] = site.rows.one("changes_of", "")
    return found


@pytest.fixture
def fresh(site: GoingSite) -> dict[str, str]:
    """Changes of this test alone."""
    found: dict[str, str] = site.rows.one("changes_of", "")
    return found


def uid_of(path: str) -> str:
    return path.split("/")[2]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_of_changes_breaks_a_rule_of_wcag(
    site: GoingSite, pages: dict[str, str], visits: Visits, scheme: str
):
    visitor = visits(site, name=ADMIN, scheme=scheme, bypass_csp=True)
    rules = RULES if scheme == "light" else OF_COLOURS
    assert each_page(visitor, pages, lambda seen: broken_rules(seen.page, rules)) == {}


def test_no_page_of_changes_is_wider_than_a_phone(
    site: GoingSite, pages: dict[str, str], visits: Visits
):
    visitor = visits(site, name=ADMIN, size=PHONE)
    assert each_page(visitor, pages, Visitor.overflow_px) == {}


def test_what_an_agent_wrote_does_nothing_on_any_page(site: GoingSite, visits: Visits):
    hostile = site.rows.one("changes_of", EVIL)
    for size in (None, PHONE):
        visitor = visits(site, name=ADMIN, size=size)
        for path in hostile.values():
            page = visitor.open(path)
            assert "\u202e" not in page.content()


def test_a_comment_on_a_line_goes_along_with_the_revision_and_survives_a_refusal(
    site: GoingSite, fresh: dict[str, str], visits: Visits
):
    page = visits(site, name=ADMIN).open(fresh["change, another"])
    number = page.locator("tr.sk-add .sk-no a").first
    line = number.inner_text()

    number.click()
    said = page.get_by_label(f"Comment on shop/export.py, line {line}")
    expect(said).to_be_focused()
    said.fill("why 30? <b>no</b>")
    page.get_by_role("button", name="Add to the revision").click()

    expect(page.locator(".sk-comment p")).to_have_text("why 30? <b>no</b>")
    expect(page.locator("[data-key='e']")).to_have_text("Revise with 1 comment")
    page.reload()
    expect(page.locator(".sk-comment p")).to_have_text("why 30? <b>no</b>")
    page.locator("[data-key='e']").click()
    # no worker is up here
    expect(page.get_by_text("no worker is up")).to_be_visible()
    expect(page.locator(".sk-comment p")).to_have_text("why 30? <b>no</b>")
    page.get_by_role("button", name="Take back").click()
    expect(page.locator("[data-key='e']")).to_have_text("Revise")


def test_what_was_viewed_stays_marked_and_folded_for_this_person(
    site: GoingSite, fresh: dict[str, str], visits: Visits
):
    page = visits(site, name=ADMIN).open(fresh["change"])
    file = page.locator(".sk-file", has_text="tests/test_export.py")
    file.get_by_label("Viewed").check()
    expect(page.get_by_text("1 of 6 viewed")).to_be_visible()
    expect(file).not_to_have_attribute("open", "")

    page.reload()
    expect(page.get_by_text("1 of 6 viewed")).to_be_visible()
    expect(file).not_to_have_attribute("open", "")
    page.locator(".sk-tree a", has_text="test_export.py").click()
    expect(file).to_have_attribute("open", "")


@pytest.mark.parametrize("key", ["a", "r", "e", "w", "v"])
def test_a_key_moves_the_focus_and_decides_nothing(
    site: GoingSite, pages: dict[str, str], visits: Visits, key: str
):
    page = visits(site, name=ADMIN).open(pages["change"])
    page.keyboard.press(key)
    wanted = page.locator(f"[data-key='{key}']" if key != "v" else "#f1 .sk-viewed input")
    expect(wanted).to_be_focused()
    assert site.rows.one("change_state_of", uid_of(pages["change"]))[0] == "review"


def test_a_change_is_read_and_accepted_without_a_script(
    site: GoingSite, fresh: dict[str, str], visits: Visits
):
    page = visits(site, name=ADMIN, scripts=False).open(fresh["change"])
    page.locator("#f3 .sk-no a").first.click()
    expect(page.locator("#reason")).to_have_value("shop/export.py, line 1: ")

    page.locator("#reason").fill("the one that fails is another's")
    page.get_by_label("Accept although the tests").check()
    page.get_by_role("button", name="Accept", exact=True).click()

    expect(page.get_by_text("is accepted: branch sanduk/")).to_be_visible()
    expect(page.get_by_text("(web): the one that fails is another's")).to_be_visible()
    state = site.rows.one("change_state_of", uid_of(fresh["change"]))
    assert state[:2] == ["accepted", ADMIN]


def test_a_flag_leads_to_its_line(site: GoingSite, pages: dict[str, str], visits: Visits):
    page = visits(site, name=ADMIN).open(pages["change"])
    page.get_by_role("link", name="shop/hidden.py:1").click()
    expect(page.locator("#f4-R1")).to_be_in_viewport()


@pytest.mark.parametrize("size", [None, PHONE])
def test_what_is_new_since_the_attempt_that_was_read_keeps_what_was_viewed(
    site: GoingSite, fresh: dict[str, str], visits: Visits, size: dict[str, int] | None
):
    page = visits(site, name=ADMIN, size=size).open(fresh["change, twice"])
    expect(page.locator("[data-since='1']")).to_have_text("attempt 1")
    for name in ("docs/kept.md", "docs/use.md"):
        page.locator(".sk-file", has_text=name).get_by_label("Viewed").check()
    expect(page.get_by_text("2 of 3 viewed")).to_be_visible()

    site.rows.one("revise_change", uid_of(fresh["change, twice"]))
    page.reload()

    # the one that did not change since is viewed still, and the one that did is not
    expect(page.get_by_text("1 of 2 viewed")).to_be_visible()
    expect(page.locator(".sk-file", has_text="docs/kept.md").get_by_label("Viewed")).to_be_checked()
    page.get_by_role("link", name="attempt 2 (which you read)").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(
        "What is new in attempt 3 since attempt 2"
    )
    expect(page.get_by_role("button", name="Accept", exact=True)).to_have_count(0)
    file = page.locator(".sk-file", has_text="docs/use.md")
    expect(file).to_contain_text("changed otherwise")
    file.get_by_label("Viewed").check()
    page.get_by_role("link", name="All of attempt 3, to decide on").click()
    expect(page.get_by_text("2 of 2 viewed")).to_be_visible()
    expect(page.get_by_role("link", name="attempt 2 (which you read)")).to_be_visible()


def test_what_is_new_is_read_without_a_script(
    site: GoingSite, pages: dict[str, str], visits: Visits
):
    page = visits(site, name=ADMIN, scripts=False).open(pages["change, twice"])
    page.get_by_role("link", name="attempt 1", exact=True).last.click()
    expect(page.locator(".sk-file")).to_have_count(2)
    page.get_by_role("link", name="With all its lines").first.click()
    expect(page.get_by_text("since attempt 1")).to_be_visible()
