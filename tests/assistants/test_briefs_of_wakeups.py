"""The brief that a wakeup was given is kept, once for each text."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.assistants.waking import assistant_in, memory, runs, woken
from tests.runs.conftest import state

__all__ = ["memory", "runs", "state"]
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("memory")]


def test_the_brief_that_a_wakeup_was_given_is_kept_once(tmp_path, runs):
    one = assistant_in(tmp_path)
    first = woken(one)
    woken(one)
    Path(one.directory, "brief.md").write_text("look elsewhere")
    third = woken(one)

    kept = one.briefs.order_by("pk").values_list("text", "wakeup")
    assert list(kept) == [("look around", first.pk), ("look elsewhere", third.pk)]
