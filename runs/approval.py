"""Whether something may leave the box: how many people, which people, until when."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from runs.models import Decision

Standing = Literal["pending", "approved", "rejected", "expired"]


@dataclass(frozen=True, slots=True)
class ApprovalPolicy:
    """How a content is decided on.

    Args:
        approvals: how many different people must approve.
        exclude_author: whoever asked for the content, or fed it, cannot count.
        expires_after: an undecided content expires this long after it appeared; None: never.
    """

    approvals: int = 1
    exclude_author: bool = False
    expires_after: dt.timedelta | None = None

    def __post_init__(self) -> None:
        if self.approvals < 1:
            raise ValueError("at least one approval is needed")

    def standing(
        self,
        decisions: Iterable[Decision],
        *,
        digest: str,
        authors: frozenset[int],
        appeared_at: dt.datetime,
        now: dt.datetime,
    ) -> Standing:
        """Where a content stands, given every decision on its subject.

        One rejection of this exact content ends it. An approval counts once per site user, and
        only for the digest it was given for; an OS account mapped to nobody counts as one person
        only where a single approval is asked and authors are not excluded.
        """
        expires_at = appeared_at + self.expires_after if self.expires_after is not None else None
        people: set[int] = set()
        unmapped = False
        for decision in decisions:
            if decision.digest != digest:
                continue
            if expires_at is not None and decision.at >= expires_at:
                continue  # it decided on what had already expired
            if decision.verdict == Decision.Verdict.REJECT:
                return "rejected"
            if decision.actor_id is None:
                unmapped = True
            elif not (self.exclude_author and decision.actor_id in authors):
                people.add(decision.actor_id)
        if len(people) >= self.approvals:
            return "approved"
        if unmapped and self.approvals == 1 and not self.exclude_author:
            return "approved"
        if expires_at is not None and now >= expires_at:
            return "expired"
        return "pending"

    def may_decide(self, *, user_id: int | None, authors: frozenset[int]) -> bool:
        """Whether this person's decision would count; None is an OS account mapped to nobody."""
        if user_id is None:
            return self.approvals == 1 and not self.exclude_author
        return not (self.exclude_author and user_id in authors)
