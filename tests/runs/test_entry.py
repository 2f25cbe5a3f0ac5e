"""The first process of every agent's container, run with a real sh on this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from runs.box import ENTRY


@pytest.fixture
def entry(tmp_path: Path) -> Path:
    """The script with its container paths moved below a directory of the test's."""
    (tmp_path / "stdin").write_text("the task\n")
    (tmp_path / "env").write_text("")
    text = ENTRY.read_text()
    assert "/run/sanduk/env" in text
    assert "/tmp/home" in text
    script = tmp_path / "entry"
    script.write_text(
        text.replace("/run/sanduk", str(tmp_path)).replace("/tmp/home", str(tmp_path / "home"))
    )
    script.chmod(0o755)
    return script


def run(entry: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/sh", str(entry), *words],
        env={"PATH": os.environ["PATH"], "HOME": str(entry.parent), **env},
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )


def test_the_command_gets_its_arguments_and_the_task_on_stdin(entry: Path):
    done = run(entry, "60", "sh", "-c", 'printf "%s|" "$@"; cat', "sh", "a b", "", "*", "-x")

    assert done.stdout == "a b||*|-x|the task\n"
    assert done.returncode == 0


def test_the_environment_of_the_file_is_exported(entry: Path):
    (entry.parent / "env").write_text("export KEY='a b'\n")

    assert run(entry, "60", "sh", "-c", 'echo "$KEY"').stdout == "a b\n"


def test_without_that_file_it_works_as_well(entry: Path):
    (entry.parent / "env").unlink()

    assert run(entry, "60", "echo", "here").stdout == "here\n"


@pytest.mark.parametrize("code", [0, 1, 129, 130, 143])
def test_the_commands_exit_code_is_passed_on(entry: Path, code):
    assert run(entry, "60", "sh", "-c", f"exit {code}").returncode == code


def test_a_command_that_is_not_there_fails_clearly(entry: Path):
    done = run(entry, "60", "no-such-agent")

    assert done.returncode == 127
    assert "no-such-agent" in done.stderr


def test_the_limit_ends_the_command_even_if_nobody_is_left_to_do_so(entry: Path):
    before = time.monotonic()

    done = run(entry, "1", "sleep", "15")

    assert done.returncode == 124
    assert time.monotonic() - before < 10


@pytest.mark.parametrize("home", ["/nonexistent", ""])
def test_a_home_that_cannot_be_written_is_replaced(entry: Path, home):
    done = run(entry, "60", "sh", "-c", 'echo "$HOME"; touch "$HOME/f"', HOME=home)

    assert done.stdout == f"{entry.parent / 'home'}\n"
    assert (entry.parent / "home" / "f").exists()


def test_a_home_that_can_be_written_stays(entry: Path):
    assert run(entry, "60", "sh", "-c", 'echo "$HOME"').stdout == f"{entry.parent}\n"


@pytest.mark.parametrize("limit", ["60", "1"])
def test_an_image_without_timeout_has_the_limit_too(entry: Path, limit):
    """In a pid namespace of its own: what ends the command there ends every process it can see."""
    words = ["unshare", "--pid", "--fork", "--kill-child"]
    if subprocess.run([*words, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this account may not make a pid namespace")
    programs = entry.parent / "programs"
    programs.mkdir()
    for name in ("sleep", "cat", "sh", "mkdir"):
        (programs / name).symlink_to(shutil.which(name) or "/nonexistent")
    command = "cat" if limit == "60" else "sleep 15"
    before = time.monotonic()

    done = subprocess.run(
        [*words, "/bin/sh", "-c", f'/bin/sh {entry} {limit} {command}; echo "code $?"'],
        env={"PATH": str(programs), "HOME": str(entry.parent)},
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
        executable=shutil.which("unshare"),
    )

    assert time.monotonic() - before < 10
    assert done.stdout == ("the task\ncode 0\n" if limit == "60" else "code 137\n")
