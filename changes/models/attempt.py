"""What an agent brought back, what was seen in it, and the files it left beside it."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q

from changes.models.change import Change, new_uid
from runs import clock
from runs.models import Run
from runs.models.decisions import AppendOnly


class Attempt(AppendOnly):
    """One result of one run, exactly. A revision is a new one; none is ever altered.

    `digest` is what a decision is bound to: base, tree, patch and, where the agent's commits are
    kept, each of them (`changes.patches.digest_of`).
    """

    change = models.ForeignKey(Change, on_delete=models.PROTECT, related_name="attempts")
    number = models.PositiveIntegerField()  # 1, 2, 3
    task = models.TextField()  # what this one was asked for
    run = models.ForeignKey(
        Run, null=True, blank=True, on_delete=models.PROTECT, related_name="attempts"
    )
    agent = models.CharField(max_length=200, blank=True)
    model = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField(default=clock.now)

    base_commit = models.CharField(max_length=64)
    base_tree = models.CharField(max_length=64)
    tree = models.CharField(max_length=64)
    digest = models.CharField(max_length=64)
    patch_bytes = models.BigIntegerField(default=0)
    files = models.PositiveIntegerField(default=0)
    added_lines = models.PositiveBigIntegerField(default=0)
    deleted_lines = models.PositiveBigIntegerField(default=0)

    # what lands as a series, the oldest first; empty where it lands as one commit. Each is what
    # changes.series_risks says of it; the message is the agent's, "" for what it did not commit
    commits = models.JSONField(default=list)
    commits_note = models.TextField(blank=True)  # such as why it lands as one commit after all

    # paths as changes.own_paths spells them
    ignored_created = models.JSONField(default=list)  # left out: the base's ignore rules name them
    refused = models.JSONField(default=list)  # left out, each with its reason
    could_not_check = models.JSONField(default=list)
    lines_scanned = models.PositiveBigIntegerField(default=0)
    results = models.JSONField(default=dict)  # the agent's own account: commentary, hostile

    class Meta:
        ordering: ClassVar[list[str]] = ["change", "number"]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(name="attempt_order", fields=["change", "number"]),
            models.CheckConstraint(
                name="attempt_is_complete",
                condition=~Q(base_commit="") & ~Q(base_tree="") & ~Q(tree="") & ~Q(digest=""),
            ),
            models.CheckConstraint(name="attempt_counts_from_one", condition=Q(number__gte=1)),
            models.CheckConstraint(
                name="attempt_changes_something", condition=~Q(tree=models.F("base_tree"))
            ),
        ]

    def __str__(self) -> str:
        return f"attempt {self.number} of change {self.change_id}"

    @property
    def series(self) -> list[tuple[str, str]]:
        """Tree and message of each commit that lands as one of a series."""
        return [(each["tree"], each["message"]) for each in self.commits]

    def trees_of(self, commit: int) -> tuple[str, str] | None:
        """The trees before and after one commit of the series, from 1; None when there is none."""
        trees = [self.base_tree, *(tree for tree, _ in self.series)]
        return (trees[commit - 1], trees[commit]) if 1 <= commit < len(trees) else None


class RiskFlag(AppendOnly):
    """One thing to look at before deciding. It holds no value of a secret."""

    class Severity(models.TextChoices):
        HIGH = "high"
        MEDIUM = "medium"
        LOW = "low"

    attempt = models.ForeignKey(Attempt, on_delete=models.PROTECT, related_name="flags")
    category = models.CharField(max_length=40)
    severity = models.CharField(max_length=6, choices=Severity)
    path = models.TextField(blank=True)  # as changes.own_paths spells it; "" for the whole change
    line = models.PositiveIntegerField(default=0)  # in the result; 0: the file as a whole
    # which of a series shows it, in whose files the line is; 0: the change as a whole
    commit = models.PositiveIntegerField(default=0)
    reason = models.TextField()
    needs_second_person = models.BooleanField(default=False)

    class Meta:
        ordering: ClassVar[list[str]] = ["pk"]  # as they were found: the gravest first
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.CheckConstraint(
                name="riskflag_severity", condition=Q(severity__in=["high", "medium", "low"])
            )
        ]

    def __str__(self) -> str:
        return f"{self.category} in {self.path or 'the change'}"


class Artifact(AppendOnly):
    """A file the agent left for a person to look at: its name and its content are hostile.

    The content is kept under `uid`, never under its name.
    """

    attempt = models.ForeignKey(Attempt, on_delete=models.PROTECT, related_name="artifacts")
    uid = models.CharField(max_length=12, unique=True, default=new_uid, editable=False)
    name = models.CharField(max_length=255)
    size = models.PositiveBigIntegerField()
    sha256 = models.CharField(max_length=64)
    refused = models.CharField(max_length=300, blank=True)  # why it was not kept; "": it was

    class Meta:
        ordering: ClassVar[list[str]] = ["attempt", "name"]

    def __str__(self) -> str:
        return f"artifact {self.uid}"
