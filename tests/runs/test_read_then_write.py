"""A transaction that reads and then writes, in two processes at once, on SQLite."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import OperationalError, connection, connections, transaction

from runs.models import Run
from tests.factories import make_run

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor != "sqlite", reason="these are the locks of SQLite"),
]
WRITERS = 2


def add_one(pk: int, start: threading.Barrier, mode: str) -> str:
    """Count on from what was read; what the database said against it."""
    try:
        connection.ensure_connection()
        assert connection.transaction_mode == "IMMEDIATE"
        connection.transaction_mode = mode
        start.wait(10)
        with transaction.atomic():
            seen = Run.objects.get(pk=pk).spent_tokens
            time.sleep(0.05)  # the other one reads meanwhile, if it may
            Run.objects.filter(pk=pk).update(spent_tokens=seen + 1)
    except OperationalError as exc:
        return str(exc)
    finally:
        connections.close_all()
    return ""


def told(mode: str) -> tuple[list[str], int]:
    """What each writer heard, and the sum."""
    pk, start = make_run().pk, threading.Barrier(WRITERS)
    with ThreadPoolExecutor(WRITERS) as pool:
        heard = list(pool.map(add_one, [pk] * WRITERS, [start] * WRITERS, [mode] * WRITERS))
    return heard, Run.objects.get(pk=pk).spent_tokens


def test_who_reads_before_writing_waits_for_the_other_and_loses_nothing():
    assert told("IMMEDIATE") == ([""] * WRITERS, WRITERS)


def test_in_the_usual_mode_of_sqlite_one_of_them_is_refused_at_once():
    """What the setting is there for: no time-out helps against that."""
    since = time.monotonic()
    heard, total = told("DEFERRED")

    assert sorted(heard) == ["", "database is locked"]
    assert total == 1
    assert time.monotonic() - since < 10
