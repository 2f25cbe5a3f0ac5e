"""What the tests of changes share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.changes.making import Scene, repository, scene


@pytest.fixture
def made(tmp_path: Path) -> Scene:
    """A clone of a small repository with rules, before an agent came."""
    files = {
        ".gitignore": b"dist/\n*.log\n/only-dirs/\n",
        "run.sh": b"#!/bin/sh\n",
        "lib/a.py": b"a\n",
        "lib/b.py": b"b\n",
        "kept.log": b"tracked though ignored\n",
    }
    return scene(tmp_path / "w", repository(tmp_path / "r", files))
