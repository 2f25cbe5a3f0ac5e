"""What ends with a wakeup is audited with it: a process that ends right behind loses neither."""

from __future__ import annotations

import pytest

from assistants import wakeups
from assistants.models import Assistant
from runs.models import AuditEvent
from tests.assistants.waking import assistant_in, memory, runs, woken
from tests.runs.conftest import state

__all__ = ["memory", "runs", "state"]
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("memory")]


def test_a_disabling_is_never_without_its_entry_in_the_audit(tmp_path, runs, monkeypatch):
    one = assistant_in(tmp_path, max_failures=1)
    runs.ends = {"outcome": "failed", "reason": "no idea"}

    def killed(*_: object) -> str:
        raise SystemExit(137)

    monkeypatch.setattr(wakeups, "_told", killed)
    with pytest.raises(SystemExit):
        woken(one)

    reason = Assistant.objects.get(pk=one.pk).disabled_reason
    event = AuditEvent.objects.get(action="assistant.disable")
    assert event.detail["reason"] == reason == "it failed; the last: no idea"
