"""`stop` and `clean`: what they did is said in kinds, for people and for scripts."""

from __future__ import annotations

import json

import pytest

from runs.leftovers import Removed
from runs.management.commands import sanduk_clean, sanduk_stop
from runs.models import Run
from runs.reconcile import Reconciled
from tests.factories import make_run

pytestmark = pytest.mark.django_db
DONE = Reconciled(removed=Removed(containers=6, networks=1, directories=2))


@pytest.fixture(autouse=True)
def swept(monkeypatch, state):
    """Sweeping says what it would have done."""
    state.mkdir()
    for command in (sanduk_stop, sanduk_clean):
        monkeypatch.setattr(command, "get_engine", lambda _: None)
        monkeypatch.setattr(command, "sweep", lambda *_, **__: DONE)


def act(module, *words: str) -> int:
    command = module.Command()
    parser = command.create_parser("sanduk", module.__name__.rpartition(".")[2])
    return command.act(**vars(parser.parse_args(list(words))))


@pytest.mark.parametrize("module", [sanduk_stop, sanduk_clean])
def test_what_was_removed_is_told_by_its_kinds(module, capsys):
    assert act(module) == 0

    assert capsys.readouterr().err == "sanduk: removed 6 containers, 1 network, 2 directories\n"


@pytest.mark.parametrize("module", [sanduk_stop, sanduk_clean])
def test_scripts_get_the_same_in_figures(module, capsys):
    act(module, "--json")

    told = json.loads(capsys.readouterr().out)
    assert told["removed"] == {"containers": 6, "networks": 1, "images": 0, "directories": 2}
    assert told["live_runs"] == 0


def test_nothing_removed_is_said_in_words():
    assert Removed().spoken() == ""
    assert Removed(containers=1, images=2).spoken() == "1 container, 2 images"


def test_asking_without_waiting_says_that_it_asked(capsys):
    live, queued = make_run(state="running"), make_run()

    assert act(sanduk_stop, live.uid, queued.uid, "--no-wait") == 0

    assert capsys.readouterr().out.splitlines() == [
        f"{live.uid}  asked to stop",
        f"{queued.uid}  cancelled before it started",
    ]


def test_stopping_is_told_to_scripts_with_each_runs_end(capsys, monkeypatch):
    live, over = make_run(state="running"), make_run(state="ended")
    ending = {"state": "ended", "outcome": "cancelled", "lease_until": None, "lease_owner": ""}

    def end_it() -> None:
        from runs import clock

        Run.objects.filter(pk=live.pk).update(**ending, ended_at=clock.now())

    monkeypatch.setattr(sanduk_stop, "reconcile", end_it)

    assert act(sanduk_stop, live.uid, over.uid, "--json") == 1

    assert json.loads(capsys.readouterr().out) == [
        {"run": live.uid, "asked": True, "cancelled": False, "state": "ended",
         "outcome": "cancelled"},
        {"run": over.uid, "asked": False, "cancelled": False, "state": "ended",
         "outcome": "succeeded"},
    ]  # fmt: skip


def test_clean_all_says_which_runs_ended_whoever_stopped_them(capsys, monkeypatch):
    live = make_run(state="running", stop_requested_by="somebody else")

    def end_it() -> None:
        from runs import clock

        Run.objects.filter(pk=live.pk).update(
            state="ended", outcome="cancelled", ended_at=clock.now(), lease_until=None
        )

    monkeypatch.setattr(sanduk_clean, "reconcile", end_it)
    monkeypatch.setattr(sanduk_clean, "sweep", lambda *_, **__: Reconciled())

    act(sanduk_clean, "--all")

    assert capsys.readouterr().err == "sanduk: 1 live run(s) ended\n"


def test_clean_all_says_that_a_run_has_not_ended(capsys, monkeypatch):
    make_run(state="running")
    monkeypatch.setattr(sanduk_clean, "PATIENCE_S", 0)

    act(sanduk_clean, "--all")

    assert "1 live run(s) have not ended yet" in capsys.readouterr().err
