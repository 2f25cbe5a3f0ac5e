"""What keeps up by itself: the trace of a run, also over a restart, and the count of what waits."""

from __future__ import annotations

import os
import re
import signal

import pytest
from playwright.sync_api import Page, expect

from tests.browser.going import ADMIN, GoingSite
from tests.browser.visitor import Visitor, Visits

pytestmark = pytest.mark.browser


def following(visitor: Visitor, uid: str) -> Page:
    page = visitor.open(f"/runs/{uid}/")
    expect(page.locator("[data-state]")).to_have_text("Live")
    return page


def lines(page: Page) -> list[str]:
    return page.get_by_role("list", name="Trace").locator("span.sk-text").all_inner_texts()


def test_everybody_who_watches_sees_a_new_line(site: GoingSite, visits: Visits):
    uid = site.rows.one("run", 3, "running")
    pages = [following(visits(site, name=ADMIN), uid) for _ in range(2)]

    site.rows.one("say_more", uid, "for all to see")

    for page in pages:
        expect(page.get_by_role("list", name="Trace")).to_contain_text("for all to see")


def test_a_paused_trace_holds_new_lines_until_it_follows_again(site: GoingSite, visits: Visits):
    uid = site.rows.one("run", 3, "running")
    page = following(visits(site, name=ADMIN), uid)
    page.get_by_role("button", name="Pause").click()

    site.rows.one("say_more", uid, "later")

    expect(page.locator("[data-state]")).to_have_text("Paused, 1 new")
    assert "later" not in lines(page)
    page.get_by_role("button", name="Follow").click()
    assert lines(page)[-1] == "later"


def test_an_end_outranks_a_pause_and_nothing_is_offered_to_stop(site: GoingSite, visits: Visits):
    uid = site.rows.one("run", 3, "running")
    page = following(visits(site, name=ADMIN), uid)
    page.get_by_role("button", name="Pause").click()
    site.rows.one("say_more", uid, "the last word")
    site.rows.one("end_run", uid)

    expect(page.locator("[data-state]")).to_have_text("Ended")
    page.wait_for_timeout(200)  # a line that was still held would be put in by now
    expect(page.locator("[data-state]")).to_have_text("Ended")
    assert lines(page)[-1] == "the last word"
    expect(page.locator("[data-chip]")).to_have_text("succeeded")
    expect(page.get_by_role("button", name="Stop")).to_have_count(0)
    expect(page.get_by_role("button", name="Follow")).to_be_hidden()


def test_everything_on_the_page_keeps_up_with_its_run(site: GoingSite, visits: Visits):
    uid = site.rows.one("run", 0, "queued")
    page = following(visits(site, name=ADMIN), uid)
    page.evaluate("window.loaded_once = true")
    timeline = page.get_by_role("region", name="Timeline")
    calls = page.get_by_role("region", name="Calls to the provider")
    expect(page.get_by_text("No line yet.")).to_be_visible()
    expect(calls).to_contain_text("No call reached the relay")
    expect(timeline).not_to_contain_text("claimed")

    site.rows.one("say_more", uid, "a first line")
    site.rows.one("begin_run", uid)
    expect(timeline).to_contain_text("agent started")
    expect(timeline).to_contain_text("first call")
    expect(calls).to_contain_text("a-model")
    expect(page.get_by_text("No line yet.")).to_be_hidden()

    page.locator("summary", has_text="Exact options").click()
    page.get_by_role("button", name="Stop").focus()
    site.rows.one("end_run", uid, "cancelled")
    expect(timeline).to_contain_text("cancelled")
    expect(page.get_by_role("region", name="Report")).to_contain_text("There is none")
    expect(page.get_by_text("It is read when the run ends.")).to_have_count(0)
    expect(page.get_by_role("link", name="Change and run")).to_be_visible()
    expect(page.locator("[data-state]")).to_have_text("Ended")
    assert page.locator("details", has_text="Exact options").get_attribute("open") is not None
    assert page.evaluate("window.loaded_once")  # no reload brought it


def test_what_was_said_of_a_run_before_goes_when_it_goes_on(site: GoingSite, visits: Visits):
    uid = site.rows.one("run", 1, "running")
    page = following(visits(site, name=ADMIN), uid)
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_text("It was asked to stop.")).to_be_visible()
    expect(page.get_by_role("region", name="Timeline")).to_contain_text("asked to stop")

    site.rows.one("end_run", uid, "cancelled")

    expect(page.locator("[data-chip]")).to_have_text("cancelled")
    expect(page.get_by_text("It was asked to stop.")).to_have_count(0)


def test_where_the_page_cannot_be_had_a_reload_is_offered_at_the_end(
    site: GoingSite, visits: Visits
):
    uid = site.rows.one("run", 1, "running")
    page = following(visits(site, name=ADMIN), uid)
    page.route(f"**/runs/{uid}/", lambda route: route.fulfill(status=204))
    site.rows.one("end_run", uid)

    expect(page.locator("[data-state]")).to_have_text("Ended; reload for its report")
    expect(page.get_by_role("link", name="Reload")).to_be_visible()


def test_a_trace_goes_on_where_it_was_when_the_site_was_restarted(site: GoingSite, visits: Visits):
    assert site.up is not None
    uid = site.rows.one("run", 3, "running")
    visitor = visits(site, name=ADMIN)
    page = following(visitor, uid)
    site.rows.one("say_more", uid, "before")
    expect(page.get_by_role("list", name="Trace")).to_contain_text("before")

    os.kill(site.up.children()["web"], signal.SIGKILL)
    site.rows.one("say_more", uid, "meanwhile")

    expect(page.get_by_role("list", name="Trace")).to_contain_text("meanwhile", timeout=40_000)
    assert lines(page) == ["line 1", "line 2", "line 3", "before", "meanwhile"]
    # the cut connection is told on the console, and nothing else is
    visitor.wrongs = [wrong for wrong in visitor.wrongs if "net::ERR_" not in wrong]


def test_the_count_in_title_and_navigation_keeps_up(site: GoingSite, visits: Visits):
    visitor = visits(site, name=ADMIN)
    visitor.page.clock.install()
    page = visitor.open("/")
    found = re.match(r"\((\d+)\) ", page.title())
    before = int(found[1]) if found else 0

    site.rows.one("item", "# One more")
    page.clock.fast_forward(16_000)

    expect(page).to_have_title(re.compile(rf"^\({before + 1}\) Home"))
    expect(page.locator("[data-waiting]")).to_have_text(str(before + 1))
