"""docs/assistants.md, held to the code."""

from __future__ import annotations

import datetime as dt
import re
import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest

from assistants import assistant_toml, schedules
from assistants.schedules import Timing
from runs import clock

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "assistants.md").read_text()
DST_ROWS = re.findall(r"^\| (\w+/\w+) \| ([\d-]+) \| `([^`]+)` \| (.+) \|$", PAGE, re.MULTILINE)


def test_the_table_of_keys_is_what_the_program_reads():
    command = [sys.executable, str(ROOT / "scripts" / "docs-assistants"), "--check"]
    done = subprocess.run(command, check=False)
    assert done.returncode == 0, "run scripts/docs-assistants and commit docs/assistants.md"


@pytest.mark.parametrize(("zone", "day", "cron", "told"), DST_ROWS)
def test_the_table_of_moved_clocks_is_what_happens(zone, day, cron, told):
    found = Timing(anchor_at=dt.datetime(2026, 1, 1, tzinfo=dt.UTC), cron=cron, timezone=zone)
    midnight = dt.datetime.combine(dt.date.fromisoformat(day), dt.time(), found.zone)
    times = [time for time in told.split(", ") if time != "…"]
    slots = schedules.slots_after(found, midnight.astimezone(dt.UTC) - dt.timedelta(seconds=1))
    local = [slot.astimezone(found.zone) for slot in islice(slots, len(times) + 1)]

    assert [f"{at:%H:%M %z}" for at in local[:-1]] == times
    more_that_day = local[-1].date() == midnight.date()
    assert more_that_day == ("…" in told)


def test_the_table_of_moved_clocks_is_there():
    assert {row[0] for row in DST_ROWS} == {
        "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"
    }  # fmt: skip


def test_its_examples_of_toml_are_read(tmp_path: Path):
    examples = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)

    assert examples
    for text in examples:
        (tmp_path / "assistant.toml").write_text('name = "a"\n' + text)
        assert assistant_toml.read(tmp_path, now=clock.now()).timings


def test_each_kind_of_action_is_shown():
    for action in ("new", "add", "list", "show", "next", "history", "wake", "enable", "disable",
                   "export", "remove"):  # fmt: skip
        assert f"sanduk assistant {action}" in PAGE
