"""Flags that a person gets wrong: the answer names the mistake, and repeats no secret."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def refused(tmp_path: Path, *words: str) -> str:
    """The one line it says instead of starting a run."""
    done = subprocess.run(
        [sys.executable, "-m", "sanduk_site", "run", "--dry-run", *words, "x"],
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "SANDUK_HOME": str(tmp_path / "h")},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (2, ""), done
    [line] = done.stderr.splitlines()
    return line


@pytest.mark.parametrize("url", ["http://ann:s3kr1t@host:1", "https://s3kr1t@host", "s3kr1t@host"])
@pytest.mark.parametrize("flags", [["--upstream"], ["--mode", "open", "--base-url"]])
def test_a_password_in_a_url_is_refused_and_not_repeated(tmp_path: Path, flags, url: str):
    line = refused(tmp_path, "--provider", "openai", *flags, url)

    assert f"{flags[-1]}: the URL may hold no user name or password" in line
    assert "s3kr1t" not in line
    assert "ann" not in line


def test_a_directory_is_no_recipe_and_is_called_one(tmp_path: Path):
    line = refused(tmp_path, "-r", str(tmp_path))

    assert line == (f"sanduk: recipe {tmp_path}: this is a directory; name the recipe's .json file")
