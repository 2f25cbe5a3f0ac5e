"""What a sealed run costs beyond its agent: `python -m tests.bench run`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.bench import first_program
from tests.bench.engine_side import IMAGE, build_trivial, raw_pair
from tests.bench.report import Report
from tests.bench.rounds import Visit, measure
from tests.bench.setting import Setting

BARE = "import django; django.setup()"


def measure_run(setting: Setting) -> None:
    root, rounds = setting.root, setting.effort.run_rounds
    setting.report.section("a sealed run of an agent that exits at once, command to command")
    build_trivial()
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
    first, why = _first(setting, workspace)
    if first is not None:
        subjects["first program"] = first
    times = measure(subjects, rounds)
    first_program.clean_up()
    _tell(setting.report, times, rounds, why)


def _first(setting: Setting, workspace: Path) -> tuple[Visit | None, str]:
    if not setting.with_first:
        return None, "it was not asked for"
    return first_program.subject(setting.root, workspace, IMAGE)


def _tell(report: Report, times: dict[str, float], rounds: int, why: str) -> None:
    report.figure(f"ms (medians of {rounds})", {name: s * 1000 for name, s in times.items()})
    floor = times["raw pair"] + times["bare setup"]
    report.target("ours / (raw pair + bare django.setup())", times["ours"] / floor, 1.5)
    if "first program" in times:
        report.target("ours / first program 0.3.1", times["ours"] / times["first program"], 0.8)
    else:
        report.note(f"the first program is left out: {why}")
