"""The real command on a machine where only given shell scripts stand for other programs."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from subprocess import CompletedProcess, run

from tests.migrated import prepared

ROOT = Path(__file__).parents[2]


def asked(
    place: Path, *words: str, scripts: Mapping[str, str], env: Mapping[str, str]
) -> CompletedProcess[str]:
    """`sanduk WORDS` with its state in `place`; scripts of earlier calls stay there."""
    folder = place / "bin"
    folder.mkdir(exist_ok=True)
    for name in ("sh", "cat"):
        if not (folder / name).exists():
            (folder / name).symlink_to(f"/bin/{name}")
    for name, script in scripts.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    given = {
        "PATH": str(folder),
        "HOME": str(place),
        "SANDUK_HOME": str(prepared(place / "state")),
        "PYTHONPATH": str(ROOT),
        "DOCKER_HOST": f"unix://{place}/none.sock",
        **env,
    }
    command = [sys.executable, "-m", "sanduk_site", *words]
    done = run(command, env=given, capture_output=True, text=True, timeout=60, check=False)
    assert "Traceback" not in done.stderr, done.stderr
    return done
