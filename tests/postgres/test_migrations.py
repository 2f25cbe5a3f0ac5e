"""The tables on PostgreSQL: made from nothing, brought on from an older version, and complete."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.databases import fresh_database, postgres
from tests.processes import ROOT, environment

__all__ = ["postgres"]

# what an older version wrote: its events have no chain yet
OLDER = """
import django; django.setup()
from django.core.management import call_command
from django.db import connection
from django.db.models.signals import post_migrate
listening, post_migrate.receivers = post_migrate.receivers, []
call_command("migrate", "auth", verbosity=0)
call_command("migrate", "runs", "0004", verbosity=0)
post_migrate.receivers = listening
post_migrate.sender_receivers_cache.clear()
with connection.cursor() as cursor:
    cursor.execute("INSERT INTO auth_user (password, is_superuser, username, first_name, "
                   "last_name, email, is_staff, is_active, date_joined) VALUES "
                   "('', false, 'ada', '', '', '', false, true, now()) RETURNING id")
    user = cursor.fetchone()[0]
    for second in (2, 1):
        cursor.execute("INSERT INTO runs_auditevent (at, actor_id, account, action, subject, "
                       "detail) VALUES (%s, %s, '', 'run.stop', '', %s)",
                       [f"2026-01-01 00:00:0{second}+00", user, '{"n": %d}' % second])
call_command("migrate", verbosity=0)
from runs import audit
from runs.models import AuditEvent
audit.record("run.stop")
assert [e.detail.get("n") for e in AuditEvent.objects.order_by("number")] == [1, 2, None]
print(audit.verify())
"""


@pytest.fixture
def url(postgres: str) -> Iterator[str]:
    with fresh_database(postgres) as found:
        yield found


def run(place: Path, url: str, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, *words],
        cwd=ROOT, env=environment(place / "state", url),
        capture_output=True, text=True, check=False, timeout=200,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_an_empty_database_becomes_one_of_this_version(tmp_path: Path, url: str) -> None:
    assert "Applying assistants.0001_initial... OK" in run(tmp_path, url, "manage.py", "migrate")
    assert "No migrations to apply" in run(tmp_path, url, "manage.py", "migrate")
    run(tmp_path, url, "manage.py", "migrate", "--check")
    checked = run(tmp_path, url, "manage.py", "makemigrations", "--check", "--dry-run")
    assert checked.strip() == "No changes detected"
    assert "no issues" in run(tmp_path, url, "manage.py", "check", "--database", "default")


def test_the_first_command_makes_the_tables(tmp_path: Path, url: str) -> None:
    run(tmp_path, url, "-m", "sanduk_site", "runs")

    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT count(*) FROM runs_run").fetchone()
    assert row == (0,)
    assert not list((tmp_path / "state").glob("*.sqlite3"))


def test_every_rule_of_the_models_is_one_of_the_database(tmp_path: Path, url: str) -> None:
    run(tmp_path, url, "manage.py", "migrate")
    script = (
        "import django; django.setup()\n"
        "from django.apps import apps\n"
        "for model in apps.get_models():\n"
        "    for rule in (*model._meta.constraints, *model._meta.indexes): print(rule.name)\n"
    )
    wanted = set(run(tmp_path, url, "-c", script).split())

    with psycopg.connect(url) as connection:
        names = "SELECT conname FROM pg_constraint UNION SELECT indexname FROM pg_indexes"
        there = {name for (name,) in connection.execute(names)}
    assert {"run_one_live_per_workspace", "wakeup_once_per_slot", "outbox_decided_when"} <= wanted
    assert wanted <= there


def test_an_older_database_gets_its_chain(tmp_path: Path, url: str) -> None:
    said = run(tmp_path, url, "-c", OLDER)

    assert "Verified(events=3, troubles=(), unwitnessed=0)" in said
