"""From the one-time link to a decision, on Docker with the rehearsal model; runs as they go on."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from runs.workspace import UNPRIVILEGED
from tests.browser.going import ADMIN, PASSWORD, GoingSite
from tests.browser.visitor import PHONE, Visitor, Visits
from tests.engine.running import eventually

pytestmark = [pytest.mark.browser, pytest.mark.engine]
SLOW_MS = 60_000
SAYS = """echo '{"type": "text", "text": "%s"}'"""
LOOKS = [
    pytest.param({"scheme": "dark"}, id="desktop-dark"),
    pytest.param({"size": PHONE, "scheme": "light"}, id="phone-light"),
    pytest.param({"size": PHONE, "scheme": "dark"}, id="phone-dark"),
]


@pytest.fixture(scope="module")
def first_item(chromium: Browser, site_with_engine: GoingSite) -> str:
    """The path of the item that the sample assistant wants to send, behind the first run."""
    visits = Visits(chromium)
    visitor = visits(site_with_engine)
    try:
        found = walk_through_the_first_run(visitor)
        visits.check()
        return found
    finally:
        visits.close()


def walk_through_the_first_run(visitor: Visitor) -> str:
    page = visitor.page
    page.goto(visitor.site.link)
    page.get_by_label("Your name here").fill(ADMIN)
    page.get_by_label("Password:", exact=True).fill(PASSWORD)
    page.get_by_label("Password again").fill(PASSWORD)
    page.get_by_role("button", name="Set and sign in").click()
    for title, choice in (
        ("One person, or a team?", "One person"),
        ("Whose models?", "rehearsal"),
        ("What starts containers?", ""),
    ):
        page.get_by_role("heading", name=title).wait_for()
        if choice:
            page.get_by_label(choice).check()
        page.get_by_role("button", name="Go on").click()
    page.get_by_role("button", name="Make it and wake it").click()
    link = page.get_by_role("link", name="Read it and decide")
    link.wait_for(timeout=SLOW_MS)  # the page looks again by itself
    link.click()
    page.get_by_role("heading", name="What leaves, exactly").wait_for()
    return visitor.path()


@pytest.fixture
def site(site_with_engine: GoingSite, first_item: str) -> GoingSite:
    """The site with its engine, its first run over."""
    return site_with_engine


def number(path: str) -> int:
    found = re.fullmatch(r"/outbox/(\d+)/", path)
    assert found, path
    return int(found[1])


def test_what_the_sample_assistant_says_is_approved_by_keyboard(
    site: GoingSite, first_item: str, visits: Visits
):
    visitor = visits(site, name=ADMIN)
    page = visitor.open(first_item)

    page.keyboard.press("a")  # moves the focus, and decides nothing
    expect(page.get_by_role("button", name="Approve")).to_be_focused()
    assert site.rows.one("state_of", number(first_item))[0] == "pending"

    page.keyboard.press("Enter")
    visitor.says("is approved.")
    assert site.rows.one("state_of", number(first_item))[:2] == ["approved", ADMIN]


def test_a_link_that_was_used_makes_nobody_else(site: GoingSite, visits: Visits):
    page = visits(site).page

    answer = page.goto(site.link)

    assert answer is not None
    assert answer.status == 410
    assert page.get_by_role("textbox").count() == 0


def test_an_assistant_is_told_woken_and_its_memory_restored(site: GoingSite, visits: Visits):
    visitor = visits(site, name=ADMIN)
    page = visitor.open("/assistants/sample/")
    page.get_by_label("Tell it something").fill("look at the garden")
    page.get_by_role("button", name="Tell", exact=True).click()
    visitor.says("It is told")
    page.get_by_role("button", name="Wake now").click()
    visitor.says("The worker wakes it")
    eventually(lambda: site.rows.one("is_at_rest", "sample"), 60)
    page.reload()
    page.get_by_text("Read lately").click()
    visitor.says("look at the garden")

    assert site.installation is not None
    workspace = site.installation.ground / "home-sample" / "workspace"
    (workspace / "scribble.txt").write_text("nobody asked for this")
    page.get_by_role("table").filter(has_text="Digest").get_by_role("link").last.click()
    page.get_by_role("button", name="Restore").click()

    visitor.says("The workspace holds snapshot")
    assert not (workspace / "scribble.txt").exists()


class Live:
    """A run from a terminal that goes on when it is told to."""

    def __init__(self, site: GoingSite) -> None:
        assert site.installation is not None
        self.made = site.installation
        self._work = self.made.ground / f"work-{len(self.made.started)}"
        self._work.mkdir()
        if os.geteuid() == 0:  # no agent runs as root
            os.chown(self._work, UNPRIVILEGED, UNPRIVILEGED)
        script = (
            f"{SAYS % 'ready'}; while [ ! -e go ]; do sleep 0.1; done; {SAYS % 'second line'}; "
            "sleep 300"
        )
        going = self.made.begin(script, "--workdir", str(self._work))
        self.uid = self.made.row["uid"]
        self.ended = going.end

    def go_on(self) -> None:
        (self._work / "go").touch()


def follow_and_stop(visitor: Visitor) -> str:
    """Look at a run that says more while one looks, and stop it from its page."""
    live = Live(visitor.site)
    page = visitor.open(f"/runs/{live.uid}/")
    trace = page.get_by_role("list", name="Trace")
    expect(trace).to_contain_text("ready")
    expect(page.locator("[data-state]")).to_have_text("Live")
    page.evaluate("window.loaded_once = true")

    live.go_on()
    expect(trace).to_contain_text("second line")
    assert page.evaluate("window.loaded_once")  # no reload brought it

    page.get_by_role("button", name="Stop").click()
    expect(page.locator("[data-chip]")).to_have_text("cancelled", timeout=30_000)
    expect(page.get_by_role("region", name="Timeline")).to_contain_text("asked to stop")
    assert live.ended(limit_s=30).code == 130
    return live.uid


def test_a_live_run_shows_its_lines_and_is_stopped_from_its_page(site: GoingSite, visits: Visits):
    uid = follow_and_stop(visits(site, name=ADMIN))

    assert site.rows.one("outcome_of", uid) == "cancelled"


@pytest.mark.parametrize("looks", LOOKS)
def test_the_same_at_other_sizes_and_in_the_dark(
    site: GoingSite, visits: Visits, looks: dict[str, Any]
):
    """Log in, find what waits on Home, decide it, follow a run and stop it."""
    body = "# Leave me\n\nfor the " + "-".join(map(str, looks.values()))
    item = site.rows.one("item", body, "sample")
    visitor = visits(site, **looks)
    page: Page = visitor.log_in(ADMIN)
    page.locator(f"a[href='/outbox/{item}/']").click()
    page.get_by_role("heading", name="What leaves, exactly").wait_for()
    assert visitor.overflow_px() <= 0
    page.get_by_role("button", name="Approve").click()
    visitor.says(f"Item {item} is approved.")

    follow_and_stop(visitor)


def test_a_rejection_needs_its_reason(site: GoingSite, visits: Visits):
    item = site.rows.one("item", "# Sell everything", "sample")
    visitor = visits(site, name=ADMIN)
    page = visitor.open(f"/outbox/{item}/")

    page.get_by_role("button", name="Reject").click()
    visitor.says("a rejection needs a reason")
    assert site.rows.one("state_of", item)[0] == "pending"

    page.get_by_label("Reason or note").fill("not today")
    page.get_by_role("button", name="Reject").click()
    visitor.says(f"Item {item} is rejected.")
    assert site.rows.one("state_of", item) == ["rejected", ADMIN, "not today"]


def test_a_click_approves_and_a_destination_gets_the_exact_bytes(
    site: GoingSite, visits: Visits, tmp_path: Path
):
    body = "# Good news\n\nÄpfel & <b>pears</b>\n"
    item, letters = site.rows.one("item", body, "postman"), tmp_path / "letters"
    site.rows.one("send_to_file", "postman", str(letters))
    visitor = visits(site, name=ADMIN)
    page = visitor.open(f"/outbox/{item}/")

    page.get_by_role("button", name="Approve").click()
    visitor.says(f"Item {item} is ")

    # it need not wait for the next minute's look
    eventually(lambda: site.rows.one("state_of", item)[0] == "delivered", 30)
    page.reload()
    expect(page.get_by_role("status").filter(has_text=ADMIN)).to_contain_text("delivered")
    (letter,) = letters.read_text().splitlines()
    assert json.loads(letter)["body"] == body
