"""What is printed for somebody who has left, or onto a disk that is full, ends no run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.accounts import needs_dev_full

SPEAK = """
import sys
from runs.printing import lost_output, print_line, reader_left
for number in range(2000):
    print_line(f"line {number}", getattr(sys, sys.argv[1]))
done = f"lost={lost_output()!r} left={reader_left(getattr(sys, sys.argv[1]))}"
open(sys.argv[2], "w").write(done)
"""


def speak(stream: str, to: int, note: Path) -> subprocess.CompletedProcess[bytes]:
    other = {"stdout": "stderr", "stderr": "stdout"}[stream]
    return subprocess.run(
        [sys.executable, "-c", SPEAK, stream, str(note)],
        **{stream: to, other: subprocess.PIPE},  # type: ignore[call-overload]
    )


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_reader_that_left_is_no_error(stream: str, tmp_path: Path):
    reading, writing = os.pipe()
    os.close(reading)
    done = speak(stream, writing, tmp_path / "note")
    os.close(writing)

    assert done.returncode == 0
    assert (done.stdout or b"") + (done.stderr or b"") == b""
    assert (tmp_path / "note").read_text() == "lost='' left=True"


@needs_dev_full
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_full_disk_is_remembered_for_what_was_the_output(stream: str, tmp_path: Path):
    full = os.open("/dev/full", os.O_WRONLY)
    done = speak(stream, full, tmp_path / "note")
    os.close(full)

    assert done.returncode == 0
    assert (done.stdout or b"") + (done.stderr or b"") == b""
    lost = "No space left on device" if stream == "stdout" else ""
    assert (tmp_path / "note").read_text() == f"lost={lost!r} left=False"


@pytest.mark.parametrize("number", [1, 2])
def test_a_stream_that_was_closed_from_the_start_is_no_error(number: int, tmp_path: Path):
    stream = {1: "stdout", 2: "stderr"}[number]
    note = tmp_path / "note"
    done = subprocess.run(
        ["sh", "-c", f'exec "$0" "$@" {number}>&-', sys.executable, "-c",
         SPEAK.replace("reader_left(getattr(sys, sys.argv[1]))", "None"), stream, str(note)],
        capture_output=True,
    )  # fmt: skip

    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert note.read_text() == "lost='' left=None"


@needs_dev_full
def test_a_list_that_could_not_be_written_is_a_failure_in_one_line(tmp_path: Path):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [Path(sys.executable).with_name("sanduk"), "list", "agents"],
            env={**os.environ, "SANDUK_HOME": str(tmp_path / "home")},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )

    assert done.returncode == 1
    assert done.stderr == "sanduk: the output could not be written: No space left on device\n"
