"""`sanduk destroy` without an engine: what it says of what stays."""

from __future__ import annotations

import io

import pytest
from django.core.management import call_command

from runs import credentials, dismantling, home
from runs.reconcile import Reconciled
from sanduk_site import whereabouts

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def no_engine(monkeypatch, tmp_path, settings):
    settings.SANDUK_HOME = tmp_path / "a home"
    settings.SANDUK_HOME.mkdir()
    monkeypatch.setattr(dismantling, "engines_used", lambda chosen: [])
    monkeypatch.setattr(dismantling, "clear_engines", lambda names: Reconciled())
    # the database of the tests is not in that directory, and stays open
    monkeypatch.setattr(dismantling.connections, "close_all", lambda: None)


@pytest.mark.parametrize(("typed", "names_it"), [("destroy\n", True), ("no\n", False)])
def test_the_sample_of_the_first_run_is_named_and_left(monkeypatch, capsys, typed, names_it):
    home.sample_directory().mkdir()
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))

    call_command("sanduk_destroy")

    assert (f"rm -r '{home.sample_directory()}'" in capsys.readouterr().err) is names_it
    assert home.sample_directory().is_dir()


def test_where_there_is_no_sample_none_is_named(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO("destroy\n"))
    call_command("sanduk_destroy")
    assert "rm -r" not in capsys.readouterr().err


def test_stored_keys_are_spoken_of_where_there_are_any(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO("no\n"))
    call_command("sanduk_destroy")
    assert "stored keys" not in capsys.readouterr().err

    credentials.store("SOME_KEY", "x" * 20)
    call_command("sanduk_destroy")
    assert "and stored keys" in capsys.readouterr().err


def test_what_a_killed_site_left_of_where_it_was_goes_too(monkeypatch, settings):
    whereabouts.write_down("http://127.0.0.1:8000")  # and its process is killed
    (settings.SANDUK_HOME / "up.draft").touch()
    for name in ("changes", "clones", "tests"):
        (settings.SANDUK_HOME / name / ("a" * 12)).mkdir(parents=True)
    monkeypatch.setattr("sys.stdin", io.StringIO("destroy\n"))
    call_command("sanduk_destroy")
    assert not settings.SANDUK_HOME.exists()
