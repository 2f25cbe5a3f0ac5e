"""Boxes for probes: `sanduk shell` in a process of its own, so that nothing differs from a run."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from runs.own_program import own_program

INSIDE = Path(__file__).with_name("inside")
PROBER = "sanduk_site.boundary.prober:Prober"
THERE = "/tmp/boundary"  # noqa: S108 - a path in the box
MAIN = "import sys\nfrom inside import main\nmain(sys.argv[1])"
KEY_VARIABLE = "BOUNDARY_KEY"
ANSWER_MAX = 4 << 20
ANSWER_S = 180.0
END_S = 60.0

Found = dict[str, dict[str, Any]]


class NoAnswer(Exception):
    """The box did not come to be, or said nothing that can be read; the text says why."""


@dataclass
class Box:
    """A shell in a box, its output in files."""

    process: subprocess.Popen[bytes]
    out: IO[bytes]
    err: IO[bytes]
    stack: contextlib.ExitStack = field(repr=False)

    def tell(self, text: str) -> None:
        """Type something."""
        assert self.process.stdin is not None  # noqa: S101 - it is a pipe
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(text.encode())
            self.process.stdin.flush()

    def heard(self) -> bytes:
        self.out.seek(0)
        return self.out.read(ANSWER_MAX)

    def line_after(self, word: str, *, within_s: float = ANSWER_S) -> bytes:
        """The rest of the line that begins with `word`. Raises NoAnswer."""
        end = time.monotonic() + within_s
        while True:
            is_over = self.process.poll() is not None
            for line in self.heard().split(b"\n"):
                if line.startswith(word.encode()) and (line.endswith(b"}") or is_over):
                    return line[len(word) :]
            if is_over or time.monotonic() > end:
                raise NoAnswer(self._why())
            time.sleep(0.05)

    def end(self, *, hurry: bool = False) -> None:
        """Let it end by itself, or end it as a person at a terminal would."""
        if self.process.stdin is not None:
            with contextlib.suppress(OSError):
                self.process.stdin.close()
        if hurry:
            self._signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(END_S)
        if self.process.poll() is None:
            self._signal(signal.SIGKILL)
            self.process.wait(END_S)
        self.stack.close()

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(number)

    def _why(self) -> str:
        self.err.seek(0)
        lines = self.err.read(100_000).decode("utf-8", "replace").strip().splitlines()
        if lines:
            return lines[-1].removeprefix("sanduk: ")
        said = self.heard()[-300:].decode("utf-8", "replace").strip()
        return said or "it said nothing"


def opened(
    work: Path, flags: Sequence[str], *, engine: str, image: str, env: Mapping[str, str]
) -> Box:
    """A shell in a box, with its standard input open.

    Args:
        flags: of `sanduk shell`, besides place, agent, image and engine.
        env: variables over this process's own.
    """
    stack = contextlib.ExitStack()
    out, err = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115 - the box's
    stack.push(out)
    stack.push(err)
    words = ["shell", "--quiet", "--agent", PROBER, "--image", image, "--runtime", engine]
    words += ["--workdir", str(work), "--timeout", "15m", *flags]
    process = subprocess.Popen(
        own_program(*words),
        stdin=subprocess.PIPE, stdout=out, stderr=err, start_new_session=True,
        env={**os.environ, **env},
    )  # fmt: skip
    return Box(process, out, err, stack)


def probing(order: Mapping[str, Any]) -> str:
    """The commands that try the probes an order names, and leave the shell open."""
    end = f"END-{secrets.token_hex(8)}"

    def written(path: str, text: str) -> str:
        return f"cat >{path} <<'{end}'\n{text}\n{end}\n"

    files = [written(f"{THERE}/inside/{file.name}", file.read_text()) for file in sorted_files()]
    files.append(written(f"{THERE}/__main__.py", MAIN))
    files.append(written(f"{THERE}/order.json", json.dumps(order)))
    return f"mkdir -p {THERE}/inside\n{''.join(files)}python3 -I {THERE} {THERE}/order.json\n"


def sorted_files() -> list[Path]:
    """The package that is tried in a box."""
    return sorted(INSIDE.glob("*.py"))


def answer(box: Box, nonce: str) -> Found:
    """What the probes found. Raises NoAnswer when that is nothing they could have said."""
    try:
        found = json.loads(box.line_after(nonce))
    except ValueError:
        raise NoAnswer("what it says is no JSON") from None
    if not isinstance(found, dict) or not all(map(_is_finding, found.values())):
        raise NoAnswer("what it says is of another form")
    return found


def _is_finding(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    reached = value.get("reached", [])
    return isinstance(reached, list) and isinstance(value.get("untried", ""), str)
