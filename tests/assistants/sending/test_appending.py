"""No destination appends to what this host runs or obeys."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from assistants import destinations
from assistants.delivery import deliver_due
from assistants.delivery.kinds import CommandSettings, FileSettings
from assistants.models import Delivery, Destination
from runs.refusal import Refusal
from tests.assistants.sending.making import make_destination, make_item
from tests.factories import make_assistant

pytestmark = pytest.mark.django_db(transaction=True)


def add(path: Path | str, name: str = "log") -> None:
    destinations.add(name, "file", FileSettings(str(path)))


@pytest.mark.parametrize("file", ["audit-head", "sanduk.sqlite3", "new", "memory/new"])
def test_not_to_the_state_of_sanduk(state: Path, file):
    (state / "memory").mkdir()

    with pytest.raises(Refusal, match="sanduk's own state"):
        add(state / file)
    assert not Destination.objects.exists()


def test_not_to_the_state_by_another_name(state: Path, tmp_path: Path):
    (state / "audit-head").write_text("x")
    (tmp_path / "link").symlink_to(state)
    with pytest.raises(Refusal, match="sanduk's own state"):
        add(tmp_path / "link" / "audit-head")


def test_not_to_the_configuration_the_code_or_the_interpreter(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "config" / "sanduk").mkdir(parents=True)
    (tmp_path / "key").touch()
    monkeypatch.setenv("OPENAI_API_KEY_FILE", str(tmp_path / "key"))

    for path, why in (
        (tmp_path / "config" / "sanduk" / "providers.toml", "recipes and kits of this account"),
        (tmp_path / "key", "OPENAI_API_KEY_FILE"),
        (Path(destinations.__file__).parent / "items.jsonl", "sanduk's own code"),
        (Path(sys.prefix) / "bin" / "items", "is hidden|the Python that runs sanduk|system"),
    ):
        with pytest.raises(Refusal, match=why):
            add(path)


@pytest.mark.parametrize(
    "name",
    [".bashrc", ".profile", ".ssh/authorized_keys", "repo/.git/hooks/post-commit",
     ".config/autostart/x", ".local/bin/x", ".local/state/.x/y", ".cache"],
)  # fmt: skip
def test_not_to_a_hidden_file(tmp_path: Path, name):
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)

    with pytest.raises(Refusal, match="is hidden"):
        add(tmp_path / name)


@pytest.mark.parametrize("name", [".local/state/sanduk/items", ".cache/items", "plain"])
def test_to_where_records_are_kept(tmp_path: Path, name):
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)

    add(tmp_path / name)


@pytest.mark.parametrize("path", ["/etc/crontab", "/etc/profile.d/x.sh", "/usr/share/x"])
def test_not_to_the_system(path):
    with pytest.raises(Refusal, match=r"is of the system|is of this host's system"):
        add(path)


def test_not_to_a_program(tmp_path: Path):
    tool = tmp_path / "tool"
    tool.write_text("#!/bin/sh")
    tool.chmod(0o755)

    with pytest.raises(Refusal, match="is a program"):
        add(tool)


def test_again_to_where_every_file_may_be_run(tmp_path: Path):
    """CIFS and FAT keep no modes: what was appended is no program for that."""
    assistant = make_assistant()
    make_destination("log", "file", assistant, path=str(tmp_path / "items"))
    for mode in (0o600, 0o777):
        make_item(assistant)
        assert deliver_due().sent == 1
        (tmp_path / "items").chmod(mode | 0o111)
    make_item(assistant)
    assert deliver_due().sent == 1


def test_not_to_an_assistants_directory(tmp_path: Path):
    (tmp_path / "daily").mkdir()
    make_assistant("daily", directory=str(tmp_path / "daily"))

    for name in ("brief.md", "assistant.toml", "gate", "new"):
        with pytest.raises(Refusal, match="the directory of assistant daily"):
            add(tmp_path / "daily" / name)


@pytest.mark.parametrize("first", ["file", "command"])
def test_not_to_what_another_destination_runs(tmp_path: Path, first):
    script = tmp_path / "send.sh"
    script.touch()
    os.link(script, tmp_path / "same")
    command = CommandSettings(argv=("sh", str(script)))
    if first == "command":
        destinations.add("ops", "command", command)
        for path in (script, tmp_path / "same"):
            with pytest.raises(Refusal, match="a file of the destination ops"):
                add(path)
    else:
        add(tmp_path / "same")
        with pytest.raises(Refusal, match=r"is appended to .* by the destination log"):
            destinations.add("ops", "command", command)


def test_it_is_looked_at_again_when_something_is_delivered(state: Path, tmp_path: Path):
    assistant = make_assistant()
    (tmp_path / "place").mkdir()
    make_destination("log", "file", assistant, path=str(tmp_path / "place" / "items"))
    make_item(assistant)
    (tmp_path / "place").rmdir()
    (tmp_path / "place").symlink_to(state)

    assert deliver_due().given_up == 1

    assert "sanduk's own state" in Delivery.objects.get().error
    assert not (state / "items").exists()
