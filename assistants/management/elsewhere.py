"""Commands that go to the site this account is logged in to, when it is; `--here` keeps them here.

What comes from there is hostile: `answers` reads it, and all text of it goes through `visible`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from django.core.management.base import CommandParser

from assistants.management import answers
from assistants.management.answers import Decided, Item, WholeItem
from runs import site_login
from runs.management.terminal import SandukCommand
from runs.models import Decision
from runs.refusal import Refusal
from runs.site_login import Site
from runs.visible import visible


class HereOrThere(SandukCommand, ABC):
    """Subclass it with `act_here`, which acts on this installation, and `act_there`."""

    site: Site | None = None

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--here",
            action="store_true",
            help="of this machine's installation, though this account is logged in to a site",
        )

    def guarded(self, **options: Any) -> int:
        try:
            self.site = None if options.get("here") else site_login.kept()
        except Refusal as exc:
            return self.refuse(str(exc))
        if self.site is not None:
            self.keeps_state = False  # nothing of this machine's is needed
        return super().guarded(**options)

    def act(self, **options: Any) -> int:
        if self.site is None:
            return self.act_here(**options)
        self.say(f"at {self.site.url}")
        return self.act_there(self.site, **options)

    @abstractmethod
    def act_here(self, **options: Any) -> int: ...

    @abstractmethod
    def act_there(self, site: Site, **options: Any) -> int: ...


def heading(item: Item) -> str:
    run = f" run {item.run}" if item.run else ""
    told = f"--- [{item.id}] {item.assistant}{run} {item.created_at} {item.state}"
    return visible(told, limit=300)


def show(command: SandukCommand, item: WholeItem) -> None:
    """One item whole, and what an approval of it has to say."""
    command.print(heading(item))
    for lines, mark in ((item.risks, "!"), (item.standing, " "), (item.goes_to, ">")):
        for line in lines:
            command.print(f"{mark} {visible(line, limit=1000)}")
    for each in item.deliveries:
        error = f": {each.error}" if each.error else ""
        told = f"{each.destination}: {each.state}{error}"
        command.print(f"> {visible(told, limit=1000)}")
    command.print("")
    command.print(visible(item.body.rstrip(), lines=True))
    if item.pending:
        expect = visible(item.expect, limit=100)
        command.say(f"exactly this: sanduk approve {item.id} --expect {expect}")


def decide(
    command: SandukCommand,
    site: Site,
    verdict: Decision.Verdict,
    items: list[Any],
    *,
    expect: str | None,
    reason: str,
    as_json: bool,
) -> int:
    """Decide on one item there: of what was read, and no other."""
    if len(items) != 1 or not isinstance(items[0], int):
        raise Refusal("at a site one item at a time is decided on, by its number")
    if not expect:
        raise Refusal(
            f"at a site --expect says what was read: sanduk outbox show {items[0]} prints it"
        )
    found = site.post(
        "outbox", items[0], "decide", verdict=str(verdict.value), expect=expect, reason=reason
    )
    decided = answers.read(site, Decided, found)
    if as_json:
        command.print_json(found)
    elif decided.missing:
        command.print(f"item {items[0]}: your approval counts; {decided.missing} more needed")
    else:
        command.print(f"item {items[0]} is {visible(decided.state, limit=40)}")
    return 0


def nothing_there(flag: str) -> Refusal:
    return Refusal(f"{flag} means nothing at a site; --here is for this machine's installation")
