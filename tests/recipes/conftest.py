"""Recipe files in a directory of their own, and no recipes of whoever runs the tests."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Write = Callable[..., Path]
BASE: dict[str, Any] = {
    "agent": "pi",
    "from": "debian:trixie-slim",
    "user": "agent",
    "home": "/home/agent",
    "entrypoint": ["sh"],
}


@pytest.fixture(autouse=True)
def config_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "config"
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home))
    return home


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """write(name, **keys): a complete recipe file; with complete=False only what is given."""

    def write_recipe(name: str, complete: bool = True, **keys: Any) -> Path:
        path = tmp_path / f"{name}.json"
        base = BASE if complete else {}
        keys = {key.rstrip("_"): value for key, value in keys.items()}
        path.write_text(json.dumps({"name": name, **base, **keys}))
        return path

    return write_recipe


def apt(name: str, *packages: str) -> dict[str, Any]:
    return {"name": name, "type": "apt", "install": list(packages or (name,))}
