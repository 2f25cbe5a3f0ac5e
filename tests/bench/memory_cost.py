"""What a snapshot of an unchanged workspace costs beside reading the same files."""

from __future__ import annotations

import os
from pathlib import Path

from tests.bench.rounds import measure
from tests.bench.setting import Setting

FILES = 10_000
SIZES = (0, 200, 1500, 6000, 20_000)  # bytes: notes, sources, a few larger ones
READ, SNAPSHOT, BEGIN = "reading", "snapshot", "unchanged workspace, seconds"
LIMIT = 2.0
_MB = 10**6


def measure_memory_cost(setting: Setting, files: int = FILES) -> None:
    """Read each file, and take a snapshot of what did not change."""
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    django.setup()
    from assistants.memory.capture import capture
    from assistants.memory.store import Store

    setting.report.section(f"memory: a workspace of {files:,} files")
    work = setting.root / "workspace"
    _plant(work, files)
    store = Store(setting.root / "memory")

    def snapshot() -> str:
        with store.locked():
            taken = capture(str(work), store, max_bytes=1000 * _MB, is_kept_report=lambda _: False)
        if taken.manifest.files != files or taken.left_out:
            raise AssertionError("the snapshot does not hold the workspace")
        return taken.manifest.digest

    first = snapshot()

    def again() -> None:
        if snapshot() != first:
            raise AssertionError("an unchanged workspace got another digest")

    seconds = measure({READ: lambda: _read(work), SNAPSHOT: again}, setting.effort.rounds)
    setting.report.table([SNAPSHOT, READ], SNAPSHOT, [(BEGIN, seconds)])
    ratio = seconds[SNAPSHOT] / seconds[READ]
    setting.report.target("a snapshot beside reading the files", ratio, LIMIT)


def _plant(work: Path, files: int) -> None:
    for number in range(files):
        place = work / f"part-{number % 100}" / f"deep-{number % 7}"
        place.mkdir(parents=True, exist_ok=True)
        data = f"{number}\n".encode() + os.urandom(SIZES[number % len(SIZES)])
        (place / f"file-{number}").write_bytes(data)


def _read(work: Path) -> None:
    for directory, _, names in os.walk(work):
        for name in names:
            with open(f"{directory}/{name}", "rb") as file:  # noqa: PTH123 - the fastest there is
                file.read()
