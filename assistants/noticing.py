"""E-mails to people: so many items wait for you, so many things need a look, and where.

What other apps have to tell, such as changes that wait, goes along: `runs.news` asks them.

A state of the host, such as a disk that is almost full, is told of when it begins, and not again.

What an agent wrote is in none of them. A notice is marked before it is sent: at most once.
"""

from __future__ import annotations

import datetime as dt
import logging
from collections import Counter
from collections.abc import Iterable
from typing import Any

from django.conf import settings
from django.core.mail import send_mail
from django.db import transaction

from assistants.models import Assistant, Delivery, Notice, OutboxItem
from runs import audit, clock, host_states, news, pulse
from runs.models import Run
from runs.sight import seen_by

APART = dt.timedelta(minutes=5)  # what comes meanwhile is told of together
SETTLED = dt.timedelta(seconds=10)  # what was written before then can be seen by now
NAMED = 20  # assistants in one e-mail
_BAD = (Delivery.State.UNKNOWN, Delivery.State.GIVEN_UP)
_log = logging.getLogger(__name__)


def choose(user: Any, *, of_items: bool, of_troubles: bool) -> None:
    """Tell a person of these from now on."""
    with transaction.atomic():
        Notice.objects.update_or_create(
            user=user,
            defaults={
                "of_items": of_items, "of_troubles": of_troubles, "looked_at": clock.now()
            },
        )  # fmt: skip
        subject = f"user:{user.get_username()}"[:100]
        audit.record("notice.choose", subject, actor=user, items=of_items, troubles=of_troubles)


def send_due() -> int:
    """Tell everybody who wants it of what is new; how many were told."""
    if not settings.SANDUK_SENDS_MAIL:
        return 0
    told, now, host = 0, clock.now() - SETTLED, _of_the_host()
    rows = Notice.objects.wanted().filter(looked_at__lte=now - APART).select_related("user")
    for notice in rows:
        lines = [*_items(notice, now), *_troubles(notice, now), *_interrupted(notice, now)]
        lines += [*_of_others(notice, now), *_host(notice, now, host)]
        if lines and Notice.objects.claim(notice, looked_at=now):
            told += _sent(notice.user, lines)
    return told


def _items(notice: Notice, now: dt.datetime) -> list[str]:
    """New items that wait and that this person may decide on."""
    user = notice.user
    if not notice.of_items or not user.has_perm("assistants.decide_outboxitem"):
        return []
    new = OutboxItem.objects.filter(
        seen_by(user, "assistant"),
        state=OutboxItem.State.PENDING,
        created_at__gt=notice.looked_at,
        created_at__lte=now,
    ).exclude(expires_at__lte=now)
    names = new.values_list("assistant__name", flat=True)
    return _counted(names, "item waits for a decision", "items wait for a decision", "/outbox/")


def _troubles(notice: Notice, now: dt.datetime) -> list[str]:
    """What stopped by itself since, among what this person sees."""
    user = notice.user
    if not notice.of_troubles or not user.has_perm("assistants.view_assistant"):
        return []
    since = (notice.looked_at, now)
    off = Assistant.objects.present().filter(seen_by(user), disabled_at__range=since)
    bad = Delivery.objects.filter(
        seen_by(user, "item__assistant"), state__in=_BAD, ended_at__range=since
    )
    names = [
        *off.values_list("name", flat=True),
        *bad.values_list("item__assistant__name", flat=True),
    ]
    return _counted(names, "thing needs a look", "things need a look", "/")


def _interrupted(notice: Notice, now: dt.datetime) -> list[str]:
    """Runs that the host cut since, among those this person sees."""
    user = notice.user
    if not notice.of_troubles or not user.has_perm("runs.view_run"):
        return []
    cut = Run.objects.filter(
        seen_by(user, "wakeup__assistant"),
        outcome=Run.Outcome.INTERRUPTED,
        ended_at__gt=notice.looked_at,
        ended_at__lte=now,
    )
    names = (
        name or "of no assistant" for name in cut.values_list("wakeup__assistant__name", flat=True)
    )
    return _counted(names, "run was interrupted", "runs were interrupted", "/")


def _of_others(notice: Notice, now: dt.datetime) -> list[str]:
    asked = news.Asked(
        notice.user, notice.of_items, notice.of_troubles, after=notice.looked_at, until=now
    )
    told = news.of(asked)
    return [line for each in told for line in _counted(each.names, each.one, each.many, each.page)]


Host = list[tuple[dt.datetime | None, str, str]]


def _of_the_host() -> Host:
    """What is wrong with it now: since when, in a few words, and with a figure."""
    away = host_states.worker_away_since()
    seen = pulse.seen_at("worker")
    least = settings.SANDUK_MIN_FREE_MB
    return [
        (
            host_states.little_room_since(),
            "little room is left on the disk",
            f"{host_states.free_mb():,} MB are free; runs are refused below {least:,} MB",
        ),
        (
            away,
            "the worker is away",
            f"it was last at work {seen:%Y-%m-%d %H:%M} UTC; nobody is woken" if seen else "",
        ),
    ]


def _host(notice: Notice, now: dt.datetime, host: Host) -> list[str]:
    """What began since this person was last told of anything."""
    if not notice.of_troubles or not notice.user.has_perm("runs.view_run"):
        return []
    lines = []
    for since, words, figure in host:
        if since is not None and notice.looked_at < since <= now:
            lines += [f"{words}: {settings.SANDUK_BASE_URL}/system/", f"  {figure}"]
    return lines


def _counted(names: Iterable[str], one: str, many: str, page: str) -> list[str]:
    found = Counter(names)
    if not found:
        return []
    number = found.total()
    lines = [f"{number} {one if number == 1 else many}: {settings.SANDUK_BASE_URL}{page}"]
    return lines + [f"  {name}: {times}" for name, times in sorted(found.items())[:NAMED]]


def _sent(user: Any, lines: list[str]) -> bool:
    heads = [line.partition(":")[0] for line in lines if not line.startswith(" ")]
    subject = f"user:{user.get_username()}"[:100]
    try:
        send_mail(f"sanduk: {', '.join(heads)}", "\n".join(lines) + "\n", None, [user.email])
    except (OSError, ValueError) as exc:  # every error of smtplib is an OSError
        why = type(exc).__name__  # its text may hold what the server was told
        _log.warning("a notice did not reach %s: %s", user.get_username(), why)
        audit.record_policy("notice.failed", subject, why=why)
        return False
    audit.record_policy("notice.send", subject)
    return True
