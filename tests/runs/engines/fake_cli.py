"""A shell script in the place of an engine's command."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

FakeCli = Callable[[str, str], None]


@pytest.fixture
def fake_cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeCli:
    """Puts a shell script of that name first on PATH."""

    def put(name: str, script: str) -> None:
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    # Docker's own socket would answer where the script is meant to.
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    return put
