"""Every page by axe-core's rules, in the light and in the dark; keys and small windows."""

from __future__ import annotations

from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.browser.going import ADMIN, GoingSite
from tests.browser.visitor import PHONE, Visitor, Visits

pytestmark = pytest.mark.browser
SCHEMES = ("light", "dark")
RULES = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}}
OF_COLOURS = {"runOnly": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}}
TEXT = (
    "# Seen today\n\nThe hedge *grew*. See [the plan](https://example.org/plan).\n\n- one\n- two\n"
)


@pytest.fixture(scope="module")
def pages(site: GoingSite) -> dict[str, str]:
    """The path of every page, by what it is."""
    found: dict[str, str] = site.rows.one("scene_of", TEXT, ["plan.md"])
    for each in ("runevent", "relaycall", "decision"):
        del found[f"admin, one {each}"]  # the same form as that of a run
    for each in ("team", "provider", "engine", "assistant"):
        found[f"first run, {each}"] = f"/first-run/{each}"
    found |= {"admin": "/admin/", "people": "/admin/auth/user/", "outbox, empty": "/outbox/"}
    return found


def broken_rules(page: Page, rules: dict[str, Any] = RULES) -> list[str]:
    """Which rules a page breaks, and where."""
    found = Axe().run(page, options=rules).response["violations"]
    return [
        f"{each['id']}: {node['html'][:200]} {node['failureSummary'][:300]}"
        for each in found
        for node in each["nodes"][:3]
    ]


def each_page(visitor: Visitor, pages: dict[str, str], look: Any) -> dict[str, Any]:
    """What `look` finds on the pages where it finds something."""
    found = {}
    for what, path in pages.items():
        visitor.open(path)
        if wrong := look(visitor):
            found[what] = wrong
    return found


@pytest.mark.parametrize("scheme", SCHEMES)
def test_no_page_breaks_a_rule_of_wcag(
    site: GoingSite, pages: dict[str, str], visits: Visits, scheme: str
):
    visitor = visits(site, name=ADMIN, scheme=scheme, bypass_csp=True)
    rules = RULES if scheme == "light" else OF_COLOURS  # the dark has no other words or order

    assert each_page(visitor, pages, lambda seen: broken_rules(seen.page, rules)) == {}


def test_the_page_that_asks_for_the_password_once_more_does_not_either(
    site: GoingSite, visits: Visits
):
    visitor = visits(site, name=ADMIN, bypass_csp=True)
    (key,) = [
        each["value"] for each in visitor.context.cookies() if each["name"] == "sanduk_session"
    ]
    site.rows.one("grow_stale", key)

    visitor.page.goto(f"{site.url}/first-run/team")

    visitor.says("Your password, please")
    assert broken_rules(visitor.page) == []


@pytest.mark.parametrize("scheme", SCHEMES)
def test_neither_does_one_who_is_not_signed_in_see_such_a_page(
    site: GoingSite, visits: Visits, scheme: str
):
    strangers = {"login": "/admin/login/"}
    link = f"/setup/{site.rows.one('link_for', ADMIN)}"

    visitor = visits(site, scheme=scheme, bypass_csp=True)

    look = each_page(visitor, {**strangers, "set-up": link}, lambda seen: broken_rules(seen.page))
    assert look == {}


def test_no_page_is_wider_than_a_phone(site: GoingSite, pages: dict[str, str], visits: Visits):
    ours = {what: path for what, path in pages.items() if not path.startswith("/admin/")}
    visitor = visits(site, name=ADMIN, size=PHONE)

    assert each_page(visitor, ours, Visitor.overflow_px) == {}


@pytest.mark.parametrize("what", ["gate", "memory"])
def test_tab_alone_reaches_every_button_that_decides(
    site: GoingSite, pages: dict[str, str], visits: Visits, what: str
):
    page = visits(site, name=ADMIN).open(pages[what])
    wanted = page.locator(".sk-decide button").all_inner_texts()
    assert len(wanted) == 3

    reached = []
    for _ in range(80):
        page.keyboard.press("Tab")
        focused = page.evaluate(
            "document.activeElement.closest('.sk-decide') && document.activeElement.innerText"
        )
        reached += [focused] if focused in wanted else []
        if len(reached) == len(wanted):
            break

    assert reached == wanted


@pytest.mark.parametrize("key", ["a", "r", "w"])
def test_a_key_moves_the_focus_and_decides_nothing(
    site: GoingSite, pages: dict[str, str], visits: Visits, key: str
):
    visitor = visits(site, name=ADMIN)
    page = visitor.open(pages["gate"])

    page.keyboard.press(key)

    expect(page.locator(f"[data-key='{key}']")).to_be_focused()
    item = int(pages["gate"].strip("/").rpartition("/")[2])
    assert site.rows.one("state_of", item)[0] == "pending"


def test_a_question_mark_lists_the_keys_and_escape_closes_the_list(site: GoingSite, visits: Visits):
    page = visits(site, name=ADMIN, bypass_csp=True).open("/")

    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    assert broken_rules(page) == []

    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
