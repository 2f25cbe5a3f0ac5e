"""A build of an image is handed no secret."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from relay import get_provider, provider_names
from runs import images
from runs.console import Silent
from runs.engines.base import EngineError
from runs.plan import from_recipe
from tests.runs.fake_engine import FakeEngine

VARIABLES = sorted({get_provider(name).key_env for name in provider_names()} - {""})


class Watching(FakeEngine):
    """It keeps whatever its builds are given: words and files."""

    def __init__(self) -> None:
        super().__init__()
        self.given = ""

    async def build(self, *words: Any, **named: Any) -> None:
        self.given += repr((words, named))
        for place in [Path(word) for word in self.given.split("'") if word.startswith("/")]:
            for file in place.rglob("*") if place.is_dir() else [place] * place.is_file():
                if file.is_file():
                    self.given += file.read_text(errors="replace")


@pytest.mark.parametrize("recipe", ["pi", "claude", "codex", "link"])
def test_no_key_is_in_a_builds_words_or_files(recipe: str, state: Path, monkeypatch):
    state.mkdir()
    for name in VARIABLES:
        monkeypatch.setenv(name, f"sk-canary-{name.lower()}")
    engine = Watching()
    with pytest.raises(EngineError, match="does not list it"):
        asyncio.run(images.ensure(engine, from_recipe(recipe)[1], Silent()))

    assert "FROM " in engine.given, "the Containerfile was seen"
    assert "sk-canary" not in engine.given
