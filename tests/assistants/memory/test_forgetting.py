"""What a removed assistant remembered goes after a while, or at once; its directory never does."""

from __future__ import annotations

import datetime as dt
import shutil
from pathlib import Path

import pytest

from assistants import arriving, collaborators
from assistants.memory import forgetting
from assistants.memory.forgetting import KEPT_DAYS
from assistants.models import Assistant, MemorySnapshot
from runs import clock
from runs.models import AuditEvent
from tests.assistants.memory.conftest import wake, workspace

pytestmark = pytest.mark.django_db


def remembers(assistant: Assistant) -> bool:
    rows = MemorySnapshot.objects.filter(assistant=assistant).exists()
    assert rows == forgetting.place_of(assistant).is_dir()
    return rows


def removed(assistant: Assistant, days_ago: float = 0) -> Assistant:
    wake(assistant, lambda place: (place / "notes").write_text("all of it"))
    arriving.remove(assistant)
    at = clock.now() - dt.timedelta(days=days_ago)
    Assistant.objects.filter(pk=assistant.pk).update(removed_at=at)
    return assistant


def test_snapshots_stay_for_the_time_and_then_go_with_whoever_delivers(make):
    young, old = removed(make("young"), KEPT_DAYS - 1), removed(make("old"), KEPT_DAYS + 1)
    awake = make("awake")
    wake(awake)

    collaborators.deliver_due()

    assert [remembers(each) for each in (young, old, awake)] == [True, False, True]
    assert (workspace(old) / "notes").read_text() == "all of it"
    event = AuditEvent.objects.get(action="memory.forget")
    assert (event.account, event.subject) == ("policy", "assistant:old")


def test_what_cannot_be_removed_is_tried_again_and_keeps_nothing_else(make, monkeypatch):
    first, second = removed(make("a"), KEPT_DAYS + 2), removed(make("b"), KEPT_DAYS + 1)
    really = shutil.rmtree

    def stubborn(path: Path, *rest: object) -> None:
        if Path(path) == forgetting.place_of(first):
            raise OSError(16, "Device or resource busy", str(path))
        really(path)

    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", stubborn)
        forgetting.forget_old()
    assert forgetting.place_of(first).is_dir()
    assert not remembers(second)

    forgetting.forget_old()
    assert not remembers(first)


def test_purging_is_of_all_that_were_removed_under_a_name_and_of_no_other(make):
    one, other = removed(make("scout")), removed(make("other"))
    Assistant.objects.filter(pk=other.pk).update(name="scout-2")

    assert forgetting.forget_all("scout") == 1
    assert forgetting.forget_all("scout") == 0
    assert [remembers(each) for each in (one, other)] == [False, True]
