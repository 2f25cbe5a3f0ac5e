"""Writing down what people did."""

from __future__ import annotations

import getpass
from typing import Any

from runs.models import AuditEvent


def account() -> str:
    """The OS account this process runs as, "uid N" when it has no name."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        import os

        return f"uid {os.getuid()}"


def record(action: str, subject: str = "", *, actor: Any = None, **detail: Any) -> AuditEvent:
    """Append one audit event. `detail` must hold nothing secret."""
    return AuditEvent.objects.create(
        action=action,
        subject=subject,
        actor=actor,
        account="" if actor else account(),
        detail=detail,
    )
