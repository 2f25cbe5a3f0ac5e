"""The records: runs, what happened in them, and who decided what."""

from runs.models.decisions import AuditEvent, Decision
from runs.models.evidence import RelayCall, RunEvent
from runs.models.run import Run

__all__ = ["AuditEvent", "Decision", "RelayCall", "Run", "RunEvent"]
