"""What monitors may ask without signing in, and that they learn nothing else."""

from __future__ import annotations

import datetime as dt
import json
import os

import pytest
from django.db import DatabaseError

from runs import clock, pulse
from runs.engines.base import EngineError
from sanduk_site import health, whereabouts

pytestmark = pytest.mark.django_db


@pytest.fixture
def all_well(settings, tmp_path, monkeypatch):
    """A state directory whose worker lives, and an engine that answers."""
    settings.SANDUK_HOME = tmp_path
    pulse.stamp("worker")
    engine = Engine()
    monkeypatch.setattr(health, "get_engine", lambda name: engine)
    health._engine.forget()
    yield engine
    health._engine.forget()


class Engine:
    def __init__(self) -> None:
        self.asked, self.trouble = 0, ""

    async def ready(self) -> None:
        self.asked += 1
        if self.trouble:
            raise EngineError(self.trouble)


def test_whether_it_answers_is_asked_without_a_database(client, django_assert_num_queries):
    with django_assert_num_queries(0):
        answer = client.get("/healthz")

    assert (answer.status_code, answer.json()) == (200, {"ok": True})
    assert "no-store" in answer["Cache-Control"]


def test_it_is_ready_when_all_it_needs_is_there(client, all_well):
    answer = client.get("/readyz")

    wanted = {"database": "ok", "migrations": "ok", "worker": "ok", "engine": "ok"}
    assert (answer.status_code, answer.json()) == (200, {"ready": True, **wanted})


def test_while_it_stops_it_answers_and_is_not_ready(client, all_well, monkeypatch):
    monkeypatch.setattr("os.getppid", os.getpid)  # the site's process is the keeper's child
    whereabouts.write_down("http://127.0.0.1:8000")
    assert client.get("/readyz").status_code == 200
    whereabouts.say_stopping()

    answer = client.get("/readyz")

    assert (answer.status_code, answer.json()["worker"]) == (503, "stopping")
    assert answer.json()["ready"] is False
    assert client.get("/healthz").status_code == 200


def test_what_another_keeper_left_behind_does_not_count(client, all_well, settings):
    record = {"pid": 2**22 + 1, "url": "http://x", "stopping": True}
    (settings.SANDUK_HOME / "up.json").write_text(json.dumps(record))
    assert client.get("/readyz").status_code == 200


def test_a_worker_that_was_never_there_or_stopped_is_named(client, all_well, settings):
    (settings.SANDUK_HOME / "pulse" / "worker").unlink()
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["worker"]) == (503, "never seen")

    long_ago = clock.now() - dt.timedelta(minutes=10)
    (settings.SANDUK_HOME / "pulse" / "worker").write_text(long_ago.isoformat())
    assert client.get("/readyz").json()["worker"] == "stopped"


def test_an_engine_that_does_not_answer_is_named_without_its_words(client, all_well):
    all_well.trouble = "cannot connect to /home/anna/docker.sock, token=canary"

    answer = client.get("/readyz")

    assert (answer.status_code, answer.json()["engine"]) == (503, "unreachable")
    assert b"canary" not in answer.content
    assert b"anna" not in answer.content


def test_the_engine_is_asked_once_however_often_monitors_ask(client, all_well):
    for _ in range(5):
        client.get("/readyz")

    assert all_well.asked == 1


def test_a_database_that_is_gone_is_named_and_nothing_of_its_error(client, all_well, monkeypatch):
    def gone(self):
        raise DatabaseError("password=canary")

    monkeypatch.setattr("django.db.backends.base.base.BaseDatabaseWrapper.cursor", gone)

    answer = client.get("/readyz")

    assert (answer.status_code, answer.json()["database"]) == (503, "unreachable")
    assert b"canary" not in answer.content


def test_migrations_that_are_missing_are_named(client, all_well, monkeypatch):
    health._migrated.clear()
    monkeypatch.setattr(health.MigrationExecutor, "migration_plan", lambda self, targets: ["one"])
    assert client.get("/readyz").json()["migrations"] == "pending"

    monkeypatch.undo()
    health._migrated.clear()


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_monitors_may_only_look(client, path):
    assert client.post(path).status_code == 405
