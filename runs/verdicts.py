"""One person's verdict on one exact content: who they are, what they read, and that it is kept."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db import IntegrityError, transaction

from runs import audit
from runs.models import Decision
from runs.refusal import Refusal

POLICY = "policy"
REASON_MAX = 20_000  # characters
DIGEST_MIN = 12  # characters of `--expect`: enough that none can be made up to fit


@dataclass(frozen=True, slots=True)
class Person:
    """Who decides: a site user, or an OS account at a terminal that may be mapped to one."""

    user: Any = None
    account: str = ""
    via: str = "terminal"

    @property
    def name(self) -> str:
        return self.user.get_username() if self.user is not None else self.account

    @property
    def user_id(self) -> int | None:
        return self.user.pk if self.user is not None else None


def is_expected(digest: str, expect: str) -> bool:
    """Whether `expect`, the beginning of a digest, names this one."""
    return len(expect) >= DIGEST_MIN and digest.startswith(expect.lower())


def check_expected(digest: str, expect: str | None, *, what: str, again: str = "") -> None:
    """Refuse what is not what a person read.

    Args:
        expect: the beginning of the digest of what was read; None when it was not given.
        again: how to read it again, as a command.

    Raises Refusal.
    """
    if expect is None or is_expected(digest, expect):
        return
    if expect and digest.startswith(expect.lower()):
        raise Refusal(
            f"--expect {expect} is too short: it takes the first {DIGEST_MIN} characters of the "
            f"digest, or more, and this is {len(expect)}"
        )
    how = f": {again}" if again else ""
    raise Refusal(f"{what} has the digest {digest}, not {expect}; read it again{how}")


def write_down(
    subject: str,
    digest: str,
    verdict: Decision.Verdict,
    person: Person,
    reason: str,
    *,
    what: str,
    **detail: Any,
) -> Decision:
    """Keep a decision, and say so in the audit as "outbox.approve", by the subject's kind.

    Args:
        what: the content in words, for the refusal.
        detail: what the audit keeps beside the digest and the reason.

    Raises Refusal: this person has decided on this content before, or the reason is no text that
    can be kept.
    """
    check_reason(reason)
    theirs = {"actor": person.user, "account": "" if person.user is not None else person.account}
    given = {"subject": subject, "digest": digest}
    again = Refusal(f"{person.name} has decided on {what} already")
    if Decision.objects.filter(**given, **theirs).exists():
        raise again
    try:
        with transaction.atomic():
            kept: Decision = Decision.objects.create(
                **given, **theirs, verdict=verdict, reason=reason, via=person.via
            )
    except IntegrityError:
        raise again from None
    record = audit.record_policy if person.via == POLICY else audit.record
    who = {"actor": person.user} if person.user is not None else {}
    action = f"{subject.partition(':')[0]}.{verdict}"
    record(action, subject, **who, sha256=digest, reason=reason, **detail)
    return kept


def check_reason(reason: str) -> None:
    """Raise Refusal for one that is too long, or holds what no database keeps."""
    if len(reason) > REASON_MAX:
        raise Refusal(f"the reason has {len(reason):,} characters; at most {REASON_MAX:,} fit")
    if "\0" in reason or any("\ud800" <= char <= "\udfff" for char in reason):
        raise Refusal("the reason holds what is no text")


def approvers(decisions: Iterable[Decision], digest: str) -> dict[Any, str]:
    """The people whose approvals of this content are there, with their names."""
    return {
        each.actor_id or each.account: each.actor.get_username() if each.actor else each.account
        for each in decisions
        if each.digest == digest and each.verdict == Decision.Verdict.APPROVE
    }
