"""`sanduk logout`: use the site elsewhere no more."""

from __future__ import annotations

from typing import Any

from runs import site_login
from runs.management.terminal import SandukCommand
from runs.refusal import Refusal


class Command(SandukCommand):
    help = (
        "End this terminal's token at the site this account is logged in to, and forget it here. "
        "A site that cannot be asked keeps it until its page of sessions ends it: exit code 1."
    )
    examples = ("logout",)
    keeps_state = False

    def act(self, **options: Any) -> int:
        try:
            site = site_login.kept()
        except Refusal as exc:
            site_login.forget()
            self.say(f"{exc}; it is removed here, and may still be good at its site")
            return 1
        if site is None:
            self.say("this account was logged in nowhere")
            return 1
        try:
            site.post("leave")
        except Refusal as exc:
            self.say(f"{exc}; end it at {site.url}/sessions")
            return 1
        finally:
            site_login.forget()
        self.say(f"logged out of {site.url}")
        return 0
