"""Somebody with a browser: every page they see is watched for what no page of ours may do."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Dialog,
    Page,
    Request,
    Response,
    sync_playwright,
)

from tests.browser.going import PASSWORD, GoingSite

DESKTOP = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}
WAIT_MS = 15_000
# what a document's own status makes Chromium say; other answers are looked at one by one
_OF_A_STATUS = "Failed to load resource: the server responded with a status of 4"


@contextlib.contextmanager
def chromium_that_starts() -> Iterator[Browser]:
    path = os.environ.get("SANDUK_CHROMIUM") or shutil.which("chromium")
    if path is None:
        pytest.skip("no chromium here: scripts/browser-up installs it")
    flags = ["--no-sandbox"] if os.geteuid() == 0 else []
    # whatever a page asks for, no name is looked up and no other machine is called
    flags += ["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=flags)
        try:
            yield browser
        finally:
            browser.close()


class Visitor:
    """Args:
    context: a browser's profile: cookies and looks of one person.
    """

    def __init__(self, context: BrowserContext, site: GoingSite) -> None:
        self.context, self.site = context, site
        self.wrongs: list[str] = []
        context.set_default_timeout(WAIT_MS)
        context.on("request", self._on_request)
        context.on("response", self._on_response)
        context.on("page", self._on_page)
        self.page = context.new_page()

    # -- watching ---------------------------------------------------------------------------
    def _on_page(self, page: Page) -> None:
        page.on("console", self._on_console)
        page.on("pageerror", lambda error: self.wrongs.append(f"script: {error}"))
        page.on("dialog", self._on_dialog)

    def _on_console(self, message: ConsoleMessage) -> None:
        # a breach of the content policy is told here too
        if message.type == "error" and not message.text.startswith(_OF_A_STATUS):
            self.wrongs.append(f"console: {message.text}")

    def _on_dialog(self, dialog: Dialog) -> None:
        self.wrongs.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _on_request(self, request: Request) -> None:
        if urlsplit(request.url).netloc != urlsplit(self.site.url).netloc:
            self.wrongs.append(f"request: {request.url}")

    def _on_response(self, response: Response) -> None:
        is_page = response.request.resource_type == "document"
        if response.status >= (500 if is_page else 400):
            self.wrongs.append(f"status {response.status}: {response.url}")

    def check(self) -> None:
        for page in self.context.pages:
            if page.url.startswith("http") and page.evaluate("window.__pwned") is not None:
                self.wrongs.append(f"script of an agent ran: {page.url}")
        assert not self.wrongs, self.wrongs

    # -- going about ------------------------------------------------------------------------
    def open(self, path: str) -> Page:
        answer = self.page.goto(self.site.url + path)
        assert answer is not None
        assert answer.status == 200, f"{path}: {answer.status}"
        return self.page

    def log_in(self, name: str, password: str = PASSWORD) -> Page:
        page = self.page
        page.wait_for_load_state()
        if not page.get_by_label("Username").count():
            page.goto(f"{self.site.url}/admin/login/?next=/")
        page.get_by_label("Username").fill(name)
        page.get_by_label("Password").fill(password)
        page.get_by_role("button", name="Log in").click()
        return page

    def let_in(self, name: str) -> Visitor:
        """Signed in without the form."""
        key = self.site.rows.one("session_of", name)
        cookie: Any = {"name": "sanduk_session", "value": key, "url": self.site.url}
        self.context.add_cookies([cookie])
        return self

    def path(self) -> str:
        return urlsplit(self.page.url).path

    def overflow_px(self) -> int:
        """How far the page is wider than its window."""
        root = "document.documentElement"
        found: int = self.page.evaluate(f"{root}.scrollWidth - {root}.clientWidth")
        return found

    def says(self, text: str) -> None:
        """Wait until the page shows a text."""
        self.page.get_by_text(text).first.wait_for()


class Visits:
    """The visitors of one test."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._all: list[Visitor] = []

    def __call__(
        self,
        site: GoingSite,
        *,
        name: str = "",
        size: dict[str, int] | None = None,
        scheme: str = "light",
        scripts: bool = True,
        bypass_csp: bool = False,
    ) -> Visitor:
        """A new browser; signed in as `name`, if one is given.

        Args:
            bypass_csp: for an examiner whose own script sets styles in the page.
        """
        looks: Any = {"viewport": size or DESKTOP, "color_scheme": scheme}
        if size == PHONE:
            looks |= {"is_mobile": True, "has_touch": True}
        context = self._browser.new_context(
            **looks, java_script_enabled=scripts, bypass_csp=bypass_csp, timezone_id="UTC",
            reduced_motion="reduce",
        )  # fmt: skip
        self._all.append(Visitor(context, site))
        return self._all[-1].let_in(name) if name else self._all[-1]

    def check(self) -> None:
        for visitor in self._all:
            visitor.check()

    def close(self) -> None:
        for visitor in self._all:
            visitor.context.close()
