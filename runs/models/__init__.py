"""The records: runs, what happened in them, and who decided what."""

from runs.models.decisions import AuditEvent, Decision
from runs.models.evidence import EgressAttempt, RelayCall, RunEvent
from runs.models.people import TerminalAccount
from runs.models.run import Run
from runs.models.site import SiteSetting

__all__ = [
    "AuditEvent",
    "Decision",
    "EgressAttempt",
    "RelayCall",
    "Run",
    "RunEvent",
    "SiteSetting",
    "TerminalAccount",
]
