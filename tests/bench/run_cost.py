"""What a sealed run costs beyond its agent: `python -m tests.bench.run_cost`."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.bench import first_program
from tests.bench.engine_side import IMAGE, build_trivial, raw_pair
from tests.bench.rounds import measure, show

ROUNDS = 9
BARE = "import django; django.setup()"


def main() -> None:
    build_trivial()
    with tempfile.TemporaryDirectory(prefix="sanduk-bench-") as scratch:
        root = Path(scratch)
        root.chmod(0o755)
        workspace = root / "work"
        workspace.mkdir()
        if os.geteuid() == 0:
            os.chown(workspace, 1000, 1000)
        environment = {**os.environ, "SANDUK_HOME": str(root / "home")}

        def ours() -> None:
            words = ("run", "-q", "--agent", "scripted-offline", "-i", IMAGE,
                     "--provider", "rehearsal", "-w", str(workspace), "x")  # fmt: skip
            command = [str(Path(sys.executable).with_name("sanduk")), *words]
            subprocess.run(command, env=environment, check=True, capture_output=True)

        def bare_setup() -> None:
            settings = {**environment, "DJANGO_SETTINGS_MODULE": "sanduk_site.settings"}
            subprocess.run([sys.executable, "-c", BARE], env=settings, check=True)

        subjects = {
            "ours": ours,
            "raw pair": lambda: raw_pair(workspace),
            "bare setup": bare_setup,
        }
        first, why = first_program.subject(root, workspace, IMAGE)
        if first is not None:
            subjects["first program"] = first
        times = measure(subjects, ROUNDS)
        first_program.clean_up()

    print("sealed run of an agent that exits at once, command to command")
    for name, each in times.items():
        print(f"  {name:<14} {each * 1000:7.0f} ms (median of {ROUNDS})")
    floor = times["raw pair"] + times["bare setup"]
    show("ours / (raw pair + bare django.setup())", times["ours"] / floor, 1.5)
    if "first program" in times:
        show("ours / first program 0.3.1", times["ours"] / times["first program"], 0.8)
    else:
        print(f"  first program: skipped, {why}")


if __name__ == "__main__":
    main()
