"""Forms in a browser, at a desk and on a phone: signing out elsewhere, allowing a host, doctor."""

from __future__ import annotations

import secrets
import time
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.going import PASSWORD, GoingSite
from tests.browser.refused_scene import PLACE
from tests.browser.test_accessible import broken_rules
from tests.browser.visitor import DESKTOP, PHONE, Visitor, Visits
from tests.site.pages import EVIL

pytestmark = pytest.mark.browser
SIZES = pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])


@pytest.fixture
def somebody(site: GoingSite):
    """somebody(roles...): the name of a person who is new here."""

    def made(*roles: str) -> str:
        name = f"p-{secrets.token_hex(3)}"
        site.rows.one("person", name, *roles)
        return name

    return made


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name).click()


def is_out(visitor: Visitor) -> None:
    """Their next request finds them signed out."""
    visitor.page.reload()
    expect(visitor.page.get_by_label("Username")).to_be_visible()


def is_in(visitor: Visitor, name: str) -> None:
    assert visitor.open("/sessions")
    expect(visitor.page.get_by_role("heading", name="Signed in")).to_be_visible()
    expect(visitor.page.get_by_role("cell", name=name).first).to_be_visible()


# -- sessions -------------------------------------------------------------------------------------
@SIZES
def test_one_browser_is_signed_out_and_this_one_stays(
    site: GoingSite, visits: Visits, somebody: Any, size: dict[str, int]
):
    name = somebody("viewer")
    far, near = visits(site, name=name), visits(site, name=name, size=size)
    far.open("/")
    page = near.open("/sessions")
    rows = page.locator("tbody tr").filter(has_text=name)
    expect(rows).to_have_count(2)
    this = rows.filter(has_text="this one")
    expect(this).to_have_count(1)
    expect(this.get_by_role("button")).to_have_count(0)
    assert near.overflow_px() == 0

    press(page, f"Sign out {name}")

    near.says("Signed out there.")
    expect(rows).to_have_count(1)
    is_out(far)
    is_in(near, name)


@SIZES
def test_all_others_are_signed_out_at_once_and_nobody_else(
    site: GoingSite, visits: Visits, somebody: Any, size: dict[str, int]
):
    name, other = somebody("viewer"), somebody("viewer")
    others = [visits(site, name=name) for _ in range(2)]
    neighbour, near = visits(site, name=other), visits(site, name=name, size=size)
    for each in (*others, neighbour):
        each.open("/")
    page = near.open("/sessions")
    assert near.overflow_px() == 0

    press(page, "Sign me out everywhere else")

    near.says("Signed out in 2 other browsers.")
    expect(page.get_by_role("button", name="Sign me out everywhere else")).to_have_count(0)
    for each in others:
        is_out(each)
    is_in(near, name)
    is_in(neighbour, other)


def test_both_work_without_a_script(site: GoingSite, visits: Visits, somebody: Any):
    name = somebody("viewer")
    far, farther = visits(site, name=name), visits(site, name=name)
    near = visits(site, name=name, scripts=False)
    for each in (far, farther):
        each.open("/")
    page = near.open("/sessions")

    page.get_by_role("button", name=f"Sign out {name}").first.click()
    near.says("Signed out there.")
    press(page, "Sign me out everywhere else")
    near.says("Signed out in 1 other browser.")

    for each in (far, farther):
        is_out(each)


# -- allowing a host ------------------------------------------------------------------------------
@SIZES
def test_a_host_is_allowed_to_an_assistant_when_it_was_seen_and_the_password_given(
    site: GoingSite, visits: Visits, somebody: Any, size: dict[str, int]
):
    assistant, uid = site.rows.one("refused_of_assistant")
    visitor = visits(site, name=somebody("administrator"), size=size, bypass_csp=True)
    page = visitor.open(f"/runs/{uid}/")
    page.get_by_role("link", name=f"Allow this host {PLACE}").click()

    expect(page.get_by_role("heading", level=1)).to_have_text(f"Allow {PLACE}")
    expect(page.get_by_role("heading", name=f"What changes for {assistant}")).to_be_visible()
    row = page.locator("tbody tr").filter(has_text=PLACE)
    expect(row).to_contain_text("first.example")
    assert visitor.overflow_px() == 0
    assert broken_rules(page) == []
    assert site.rows.one("hosts_of", assistant) == ["first.example"]

    site.rows.one("grow_stale", key_of(visitor))
    press(page, "Allow it")
    visitor.says("Your password, please")
    page.get_by_label("Password of").fill("not this one")
    press(page, "Go on")
    visitor.says("That was not your password.")
    assert site.rows.one("hosts_of", assistant) == ["first.example"]

    page.get_by_label("Password of").fill(PASSWORD)
    press(page, "Go on")
    visitor.says(f"{assistant} may reach {PLACE} from its next wakeup on.")
    assert site.rows.one("hosts_of", assistant) == ["first.example", PLACE]


@SIZES
def test_a_run_is_run_again_with_the_host_exactly_as_the_preview_said(
    site: GoingSite, visits: Visits, somebody: Any, size: dict[str, int]
):
    task = f"Count the lines. {EVIL}"
    uid = site.rows.one("refused_by_hand", task)
    visitor = visits(site, name=somebody("administrator"), size=size, bypass_csp=True)
    page = visitor.open(f"/runs/{uid}/allow/1")

    expect(page.get_by_role("heading", name="What would be started")).to_be_visible()
    expect(page.locator(".sk-ours pre")).to_contain_text("Count the lines. <script>")
    assert "\u202e" not in page.content()
    expect(page.locator(".sk-reach")).to_contain_text(PLACE)
    assert visitor.overflow_px() == 0
    assert broken_rules(page) == []

    press(page, "Run again with this host allowed")

    visitor.says(f"It is queued, as it was ordered before and with {PLACE}.")
    new = visitor.path().split("/")[2]
    assert new != uid
    assert site.rows.one("order_of", new) == ["queued", task, PLACE]


@SIZES
def test_what_changed_since_the_preview_is_looked_at_again(
    site: GoingSite, visits: Visits, somebody: Any, size: dict[str, int]
):
    assistant, uid = site.rows.one("refused_of_assistant")
    visitor = visits(site, name=somebody("administrator"), size=size)
    page = visitor.open(f"/runs/{uid}/allow/1")
    site.rows.one("allow_another", assistant)

    press(page, "Allow it")

    expect(page.get_by_role("alert").or_(page.locator(".messagelist .error")).first).to_be_visible()
    expect(page.locator("tbody tr").filter(has_text=PLACE)).to_contain_text("other.example")
    assert site.rows.one("hosts_of", assistant) == ["first.example", "other.example"]
    press(page, "Allow it")
    visitor.says(f"{assistant} may reach {PLACE}")


@SIZES
def test_who_has_not_the_right_finds_no_way_there(
    site: GoingSite, visits: Visits, somebody: Any, size: dict[str, int]
):
    _, uid = site.rows.one("refused_of_assistant")
    page = visits(site, name=somebody("operator", "approver"), size=size).open(f"/runs/{uid}/")

    expect(page.get_by_text(PLACE).first).to_be_visible()
    expect(page.get_by_role("link", name="Allow this host")).to_have_count(0)


# -- the doctor -----------------------------------------------------------------------------------
@SIZES
def test_the_doctor_is_asked_by_a_button_and_answers_beside_the_page(
    site: GoingSite, visits: Visits, somebody: Any, size: dict[str, int]
):
    visitor = visits(site, name=somebody("operator"), size=size, bypass_csp=True)
    page = visitor.open("/system/")

    press(page, "Look at everything")
    visitor.says("The doctor")  # looks, or is at it already
    found = page.get_by_text("from the site's own process")
    again = page.get_by_role("button", name="Look at everything again")
    deadline = time.monotonic() + 120
    while not (found.count() and again.count()) and time.monotonic() < deadline:
        visitor.open("/system/")

    expect(again).to_be_visible()
    expect(page.get_by_role("listitem").filter(has_text="python")).to_contain_text("Django")
    assert visitor.overflow_px() == 0
    assert broken_rules(page) == []


def key_of(visitor: Visitor) -> str:
    cookies: list[Any] = visitor.context.cookies()
    (key,) = [each["value"] for each in cookies if each["name"] == "sanduk_session"]
    found: str = key
    return found
