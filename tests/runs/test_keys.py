"""Where a provider's key comes from, and that no message ever holds any of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from relay import get_provider
from runs import keys
from runs.refusal import Refusal

OPENAI = get_provider("openai")
KEY = "sk-canary-0123456789"


def test_the_variable_holds_it(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", f"  {KEY}\n")

    assert keys.provider_key(OPENAI) == KEY


def test_a_file_holds_it(monkeypatch, tmp_path: Path):
    (tmp_path / "key").write_text(f"{KEY}\n")
    monkeypatch.setenv("OPENAI_API_KEY_FILE", str(tmp_path / "key"))

    assert keys.provider_key(OPENAI) == KEY


def test_the_variable_goes_before_the_file(monkeypatch, tmp_path: Path):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_API_KEY_FILE", str(tmp_path / "missing"))

    assert keys.provider_key(OPENAI) == KEY


def test_a_missing_key_names_the_variable_and_a_way_without_one():
    with pytest.raises(Refusal, match=r"export OPENAI_API_KEY.*--provider rehearsal"):
        keys.provider_key(OPENAI)


@pytest.mark.parametrize("name", ["rehearsal", "openai-compat"])
def test_a_provider_that_needs_none_has_an_empty_one(name):
    assert keys.provider_key(get_provider(name)) == ""


@pytest.mark.parametrize("content", [None, b"\xff\xfe"])
def test_a_file_that_cannot_be_read_is_named_by_its_variable(monkeypatch, tmp_path, content):
    if content is not None:
        (tmp_path / "key").write_bytes(content)
    monkeypatch.setenv("OPENAI_API_KEY_FILE", str(tmp_path / "key"))

    with pytest.raises(Refusal, match="OPENAI_API_KEY_FILE names a file that cannot be read"):
        keys.provider_key(OPENAI)


@pytest.mark.parametrize(
    "value",
    [f"{KEY}\n{KEY}", f"{KEY}\r\nX: y", f"{KEY} x", f"{KEY}ü", f"{KEY}\x00", f"{KEY}\x1b[1m"],
)
@pytest.mark.parametrize("how", ["variable", "file"])
def test_a_key_with_a_line_break_or_an_odd_character_is_never_printed(
    monkeypatch, tmp_path, value, how
):
    """C-5: a key with an inner newline stood in a traceback."""
    if how == "variable":
        value = value.replace("\0", "\x01")  # a variable cannot hold a NUL
        monkeypatch.setenv("OPENAI_API_KEY", value)
    else:
        (tmp_path / "key").write_text(value, newline="")
        monkeypatch.setenv("OPENAI_API_KEY_FILE", str(tmp_path / "key"))

    with pytest.raises(Refusal) as refusal:
        keys.provider_key(OPENAI)

    assert "canary" not in str(refusal.value)
    assert refusal.value.__cause__ is None
    assert "OPENAI_API_KEY" in str(refusal.value)


def test_every_key_this_process_could_see_is_known(monkeypatch, tmp_path: Path):
    (tmp_path / "key").write_text("sk-from-a-file")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_API_KEY_FILE", str(tmp_path / "key"))
    monkeypatch.setenv("OPENROUTER_API_KEY_FILE", str(tmp_path / "missing"))

    assert sorted(keys.held_keys()) == sorted([KEY, "sk-from-a-file"])


def test_a_dummy_of_a_few_letters_is_no_key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")

    assert keys.held_keys() == []
