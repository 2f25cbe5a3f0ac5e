"""Flags that a person gets wrong: the answer names the mistake, and repeats no secret."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.migrated import prepared

ROOT = Path(__file__).parents[2]


def refused(tmp_path: Path, *words: str) -> str:
    """The one line it says instead of starting a run."""
    done = subprocess.run(
        [sys.executable, "-m", "sanduk_site", "run", "--dry-run", *words, "x"],
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "SANDUK_HOME": str(prepared(tmp_path / "h")),
        },
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


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--max-body", "0"], "--max-body: it takes a whole number from 1, in digits, not '0'"),
        (["--max-calls", "1e3"], "--max-calls: it takes a whole number from 1, in digits"),
        (["--max-turns", "-1"], "--max-turns: it takes a whole number from 1, in digits"),
        (["--token-budget", "1,000"], "--token-budget: it takes a whole number"),
        (["--max-tokens-cap", "4k"], "--max-tokens-cap: it takes a whole number"),
        (["--budget", "0"], "--budget: it takes US dollars above 0, as 2 or 0.50, without a sign"),
        (["--budget", "$2"], "without a sign, not '$2'"),
        (["--budget", "nan"], "not 'nan'"),
        (["--cpus", "two"], "--cpus: it takes a number from 0.01 to 1024, not 'two'"),
        (["--memory", "-4g"], "a value that begins with - goes behind a =, as --flag=-value"),
        (["--memory=-4g"], "--memory takes a size such as 512m or 4g, not '-4g'"),
        (["--memory", "1"], "--memory 1 is 1 bytes; it must be at least 32m"),
        (["--memory", "5m"], "--memory 5m is 5,242,880 bytes; it must be at least 32m"),
        (["--memory", "9999999999999g"], "is more than any machine has"),
    ],
)
def test_a_number_that_is_none_is_answered_with_what_the_flag_takes(tmp_path, words, said):
    line = refused(tmp_path, "--agent", "claude", "--provider", "rehearsal", *words)

    assert said in line


def test_what_a_detached_run_cannot_give_is_refused_by_a_dry_run_too(tmp_path: Path):
    line = refused(tmp_path, "--detach", "--stats-file", "s.json")

    assert "--stats-file means nothing with --detach" in line


def test_only_a_command_that_takes_a_task_is_answered_with_how_to_quote_one(tmp_path: Path):
    assert "quote a task" in refused(tmp_path, "two", "words")
    done = subprocess.run(
        [sys.executable, "-m", "sanduk_site", "clean", "--nothing"],
        cwd=ROOT, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert "unrecognized arguments: --nothing; see sanduk clean --help" in done.stderr


def test_a_directory_is_no_recipe_and_is_called_one(tmp_path: Path):
    line = refused(tmp_path, "-r", str(tmp_path))

    assert line == (f"sanduk: recipe {tmp_path}: this is a directory; name the recipe's .json file")
