"""`sanduk login`: use a site elsewhere from this terminal."""

from __future__ import annotations

from typing import Any

import msgspec
from django.core.management.base import CommandParser

from assistants.management import answers
from assistants.management.answers import Me
from runs import site_login
from runs.management.hidden_prompt import asked
from runs.management.terminal import SandukCommand, add_json_flag
from runs.refusal import Refusal
from runs.site_login import Site
from runs.visible import visible

_TOKEN_MAX = 300


class Command(SandukCommand):
    help = (
        "Log this account in to a site elsewhere, with a token that the site's page of sessions "
        "shows once (hidden prompt, or standard input). outbox, approve, reject, tell and inbox "
        "then go there, and say so; with --here they stay here. The token is kept for this account "
        "alone. Without a URL: where this account is logged in."
    )
    examples = (
        "login https://sanduk.example",
        "login",
        "outbox --pending",
        "approve 17 --expect 3f2a9c0d11e4:77b01c2e9d40",
        "logout",
    )
    keeps_state = False

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("url", nargs="?", default="", metavar="URL")
        add_json_flag(parser)

    def act(self, **options: Any) -> int:
        if not options["url"]:
            return self._status(as_json=options["json"])
        url = site_login.checked_url(options["url"])
        if site_login.is_readable_on_the_way(url):
            self.say(f"{url} is not https: whoever is on the way reads the token")
        site = Site(url, _token(url))
        me = site.get("me")
        self._tell(site, me, as_json=options["json"])
        site_login.keep(site)
        return 0

    def _status(self, *, as_json: bool) -> int:
        site = site_login.kept()
        if site is None:
            self.say("this account is logged in nowhere: sanduk login URL")
            return 1
        self._tell(site, site.get("me"), as_json=as_json)
        return 0

    def _tell(self, site: Site, answer: Any, *, as_json: bool) -> None:
        me = answers.read(site, Me, answer)
        if as_json:
            self.print_json({"url": site.url, **msgspec.structs.asdict(me)})
            return
        who, until = visible(me.user, limit=150), visible(me.expires_at[:16])
        decides = "approves and rejects" if me.may_decide else "decides nothing"
        self.print(f"{who} at {site.url}, until {until}; this terminal {decides}")


def _token(url: str) -> str:
    prompt = f"the token from {url}/sessions"
    given = asked(prompt, what=url, most=_TOKEN_MAX + 1).strip()
    is_one = given.isascii() and given.isprintable() and " " not in given
    if not given or len(given) > _TOKEN_MAX or not is_one:
        raise Refusal(f"that is no token; {url}/sessions makes one")
    return given
