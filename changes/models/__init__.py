"""The records: repositories, changes, what was tried, what was seen in it, what was kept."""

from changes.models.attempt import Artifact, Attempt, RiskFlag
from changes.models.batch import Batch
from changes.models.change import Change
from changes.models.pull_request import PullRequest
from changes.models.repository import Repository
from changes.models.skill import Skill
from changes.models.testrun import TestRun

__all__ = [
    "Artifact", "Attempt", "Batch", "Change", "PullRequest", "Repository", "RiskFlag", "Skill",
    "TestRun",
]  # fmt: skip
