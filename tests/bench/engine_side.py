"""What the benches do with an engine directly, without sanduk: the baselines."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

LABEL = "sanduk.install=bench"
IMAGE = "sanduk-bench-trivial:1"
# one line that both programs' readers take for a success
ENDING = '{"type":"result","ok":true,"outcome":"complete","text":"done"}'
SCRIPT = f"#!/bin/sh\necho done > /work/REPORT.md\necho '{ENDING}'\n"
CONTAINERFILE = f"""\
FROM debian:trixie-slim
COPY trivial /usr/local/bin/trivial
USER 1000:1000
WORKDIR /work
LABEL {LABEL}
ENTRYPOINT ["/usr/local/bin/trivial"]
"""
HARDENED = (
    "--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--init", "--pids-limit", "1024",
    "--memory", "4g", "--memory-swap", "4g", "--cpus", "2", "--label", LABEL,
)  # fmt: skip


def docker(*words: str, check: bool = True, **options: object) -> str:
    done = subprocess.run(
        ["docker", *words],
        check=check,
        capture_output=True,
        text=True,
        **options,  # type: ignore[call-overload]
    )
    return str(done.stdout).strip()


def build_trivial() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        Path(scratch, "Dockerfile").write_text(CONTAINERFILE)
        script = Path(scratch, "trivial")
        script.write_text(SCRIPT)
        script.chmod(0o755)
        docker("build", "-q", "-t", IMAGE, scratch, env={**os.environ, "DOCKER_BUILDKIT": "0"})


def raw_pair(workspace: Path) -> None:
    """The least a sealed run can be: two containers, one namespace, output read, both removed."""
    link = docker("create", "--network", "none", *HARDENED, "--entrypoint", "sleep", IMAGE, "60")
    docker("start", link)
    mount = f"type=bind,src={workspace},dst=/work"
    agent = docker(
        "create", "--network", f"container:{link}", *HARDENED, "--user", "1000:1000",
        "--mount", mount, IMAGE,
    )  # fmt: skip
    docker("start", "--attach", agent)
    docker("inspect", agent)
    docker("rm", "--force", agent, link)


@contextlib.contextmanager
def internal_network() -> Iterator[tuple[str, str]]:
    """Name and gateway of an internal network that lives as long as the block."""
    name = "sanduk-bench"
    docker("network", "create", "--internal", "--label", LABEL, name)
    try:
        form = "{{(index .IPAM.Config 0).Gateway}}"
        yield name, docker("network", "inspect", "-f", form, name)
    finally:
        docker("network", "rm", name)
