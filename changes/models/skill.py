"""`Skill`: one version of what an agent wrote down for those that come after it."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db import models
from django.db.models import Q

from changes.models.attempt import Attempt
from changes.models.repository import Repository
from runs import clock


class SkillQuerySet(models.QuerySet["Skill"]):
    """proposed -> approved | rejected; approved -> revoked, or replaced by a later version."""

    def step(self, pk: int, source: str, to: str, **facts: Any) -> bool:
        """False when it is not (any more) in `source`."""
        if to not in Skill.STEPS[source]:
            raise ValueError(f"a skill never goes from {source} to {to}")
        found = self.filter(pk=pk, state=source)
        return bool(found.update(state=to, state_at=clock.now(), **facts))

    def in_force(self, repository: Repository) -> SkillQuerySet:
        """What every later run on the repository is given."""
        return self.filter(repository=repository, state=Skill.State.APPROVED).order_by("name")


class Skill(models.Model):
    """One version of one skill. Its text never changes; it is given to nobody unless approved."""

    class State(models.TextChoices):
        PROPOSED = "proposed"
        APPROVED = "approved"
        REJECTED = "rejected"
        REVOKED = "revoked"
        REPLACED = "replaced"

    STEPS: ClassVar[dict[str, tuple[str, ...]]] = {
        "proposed": ("approved", "rejected"),
        "approved": ("revoked", "replaced"),
    }

    repository = models.ForeignKey(Repository, on_delete=models.PROTECT, related_name="skills")
    attempt = models.ForeignKey(Attempt, on_delete=models.PROTECT, related_name="skills")
    name = models.CharField(max_length=64)
    version = models.PositiveIntegerField()  # 1, 2, 3 of this name in this repository
    description = models.CharField(max_length=500, blank=True)  # hostile
    body = models.TextField()  # the whole file, hostile
    sha256 = models.CharField(max_length=64)
    found = models.JSONField(default=list)  # what to look at in it, a sentence each
    could_not_check = models.JSONField(default=list)
    created_at = models.DateTimeField(default=clock.now)
    state = models.CharField(max_length=8, choices=State, default=State.PROPOSED)
    state_at = models.DateTimeField(default=clock.now)
    decided_by = models.CharField(max_length=300, blank=True)
    reason = models.TextField(blank=True)

    objects = SkillQuerySet.as_manager()

    class Meta:
        ordering: ClassVar[list[str]] = ["repository", "name", "version"]
        permissions = [("decide_skill", "Can approve and revoke what agents wrote for later runs")]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(name="skill_version", fields=["repository", "name", "version"]),
            models.UniqueConstraint(
                name="skill_one_in_force",
                fields=["repository", "name"],
                condition=Q(state="approved"),
            ),
            models.UniqueConstraint(name="skill_once_per_attempt", fields=["attempt", "name"]),
        ]

    def __str__(self) -> str:
        return f"{self.name} {self.version}"
