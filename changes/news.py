"""Of which changes people are told by e-mail: that they wait, failed, or whose tests are not green.

A repository is named by its id: no directory's name, and nothing an agent wrote, is told.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db.models import Exists, F, OuterRef

from changes import awaiting
from changes.models import Change, TestRun
from runs.models import Run
from runs.news import Asked, News

_NOT_GREEN = (TestRun.Outcome.FAILED, TestRun.Outcome.TIMED_OUT, TestRun.Outcome.NOT_RUN)
_IN_REVIEW, _OVER = "/changes/", "/changes/?show=nothing"


def of(asked: Asked) -> Iterator[News]:
    """What `runs.news` asks for."""
    if asked.of_waiting:
        yield _waiting(asked)
        yield _skills(asked)
    if asked.of_troubles and asked.user.has_perm("changes.view_change"):
        failed = _came(asked, Change.objects.filter(state=Change.State.FAILED))
        yield News(_names(_failed(failed)), "change failed", "changes failed", _OVER)
        back = _came(asked, Change.objects.filter(state=Change.State.REVIEW)).exclude(reason="")
        one, many = "change is in review again", "changes are in review again"
        yield News(_names(_failed(back)), one, many, _IN_REVIEW)
        yield _tests(asked)


def _waiting(asked: Asked) -> News:
    """Those that came before a person, and whose acceptance by this one would count."""
    came = _came(asked, awaiting.open_changes())
    theirs = awaiting.changes_for(asked.user, came)
    names = _names(Change.objects.filter(pk__in=theirs))
    return News(names, "change waits for a decision", "changes wait for a decision", _IN_REVIEW)


def _skills(asked: Asked) -> News:
    new = awaiting.open_skills().filter(created_at__gt=asked.after, created_at__lte=asked.until)
    names = _names(new) if asked.user.has_perm("changes.decide_skill") else ()
    one, many = "skill waits for a decision", "skills wait for a decision"
    return News(names, one, many, "/changes/skills/")


def _tests(asked: Asked) -> News:
    """Waiting changes whose tests ended without a green on what is to be decided on."""
    green = TestRun.objects.filter(
        digest=OuterRef("digest"), command=OuterRef("command"), outcome=TestRun.Outcome.PASSED,
        ended_at__gte=OuterRef("ended_at"),
    )  # fmt: skip
    red = TestRun.objects.filter(
        ~Exists(green),
        outcome__in=_NOT_GREEN,
        ended_at__gt=asked.after,
        ended_at__lte=asked.until,
        attempt__change__state=Change.State.REVIEW,
        attempt__change__attempt=F("attempt"),
    )
    changes = Change.objects.filter(pk__in=red.values("attempt__change"))
    one, many = "change has tests that are not green", "changes have tests that are not green"
    return News(_names(changes), one, many, _IN_REVIEW)


def _came(asked: Asked, found: Any) -> Any:
    """Of these, those that came to the state they are in since this person was last told."""
    return found.filter(state_at__gt=asked.after, state_at__lte=asked.until)


def _failed(found: Any) -> Any:
    """Without those that a person ended."""
    by_a_person = Run.Outcome.CANCELLED
    return found.exclude(reason__startswith="cancelled").exclude(run__outcome=by_a_person)


def _names(found: Any) -> tuple[str, ...]:
    return tuple(found.order_by().values_list("repository__uid", flat=True))
