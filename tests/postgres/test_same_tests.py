"""What holds on SQLite holds on PostgreSQL: the same tests of rows, with the other database."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.databases import fresh_database, postgres
from tests.processes import ROOT

__all__ = ["postgres"]
SAME = [
    "runs/test_append_only.py",
    "runs/test_audit_chain.py",
    "runs/test_heartbeat.py",
    "runs/test_overlap.py",
    "runs/test_recorder.py",
    "runs/test_run_transitions.py",
    "assistants/arriving/test_mailbox.py",
    "assistants/sending/test_gate.py",
    "assistants/sending/test_ledger.py",
    "assistants/test_lending.py",
    "assistants/test_sharing_commands.py",
    "assistants/test_ticking.py",
    "assistants/test_transitions.py",
    "changes/test_artifacts.py",
    "changes/test_awaiting.py",
    "changes/test_gate.py",
    "changes/test_gate_landing.py",
    "changes/test_making_batch.py",
    "changes/test_making_lost.py",
    "changes/test_models.py",
    "changes/test_pending.py",
    "changes/test_skills.py",
    "site/test_live_trace.py",
    "site/test_pages_acting.py",
    "site/test_pages_gate.py",
    "site/test_pages_home.py",
]
PLUGIN = ["-p", "tests.postgres.emptying"]
ONLY_SQLITE = 2  # of them: those about SQLite's own lock


@pytest.fixture
def url(postgres: str) -> Iterator[str]:
    with fresh_database(postgres) as found:
        yield found


@pytest.mark.timeout(900)
def test_the_tests_of_runs_assistants_and_changes_pass_on_postgresql(url: str) -> None:
    files = [f"tests/{name}" for name in SAME]
    # the database that pytest makes there, beside the fresh one, is called after it
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *PLUGIN, *files],
        cwd=ROOT, env={**os.environ, "DATABASE_URL": url, "PYTEST_ADDOPTS": ""},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    print(done.stdout[-20_000:], done.stderr[-5_000:])

    assert done.returncode == 0
    ends = re.findall(r"(\d+) (passed|skipped)", done.stdout)
    counted = {word: int(number) for number, word in ends}
    assert counted["passed"] > 100
    assert counted.get("skipped", 0) <= ONLY_SQLITE
