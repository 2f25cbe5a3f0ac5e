"""A container, and a run, tell which change they belong to."""

from __future__ import annotations

import json

import pytest

from changes.models import Change, TestRun
from runs import purposes
from runs.engines.base import LABEL_ROLE, LABEL_RUN, ContainerRow
from runs.management.commands import sanduk_ps, sanduk_show
from tests.changes.rows import make_attempt, make_change, reviewed
from tests.factories import make_run

pytestmark = pytest.mark.django_db


def test_a_run_is_known_as_an_attempts_or_as_tests(django_assert_max_num_queries):
    going, made, tested, other = (make_run() for _ in range(4))
    one = make_change()
    Change.objects.filter(pk=one.pk).update(run=going)
    done = reviewed(run=made)
    TestRun.objects.create(attempt=done.attempt, digest="d" * 64, command="make", run=tested)

    with django_assert_max_num_queries(3):
        told = purposes.of([each.uid for each in (going, made, tested, other)])

    assert told == {
        going.uid: f"change {one.uid}", made.uid: f"change {done.uid}",
        tested.uid: f"tests of change {done.uid}",
    }  # fmt: skip


def test_ps_and_show_tell_it(capsys, monkeypatch):
    run = make_run(state="ended", outcome="succeeded")
    change = make_change()
    make_attempt(change, run=run)

    class Engine:
        async def containers(self, labels):
            own = {LABEL_RUN: run.uid, LABEL_ROLE: "agent"}
            return [
                ContainerRow("c" * 64, "i", "running", own),
                ContainerRow("d" * 64, "i", "x", {}),
            ]

    monkeypatch.setattr(sanduk_ps, "get_engine", lambda name: Engine())
    assert sanduk_ps.Command().act(runtime="", json=False) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "FOR" in lines[0]
    assert f"change {change.uid}" in lines[1]
    assert "change" not in lines[2]
    sanduk_ps.Command().act(runtime="", json=True)
    rows = json.loads(capsys.readouterr().out)
    assert [each["purpose"] for each in rows] == [f"change {change.uid}", ""]

    command = sanduk_show.Command()
    command.act(**vars(command.create_parser("sanduk", "sanduk_show").parse_args([run.uid])))
    assert f"for       change {change.uid}" in capsys.readouterr().out
