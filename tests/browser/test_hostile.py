"""What an agent writes cannot act on any page that shows it, hide in it, or make it useless."""

from __future__ import annotations

import time
from typing import Any
from unicodedata import category

import pytest
from playwright.sync_api import expect

from tests.browser.going import ADMIN, GoingSite
from tests.browser.texts import ELSEWHERE, HOSTILE, NAMES
from tests.browser.visitor import Visitor, Visits

pytestmark = pytest.mark.browser

WITHOUT_TEXT = (
    "assistants", "system", "keys", "notices", "start a run", "recipes", "recipe",
    "admin, runs_decision", "assistant, security", "run, allow a host",
)  # fmt: skip
LIVE_THINGS = "script:not([src]), iframe, object, embed, base, form[action^='http'], [onload]," + (
    " [onerror], [onmouseover], [onfocus], a[href^='javascript' i], a[href^='data' i],"
    " a[href^='vbscript' i], img[src^='http'], link[href^='http'], style"
)


@pytest.fixture(scope="module")
def pages(site: GoingSite) -> dict[str, str]:
    """The path of every page that shows the text, by what it is."""
    found: dict[str, str] = site.rows.one("scene_of", HOSTILE, NAMES)
    return found


def found_on(visitor: Visitor) -> dict[str, Any]:
    """What of the text came to life on this page, or cannot be seen."""
    page = visitor.page
    for row in page.locator("[data-row]:visible, summary:visible").all()[:20]:
        row.hover(force=True)
    shown = page.evaluate("document.body.innerText + document.title")
    elements = page.locator(f"css={LIVE_THINGS}")
    found = {
        "alive": [each.evaluate("e => e.outerHTML.slice(0, 200)") for each in elements.all()],
        "unseen": [ascii(c) for c in shown if category(c) in ("Cc", "Cf") and c not in "\n\t"],
        "computed": [each for each in ("SECRET_KEY =", "987654321") if each in shown],
        "pwned": page.evaluate("window.__pwned || null"),
    }
    return {what: which for what, which in found.items() if which}


def test_no_page_lets_it_act_or_hide(site: GoingSite, pages: dict[str, str], visits: Visits):
    visitor = visits(site, name=ADMIN)
    found: dict[str, Any] = {}
    for what, path in pages.items():
        visitor.open(path)
        if wrong := found_on(visitor):
            found[what] = wrong
        if what not in WITHOUT_TEXT and "__pwned" not in visitor.page.inner_text("body"):
            found[what] = "the text is not on it"

    assert found == {}


@pytest.mark.parametrize(
    "markup",
    [
        "<img src='/static/none.png' onerror='window.__pwned=1'>",
        f"<img src='{ELSEWHERE}/x.png'>",
        "<p style='color: red'>x</p>",
        "<iframe srcdoc='<script>window.__pwned=1</script>'></iframe>",
    ],
)
def test_a_page_that_let_markup_through_would_be_noticed(
    site: GoingSite, visits: Visits, markup: str
):
    visitor = visits(site, name=ADMIN)
    page = visitor.open("/")

    page.evaluate("markup => document.body.insertAdjacentHTML('beforeend', markup)", markup)
    page.wait_for_timeout(300)

    assert visitor.wrongs
    visitor.wrongs.clear()


@pytest.mark.parametrize("what", ["run", "run, raw", "gate", "gate, raw", "memory", "assistant"])
def test_what_hides_is_shown_as_a_mark(
    site: GoingSite, pages: dict[str, str], visits: Visits, what: str
):
    page = visits(site, name=ADMIN).open(pages[what])

    for mark in ("\\x1b[2J", "\\u202e", "zero\\u200bwidth"):
        expect(page.locator("#content")).to_contain_text(mark)


def test_the_gate_names_what_hides_as_a_risk(
    site: GoingSite, pages: dict[str, str], visits: Visits
):
    visitor = visits(site, name=ADMIN)
    visitor.open(pages["gate"])

    visitor.says("Hidden characters")


def test_a_file_name_with_a_line_break_stays_one_line(
    site: GoingSite, pages: dict[str, str], visits: Visits
):
    page = visits(site, name=ADMIN).open(pages["memory"])

    assert page.locator("code", has_text="two").all_inner_texts()
    assert not [text for text in page.locator("summary code").all_inner_texts() if "\n" in text]


def test_live_lines_are_put_in_as_text(site: GoingSite, pages: dict[str, str], visits: Visits):
    visitor = visits(site, name=ADMIN)
    page = visitor.open(pages["run that goes on"])
    expect(page.locator("[data-state]")).to_have_text("Live")

    site.rows.one("say_more", pages["run that goes on"].split("/")[2], HOSTILE + "the end")

    expect(page.get_by_role("list", name="Trace")).to_contain_text("the end")
    assert found_on(visitor) == {}


def answered(visitor: Visitor, path: str) -> tuple[float, int]:
    """How long a page took to be there, in seconds, and how long its HTML is."""
    since = time.monotonic()
    visitor.open(path)
    return time.monotonic() - since, len(visitor.page.content())


def test_a_report_of_5_mb_leaves_its_pages_usable(site: GoingSite, visits: Visits):
    report = "# Long\n\n" + "a *word* and <b>another</b>\n" * (5_000_000 // 27)
    item = site.rows.one("item", report, "talker")
    run = site.rows.one("run_of", item)
    visitor = visits(site, name=ADMIN)

    for path in (f"/outbox/{item}/", f"/runs/{run}/", f"/runs/{run}/?show=raw", "/outbox/", "/"):
        took_s, size = answered(visitor, path)
        assert size < 3_000_000, path
        assert took_s < 10, path
    visitor.open(f"/outbox/{item}/")
    visitor.says("cut on this page")
    expect(visitor.page.get_by_role("button", name="Approve")).to_be_enabled()
    with visitor.page.expect_download() as download:
        visitor.page.get_by_role("link", name="Download").click()
    assert download.value.path().read_text() == report


def test_a_trace_of_100000_lines_leaves_its_page_usable(site: GoingSite, visits: Visits):
    uid = site.rows.one("run", 100_000)
    visitor = visits(site, name=ADMIN)

    took_s, size = answered(visitor, f"/runs/{uid}/")

    assert size < 1_000_000
    assert took_s < 10
    visitor.says("line 100000")
    visitor.page.get_by_role("link", name="Earlier lines").click()
    visitor.says("line 99600")
