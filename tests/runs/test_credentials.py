"""Keys kept on this host: never readable by others, never shown, never half written."""

from __future__ import annotations

import io
import json
import stat

import pytest

from runs import credentials, keys
from runs.home import prepare
from runs.management.commands import sanduk_auth
from runs.models import AuditEvent
from runs.refusal import Refusal

SECRET = "placeholder-0123456789abcdef"
NAME = "ANTHROPIC_API_KEY"


@pytest.fixture(autouse=True)
def home(state):
    state.mkdir(mode=0o700)
    return state


def auth(monkeypatch, *words: str, stdin: str = "") -> int:
    monkeypatch.setattr("sys.stdin", io.StringIO(stdin))
    command = sanduk_auth.Command()
    options = vars(command.create_parser("sanduk", "sanduk_auth").parse_args(list(words)))
    return command.act(**options)


def test_the_file_is_private_before_it_holds_anything(home, monkeypatch):
    seen = []
    dump = json.dump

    def looked_at(content, file, **options):
        seen.append(stat.S_IMODE(next(home.glob(".credentials.*")).stat().st_mode))
        dump(content, file, **options)

    monkeypatch.setattr(credentials.json, "dump", looked_at)
    credentials.store(NAME, SECRET)
    assert seen == [0o600]
    assert stat.S_IMODE((home / "credentials").stat().st_mode) == 0o600
    assert not list(home.glob(".credentials.*"))


def test_a_full_disk_is_told_with_the_file_and_loses_nothing(home, monkeypatch):
    credentials.store(NAME, SECRET)

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(credentials.os, "fsync", full)

    with pytest.raises(Refusal, match="/credentials cannot be written: No space left on device"):
        credentials.store("OPENAI_API_KEY", "another")
    assert credentials.stored() == {NAME: SECRET}
    assert not list(home.glob(".credentials.*"))


def test_the_environment_wins_over_what_is_stored(monkeypatch):
    credentials.store(NAME, SECRET)
    assert keys.value_of(NAME) == SECRET
    assert keys.source_of(NAME) == "stored"
    monkeypatch.setenv(NAME, "another-value-entirely")
    assert keys.value_of(NAME) == "another-value-entirely"
    assert keys.source_of(NAME) == "environment"


def test_a_stored_key_may_not_be_lent_to_a_container():
    credentials.store("WEBHOOK_TOKEN", SECRET)
    assert SECRET in keys.held_keys()


@pytest.mark.parametrize("value", ["", "two\nlines", "tab\there", "é" * 20, "x" * 20_000])
def test_what_cannot_be_a_secret_is_refused_without_showing_it(value):
    with pytest.raises(Refusal) as refused:
        credentials.store(NAME, value)
    assert not value or value not in str(refused.value)
    assert credentials.stored() == {}


@pytest.mark.parametrize("content", ["{", "[]", '{"A": 1}', "\xff"])
def test_a_damaged_file_is_said_and_not_overwritten_silently(home, content):
    (home / "credentials").write_text(content, encoding="latin-1")
    with pytest.raises(Refusal, match="damaged"):
        credentials.stored()


@pytest.mark.django_db
def test_a_key_comes_in_by_standard_input_and_never_shows(monkeypatch, capsys):
    assert auth(monkeypatch, "set", "anthropic", stdin=f"{SECRET}\n") == 0
    assert auth(monkeypatch, "status") == 0
    out, err = capsys.readouterr()
    assert f"{NAME}   stored       …cdef" in out
    assert SECRET not in out + err
    (event,) = AuditEvent.objects.all()
    assert SECRET not in json.dumps(event.detail) + event.subject


@pytest.mark.django_db
@pytest.mark.parametrize("content", ["{", '{"A": 1}', "[" * 100_000])
def test_a_damaged_file_is_moved_aside_by_a_new_key(home, monkeypatch, capsys, content):
    (home / "credentials").write_text(content)
    (home / "credentials").chmod(0o644)
    assert auth(monkeypatch, "set", "anthropic", stdin=SECRET) == 0
    assert credentials.stored() == {NAME: SECRET}
    (aside,) = home.glob("credentials.damaged-*")
    assert (aside.read_text(), stat.S_IMODE(aside.stat().st_mode)) == (content, 0o600)
    assert str(aside) in capsys.readouterr().err


@pytest.mark.django_db
def test_a_damaged_file_is_moved_aside_to_forget_a_key_and_stays_for_nothing_that_is_none(
    home, monkeypatch, capsys
):
    (home / "credentials").write_text("{")
    with pytest.raises(Refusal, match="no single printable line"):
        auth(monkeypatch, "set", "anthropic", stdin="two\nlines")
    assert (home / "credentials").exists()
    assert auth(monkeypatch, "clear", "anthropic") == 1
    assert credentials.stored() == {}
    assert "it may still hold keys" in capsys.readouterr().err


def test_the_end_of_input_at_the_prompt_is_no_traceback(monkeypatch):
    def ends(prompt):
        raise EOFError

    monkeypatch.setattr("getpass.getpass", ends)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    command = sanduk_auth.Command()
    options = vars(command.create_parser("sanduk", "sanduk_auth").parse_args(["set", "anthropic"]))
    with pytest.raises(Refusal, match="nothing was given for ANTHROPIC_API_KEY"):
        command.act(**options)


@pytest.mark.django_db
def test_status_says_of_a_key_that_it_cannot_be_used(monkeypatch, capsys, tmp_path):
    (tmp_path / "empty").write_text("\n")
    monkeypatch.setenv("OPENAI_API_KEY", f"{SECRET}\n{SECRET}")
    monkeypatch.setenv("OPENROUTER_API_KEY_FILE", str(tmp_path / "missing"))
    monkeypatch.setenv("GEMINI_API_KEY_FILE", str(tmp_path / "empty"))
    assert auth(monkeypatch, "status") == 0
    out = capsys.readouterr().out
    lines = {line.split()[0]: line for line in out.splitlines()}
    assert "environment  cannot be used: it holds a line break" in lines["OPENAI_API_KEY"]
    assert "names a file that cannot be read" in lines["OPENROUTER_API_KEY"]
    assert "cannot be used: it is empty" in lines["GEMINI_API_KEY"]
    assert SECRET not in out


@pytest.mark.parametrize("action", ["set", "clear"])
def test_the_names_that_are_offered_are_of_providers_that_need_a_key(monkeypatch, action):
    with pytest.raises(Refusal) as caught:
        auth(monkeypatch, action)
    told = str(caught.value)
    assert "anthropic, openai, openrouter, gemini" in told
    assert "rehearsal" not in told
    assert "openai-compat" not in told


@pytest.mark.django_db
def test_a_forgotten_key_is_gone_and_forgetting_twice_says_so(monkeypatch):
    credentials.store(NAME, SECRET)
    assert auth(monkeypatch, "clear", "anthropic") == 0
    assert credentials.stored() == {}
    assert auth(monkeypatch, "clear", "anthropic") == 1


@pytest.mark.django_db
def test_status_as_json_is_masked_too(monkeypatch, capsys):
    credentials.store(NAME, SECRET)
    auth(monkeypatch, "status", "--json")
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    stored = {"name": NAME, "source": "stored", "value": "…cdef", "problem": ""}
    assert rows[NAME] == stored
    assert rows["OPENAI_API_KEY"]["source"] == "none"


@pytest.mark.django_db
@pytest.mark.parametrize("words", [("set",), ("set", "rehearsal"), ("set", "not a name")])
def test_a_name_that_is_none_is_refused(monkeypatch, words):
    with pytest.raises(Refusal):
        auth(monkeypatch, *words, stdin=SECRET)


def test_preparing_the_home_leaves_the_credentials_alone(home, django_db_blocker):
    credentials.store(NAME, SECRET)
    with django_db_blocker.unblock():
        prepare()
    assert credentials.stored() == {NAME: SECRET}
