"""Audit events follow each other by hash, and the last hash is kept outside the database."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection, connections, transaction

from runs import audit, audit_head
from runs.management.commands import sanduk_audit
from runs.models import AuditEvent

pytestmark = pytest.mark.django_db(transaction=True)


def three() -> None:
    for number in range(3):
        audit.record("run.stop", f"run:{number}", step=number, odd={2: 1.5, 10: "ü"})


def sql(statement: str, *values) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)


def test_an_untouched_record_stands_and_its_head_is_outside(state):
    three()

    found = audit.verify()
    last = AuditEvent.objects.order_by("-number")[0]
    assert (found.events, found.troubles, found.unwitnessed) == (3, (), 0)
    assert (state / "audit-head").read_text() == f"3 {last.sha256}\n"
    assert (state / "audit-head").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "column", ["account", "action", "subject", "detail", "at", "previous", "sha256"]
)
def test_a_change_of_any_field_shows(column):
    three()
    value = {"detail": '{"step": 7}', "at": "2026-01-01 00:00:00"}.get(column, "mallory")
    sql(f"UPDATE runs_auditevent SET {column} = %s WHERE number = 2", value)  # noqa: S608

    assert audit.verify().troubles


def test_an_event_left_out_shows():
    three()
    sql("DELETE FROM runs_auditevent WHERE number = 2")

    assert "events 2 to 2 are missing" in audit.verify().troubles


def test_a_cut_end_shows_and_still_shows_after_more_events():
    three()
    sql("DELETE FROM runs_auditevent WHERE number >= 2")

    assert audit.verify().troubles == ("the end was cut: there were 3 events, there are 1",)
    for _ in range(4):
        audit.record("run.stop")
    assert audit.verify().troubles == (
        "the end was replaced: event 3 is not the one that was kept",
    )


def test_a_whole_new_chain_shows():
    three()
    sql("DELETE FROM runs_auditevent")
    three()

    assert any("replaced" in trouble for trouble in audit.verify().troubles)


@pytest.mark.parametrize("content", ["", "three\n", "3"])
def test_a_damaged_or_missing_head_is_no_all_clear(state, content):
    three()
    (state / "audit-head").write_text(content)
    audit.record("run.stop")

    assert any("not known" in trouble for trouble in audit.verify().troubles)
    (state / "audit-head").unlink()
    assert any("missing" in trouble for trouble in audit.verify().troubles)


def test_what_is_rolled_back_leaves_no_head(state):
    three()
    with transaction.atomic():
        audit.record("run.stop")
        transaction.set_rollback(True)

    assert audit.verify().troubles == ()
    audit.record("run.stop")
    assert audit.verify().troubles == ()
    assert audit_head.kept().number == 4


def test_many_at_once_make_one_chain():
    def append(number: int) -> None:
        audit.record("run.stop", f"run:{number}")
        connections.close_all()

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(append, range(30)))

    found = audit.verify()
    assert (found.events, found.troubles, found.unwitnessed) == (30, (), 0)


def act(*words: str) -> int:
    command = sanduk_audit.Command()
    parser = command.create_parser("sanduk", "sanduk_audit")
    return command.act(**vars(parser.parse_args(list(words))))


def test_the_command_lists_and_verifies(state, capsys):
    three()

    assert act("--json", "--limit", "2") == 0
    assert [event["number"] for event in json.loads(capsys.readouterr().out)] == [2, 3]
    assert act("--verify") == 0
    assert "3 events; the record stands" in capsys.readouterr().out
    sql("DELETE FROM runs_auditevent WHERE number = 3")
    assert act("--verify", "--json") == 1
    assert "the end was cut" in json.loads(capsys.readouterr().out)["troubles"][0]


def test_what_an_event_names_cannot_move_the_cursor(capsys):
    audit.record("run.stop", "run:\x1b[2J")

    act()
    assert "\x1b" not in capsys.readouterr().out


def test_an_older_database_gets_its_chain(tmp_path):
    """Events written before there was a chain are numbered by time, and it stands."""
    script = """
import django; django.setup()
from django.core.management import call_command
from django.db import connection
call_command("migrate", "runs", "0004", verbosity=0)
with connection.cursor() as cursor:
    for second in (2, 1):
        cursor.execute("INSERT INTO runs_auditevent (at, account, action, subject, detail) "
                       "VALUES (%s, 'root', 'run.stop', '', %s)",
                       [f"2026-01-01 00:00:0{second}", '{"n": %d}' % second])
call_command("migrate", verbosity=0)
from runs import audit
from runs.models import AuditEvent
audit.record("run.stop")
assert [e.detail.get("n") for e in AuditEvent.objects.order_by("number")] == [1, 2, None]
print(audit.verify())
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={"SANDUK_HOME": str(tmp_path), "DJANGO_SETTINGS_MODULE": "sanduk_site.settings"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Verified(events=3, troubles=(), unwitnessed=0)" in done.stdout, done.stderr
