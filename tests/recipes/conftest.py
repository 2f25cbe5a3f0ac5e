"""Recipe files in a directory of their own, and no recipes of whoever runs the tests."""

from __future__ import annotations

import hashlib
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


WriteKit = Callable[..., Path]


@pytest.fixture
def write_kit(tmp_path: Path) -> WriteKit:
    """write_kit(name, files={path: text}, **keys): a kit's directory; returns its kit.json."""

    def write(name: str, files: dict[str, str] | None = None, **keys: Any) -> Path:
        home = tmp_path / "kits" / name
        for relative, text in (files or {}).items():
            (home / relative).parent.mkdir(parents=True, exist_ok=True)
            (home / relative).write_text(text)
        home.mkdir(parents=True, exist_ok=True)
        (home / "kit.json").write_text(json.dumps({"name": name, **keys}))
        return home / "kit.json"

    return write


def sha(data: Path | str | bytes) -> str:
    if isinstance(data, Path):
        data = data.read_bytes()
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()


def pinned(kit: Path) -> dict[str, str]:
    """How a recipe names a kit by its path."""
    return {"path": str(kit.parent), "sha256": sha(kit)}


def skill_text(name: str, description: str = "When to read this.") -> str:
    return f"---\nname: {name}\ndescription: {description}\n---\n\n# {name}\n"


def held(name: str) -> tuple[dict[str, Any], dict[str, str]]:
    """A skill as a kit lists it, and its files."""
    text = skill_text(name)
    listed = {"path": f"skills/{name}", "files": {"SKILL.md": sha(text)}}
    return listed, {f"skills/{name}/SKILL.md": text}
