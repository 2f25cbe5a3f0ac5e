"""What `approve` and `reject` share: each item on its own, and one line about it."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

from django.core.management.base import CommandParser

from assistants import outbox, places, showing_items
from assistants.models import OutboxItem
from runs import audit
from runs.management.numbers import whole
from runs.management.terminal import REFUSED, SandukCommand, add_json_flag
from runs.models import Decision
from runs.models.people import user_of
from runs.refusal import Refusal
from runs.verdicts import Person
from runs.visible import visible

# how the same is said of a change, whose ids are no numbers
_OF_A_CHANGE = {
    Decision.Verdict.APPROVE: "sanduk change accept",
    Decision.Verdict.REJECT: "sanduk change reject",
}


def add_decision_flags(parser: CommandParser, verdict: Decision.Verdict, *, reason: str) -> None:
    parser.add_argument("items", nargs="+", type=_item(verdict), metavar="ID")
    parser.add_argument("--expect", metavar="SHA", help="refuse unless the item has this digest")
    parser.add_argument("--reason", default="", metavar="TEXT", help=reason)
    add_json_flag(parser)


def _item(verdict: Decision.Verdict) -> Callable[[str], int]:
    """A reader of an item's number."""
    number = whole()

    def read(text: str) -> int:
        try:
            return number(text)
        except argparse.ArgumentTypeError as exc:
            hint = _hint(verdict, text) if text.isalnum() else ""
            raise argparse.ArgumentTypeError(f"{exc}{hint}") from None

    return read


def _hint(verdict: Decision.Verdict, word: object) -> str:
    return f"; a change is decided on with {_OF_A_CHANGE[verdict]} {word}"


def here() -> Person:
    """Whoever sits at this terminal."""
    account = audit.account()
    return Person(user=user_of(account), account=account)


def decide_each(
    command: SandukCommand,
    verdict: Decision.Verdict,
    items: Sequence[int],
    *,
    expect: str | None,
    reason: str,
    as_json: bool,
) -> int:
    """Decide on each, whatever becomes of the others; 2 when one was refused."""
    if expect is not None and len(items) > 1:
        raise Refusal("--expect is the digest of one item; give one ID with it")
    person, refused, rows = here(), 0, []
    for pk in dict.fromkeys(items):
        try:
            standing = outbox.decide(pk, verdict, person, expect=expect, reason=reason)
        except Refusal as exc:
            refused += 1
            is_there = OutboxItem.objects.filter(pk=pk).exists()
            command.refuse(f"{exc}{'' if is_there else _hint(verdict, pk)}")
            continue
        rows.append(showing_items.as_json(standing.item) | {"missing": standing.missing})
        if not as_json:
            command.print(_told(standing))
    if as_json:
        command.print_json(rows)
    elif refused and len(items) > 1:
        command.say(f"{len(rows)} of {len(items)} were decided on")
    return REFUSED if refused else 0


def _told(standing: outbox.Standing) -> str:
    item = standing.item
    if item.state == OutboxItem.State.PENDING:
        where = visible(", ".join(each.name for each in places.places_of(item))) or "nowhere yet"
        more = f"{standing.missing} more needed"
        return f"item {item.pk}: your approval counts; {more}, and it goes to {where} as set up now"
    if item.state != OutboxItem.State.APPROVED:
        return f"item {item.pk} is {item.state}"
    names = [each.destination.name for each in showing_items.deliveries(item)]
    if not names:
        return f"item {item.pk} is approved; it has no destination: sanduk outbox --deliver CMD"
    return f"item {item.pk} is approved and goes to {visible(', '.join(names))}"
