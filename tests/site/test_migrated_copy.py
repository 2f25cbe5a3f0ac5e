"""What tests with an engine start from is what the first command makes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.migrated import lay_out


def test_the_first_command_finds_nothing_to_migrate(tmp_path: Path):
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    lay_out(home)
    before = (home / "schema").read_text()

    environment = {"PATH": os.environ["PATH"], "SANDUK_HOME": str(home), "HOME": str(tmp_path)}
    command = [sys.executable, "-m", "sanduk_site", "runs"]
    subprocess.run(command, env=environment, check=True, capture_output=True)

    assert (home / "schema").read_text() == before
