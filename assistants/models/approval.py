"""Where a person read that an item goes, when they approved it."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from runs import clock
from runs.models import Decision


class ApprovedPlaces(models.Model):
    """One approval counts for exactly these destinations, as they were set up then.

    A decision has more than one when whoever took it approved again after they were changed.
    """

    decision = models.ForeignKey(Decision, on_delete=models.PROTECT, related_name="+")
    digest = models.CharField(max_length=64)  # assistants.places.digest_of_places
    names = models.JSONField(default=list)
    at = models.DateTimeField(default=clock.now)

    class Meta:
        ordering: ClassVar[list[str]] = ["pk"]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(name="approved_places_once", fields=["decision", "digest"])
        ]

    def __str__(self) -> str:
        return f"places of decision {self.decision_id}"
