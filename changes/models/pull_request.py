"""`PullRequest`: the draft on GitHub that an accepted change is to become, and how far it came."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db import models
from django.db.models import Q

from changes.models.change import Change
from runs import clock


class PullRequestState(models.TextChoices):
    WANTED = "wanted"  # the branch is here, and not known to be there
    PUSHED = "pushed"
    ASKED = "asked"  # it was asked for; whether it was made is not known until somebody looks
    OPENED = "opened"


# from which states each is reached; nothing else ever writes a state
STEPS: dict[str, tuple[str, ...]] = {
    PullRequestState.PUSHED: (PullRequestState.WANTED, PullRequestState.ASKED),
    PullRequestState.ASKED: (PullRequestState.PUSHED, PullRequestState.ASKED),
    PullRequestState.OPENED: (PullRequestState.PUSHED, PullRequestState.ASKED),
}


class PullRequestQuerySet(models.QuerySet["PullRequest"]):
    """Every step is one conditional UPDATE; the number of rows says who won."""

    def step(self, pk: int, to: str, **facts: Any) -> bool:
        found = self.filter(pk=pk, state__in=STEPS[to])
        return bool(found.update(state=to, state_at=clock.now(), trouble="", **facts))

    def stopped(self, pk: int, why: str) -> None:
        """It did not get further now: a person sees why, and tries again."""
        open_ = self.filter(pk=pk).exclude(state=PullRequestState.OPENED)
        open_.update(trouble=why[:2000], state_at=clock.now())


class PullRequest(models.Model):
    """Where an accepted change was to be proposed, in which words, and whether it was.

    wanted -> pushed -> asked -> opened; asked goes back to pushed where GitHub said no.
    """

    State = PullRequestState

    change = models.OneToOneField(Change, on_delete=models.PROTECT, related_name="pull_request")
    site = models.CharField(max_length=300)  # as https://github.com
    where = models.CharField(max_length=210)  # owner/name
    into = models.CharField(max_length=300)  # the branch it is proposed for
    head = models.CharField(max_length=1000)  # the branch that was pushed
    title = models.CharField(max_length=300)
    body = models.TextField()
    created_at = models.DateTimeField(default=clock.now)

    state = models.CharField(
        max_length=6, choices=PullRequestState, default=PullRequestState.WANTED
    )
    state_at = models.DateTimeField(default=clock.now)
    trouble = models.TextField(blank=True)  # why it did not get further, the last time
    number = models.PositiveIntegerField(default=0)

    objects = PullRequestQuerySet.as_manager()

    class Meta:
        ordering: ClassVar[list[str]] = ["-created_at", "-pk"]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.CheckConstraint(
                name="pullrequest_opened_has_number",
                condition=Q(state="opened", number__gte=1) | (~Q(state="opened") & Q(number=0)),
            ),
        ]

    def __str__(self) -> str:
        return f"pull request of change {self.change_id}"

    @property
    def is_unfinished(self) -> bool:
        """Whether there is still something to do for it."""
        return bool(self.state != PullRequestState.OPENED)

    @property
    def url(self) -> str:
        """Where people read it: the site's own address and a number; "" before it is there."""
        return f"{self.site}/{self.where}/pull/{self.number}" if self.number else ""
