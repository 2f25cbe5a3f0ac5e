"""Directories of assistants, and commands typed in this process."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.management import load_command_class

HOLDING = 'agent = "pi"\nprovider = "rehearsal"\napproval = true\nmemory_review = true\n'


@pytest.fixture(autouse=True)
def state(tmp_path: Path, settings) -> Path:
    settings.SANDUK_HOME = tmp_path / "state"
    return settings.SANDUK_HOME


@pytest.fixture
def directory(tmp_path: Path) -> Callable[..., Path]:
    """Makes the directory of an assistant; again: writes its file anew."""

    def make(name: str = "daily", more: str = "", *, toml: str = HOLDING) -> Path:
        place = tmp_path / name
        place.mkdir(exist_ok=True)
        (place / "assistant.toml").write_text(more + "\n" + toml)
        (place / "brief.md").write_text("look around\n")
        return place

    return make


@pytest.fixture
def sanduk(capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """What a command prints, or its JSON; a Refusal passes."""

    def typed(name: str, *words: str, code: int = 0) -> Any:
        capsys.readouterr()
        command: Any = load_command_class("assistants", f"sanduk_{name}")
        options = vars(command.create_parser("sanduk", f"sanduk_{name}").parse_args(list(words)))
        assert command.act(**options) == code
        out, err = capsys.readouterr()
        typed.err = err  # type: ignore[attr-defined]
        return json.loads(out) if "--json" in words else out

    return typed
