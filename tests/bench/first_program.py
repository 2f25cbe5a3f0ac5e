"""The first program, sanduk 0.3.1, as a black box in an environment of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

from tests.bench.engine_side import docker
from tests.bench.rounds import Visit

VERSION = "0.3.1"
NETWORK = "sanduk-net"  # what it makes for sealed runs
_network_was_there = True


def install(root: Path) -> tuple[Path | None, str]:
    """Its interpreter, or None and the reason why it cannot be had. Installed once per `root`."""
    python = root / "first-program" / "bin" / "python"
    if python.exists():
        return python, ""
    venv.create(root / "first-program", with_pip=True)
    pip = [str(python), "-m", "pip", "install", "--quiet", "--no-deps"]
    done = subprocess.run([*pip, f"sanduk=={VERSION}"], capture_output=True, text=True)
    if done.returncode:
        python.unlink()
        return None, f"sanduk {VERSION} cannot be installed here"
    return python, ""


def subject(root: Path, workspace: Path, image: str) -> tuple[Visit | None, str]:
    """A sealed run of it, or None and the reason why it cannot be measured here."""
    global _network_was_there
    python, why = install(root)
    if python is None:
        return None, why
    _network_was_there = NETWORK in docker("network", "ls", "--format", "{{.Name}}").split()
    environment = {
        **os.environ,
        "XDG_STATE_HOME": str(root / "first-state"),
        "OPENAI_API_KEY": "sk-bench-placeholder",
    }
    command = [
        str(python.with_name("sanduk")), "run", "--quiet", "--mode", "sealed", "--skip-key-check",
        "--agent", "hax", "--image", image, "--model", "m", "--cpus", "2",
        "-w", str(workspace), "x",
    ]  # fmt: skip

    def run() -> None:
        ended = subprocess.run(command, env=environment, capture_output=True, text=True)
        if ended.returncode:
            raise RuntimeError(f"the first program failed: {ended.stderr[-500:]}")

    try:
        run()
    except RuntimeError as exc:
        print(exc, file=sys.stderr)
        return None, "it does not run here"
    return run, ""


def clean_up() -> None:
    """Remove the network it made, if it made one."""
    if not _network_was_there:
        docker("network", "rm", NETWORK, check=False)
