"""Two people at one gate, with four eyes on: who may decide, once, and nothing typed is lost."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.browser.going import ADMIN, GoingSite
from tests.browser.visitor import Visitor, Visits

pytestmark = pytest.mark.browser
AUTHOR, OTHER, VIEWER = "ann", "ben", "vic"


@pytest.fixture(scope="module")
def team(site: GoingSite) -> Iterator[GoingSite]:
    """A site of a team: ann and ben may decide, vic may look."""
    for name in (AUTHOR, OTHER):
        site.rows.one("person", name, "operator", "approver")
    site.rows.one("person", VIEWER, "viewer")
    site.rows.one("four_eyes", True)
    yield site
    site.rows.one("four_eyes", False)


def at_gate(visitor: Visitor, item: int) -> Visitor:
    visitor.open(f"/outbox/{item}/")
    return visitor


def press(visitor: Visitor, button: str) -> None:
    visitor.page.get_by_role("button", name=button, exact=True).click()


def state(team: GoingSite, item: int) -> list[str]:
    found: list[str] = team.rows.one("state_of", item)
    return found


def test_who_asked_for_it_has_no_button_to_approve_and_a_forged_form_is_refused(
    team: GoingSite, visits: Visits
):
    item = team.rows.one("item", "# Mine", "scout", AUTHOR)
    visitor = at_gate(visits(team, name=AUTHOR), item)
    page = visitor.page
    expect(page.get_by_role("button", name="Reject")).to_be_visible()
    assert page.get_by_role("button", name="Approve").count() == 0
    visitor.says("You asked for it")

    # the button that is not there, as somebody with the browser's tools would make it
    page.get_by_role("button", name="Reject").evaluate("button => button.value = 'approve'")
    press(visitor, "Reject")

    visitor.says(f"{AUTHOR} asked for item {item}")
    assert state(team, item)[0] == "pending"


def test_the_other_one_approves_it(team: GoingSite, visits: Visits):
    item = team.rows.one("item", "# Hers", "scout", AUTHOR)
    visitor = at_gate(visits(team, name=OTHER), item)

    press(visitor, "Approve")

    visitor.says(f"Item {item} is approved.")
    assert state(team, item)[:2] == ["approved", OTHER]


def test_who_may_only_look_has_no_form(team: GoingSite, visits: Visits):
    item = team.rows.one("item", "# Look")
    page = at_gate(visits(team, name=VIEWER), item).page

    assert page.locator("form[action$='/decide']").count() == 0
    assert page.get_by_role("button", name="Approve").count() == 0


def test_an_old_tab_says_who_decided_and_when(team: GoingSite, visits: Visits):
    item = team.rows.one("item", "# Once")
    old = at_gate(visits(team, name=AUTHOR), item)
    new = at_gate(visits(team, name=OTHER), item)
    press(new, "Approve")
    new.says("is approved.")

    press(old, "Approve")

    old.says(f"item {item} was already approved by {OTHER} at 20")
    assert team.rows.one("decisions_on", item) == [OTHER]


def test_an_item_for_two_takes_both(team: GoingSite, visits: Visits):
    item = team.rows.one("item", "# Both", "scout", "", 2)
    first = at_gate(visits(team, name=AUTHOR), item)
    second = at_gate(visits(team, name=OTHER), item)

    press(first, "Approve")
    first.says("1 more approval is needed.")
    assert state(team, item)[0] == "pending"

    press(second, "Approve")
    second.says("is approved.")
    assert state(team, item)[1] == f"{AUTHOR}, {OTHER}"


def test_a_double_click_decides_once(team: GoingSite, visits: Visits):
    item = team.rows.one("item", "# Twice")
    visitor = at_gate(visits(team, name=OTHER), item)

    visitor.page.get_by_role("button", name="Approve").dblclick()

    visitor.says(f"Item {item} is approved.")
    assert team.rows.one("decisions_on", item) == [OTHER]
    assert "already" not in visitor.page.inner_text("#content")


def test_what_was_typed_is_there_after_a_session_ended_in_the_middle(
    team: GoingSite, visits: Visits
):
    item, why = team.rows.one("item", "# Slow"), "the third figure is wrong\nand so is the sum"
    visitor = at_gate(visits(team, name=OTHER), item)
    page = visitor.page
    page.get_by_label("Reason or note").fill(why)
    team.rows.one("end_sessions_of", OTHER)

    press(visitor, "Reject")
    visitor.log_in(OTHER)

    # back at the form, and nothing was decided meanwhile
    expect(page.get_by_label("Reason or note")).to_have_value(why)
    assert state(team, item)[0] == "pending"
    press(visitor, "Reject")
    visitor.says("is rejected.")
    assert state(team, item) == ["rejected", OTHER, why]


@pytest.mark.parametrize("leaves", ["by logging out", "as the session ended"])
def test_what_somebody_typed_is_not_there_for_the_next_in_the_same_tab(
    team: GoingSite, visits: Visits, leaves: str
):
    item = team.rows.one("item", "# Shared")
    visitor = at_gate(visits(team, name=OTHER), item)
    visitor.page.get_by_label("Reason or note").fill("between us")
    kept = "Object.values(sessionStorage).includes('between us')"
    assert visitor.page.evaluate(kept) is True
    if leaves == "by logging out":
        press(visitor, "Log out")
        assert visitor.page.evaluate(kept) is False
    else:
        team.rows.one("end_sessions_of", OTHER)
        at_gate(visitor, item)

    visitor.log_in(AUTHOR)
    at_gate(visitor, item)

    expect(visitor.page.get_by_label("Reason or note")).to_have_value("")
    assert visitor.page.evaluate(kept) is False


def test_a_message_is_not_offered_again_once_it_is_told(team: GoingSite, visits: Visits):
    name = team.rows.one("assistant", "listener")
    visitor = visits(team, name=AUTHOR)
    page = visitor.open(f"/assistants/{name}/")
    page.get_by_label("Tell it something").fill("hello")
    press(visitor, "Tell")
    visitor.says("It is told")

    visitor.open(f"/assistants/{name}/")

    expect(page.get_by_label("Tell it something")).to_have_value("")


def test_an_administrator_signs_a_browser_out_from_afar(team: GoingSite, visits: Visits):
    team.rows.one("person", "eve", "viewer")
    far, near = visits(team, name="eve"), visits(team, name=ADMIN)
    far.open("/")
    row = near.open("/sessions").get_by_role("row").filter(has_text="eve")
    row.get_by_role("button").click()
    near.says("Signed out there.")

    far.page.reload()

    expect(far.page.get_by_label("Password")).to_be_visible()
