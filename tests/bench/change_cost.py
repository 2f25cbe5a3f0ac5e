"""What a change of a repository costs beside the plain git of the same: in, out and landed."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

from tests.bench.rounds import measure
from tests.bench.setting import Setting

FILES = 3_000
IN, OUT, LANDED = "provide and clone, seconds", "read the result, seconds", "land, seconds"
OURS, CLONE, ADD, BARE = "sanduk", "git clone", "git add", "commit-tree"
TARGETS = {IN: 2.0, LANDED: 10.0}


def measure_changes(
    setting: Setting, landed: int = FILES, provided: int = 10_000, read: int = 50_000
) -> None:
    """Land on a repository of so many files, provide one, and read so many new ones."""
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    django.setup()
    setting.report.section(f"changes: {landed:,} files landed, {provided:,} in, {read:,} out")
    _measure_landing(setting, landed)
    _measure_providing(setting, provided)
    _measure_reading(setting, read)


def _measure_landing(setting: Setting, files: int) -> None:
    from tests.changes import making

    where = setting.root / "landing"
    made = making.scene(where, making.repository(where / "r", _files(files)))
    made.write({"README.md": b"edited\n", "new": b"1\n"})
    tree, number = made.read().tree, itertools.count()

    def bare() -> None:
        words = ("commit-tree", tree, "-p", made.base, "-m", f"number {next(number)}")
        commit = making.text_of(making.person_git(made.repository, *words))
        ref = f"refs/heads/bare-{next(number)}"
        making.person_git(made.repository, "update-ref", ref, commit, "0" * 40)

    def ours() -> None:
        making.landed(made, tree, branch=f"ours-{next(number)}")

    ours()  # the objects a bare commit-tree needs are there from now on
    _compare(setting, LANDED, BARE, measure({BARE: bare, OURS: ours}, setting.effort.rounds))


def _measure_providing(setting: Setting, files: int) -> None:
    from tests.changes import making

    where = setting.root / "providing"
    source, number = making.repository(where / "r", _files(files)), itertools.count()

    def clone() -> None:
        making.person_git(where, "clone", "-q", "r", f"clone-{next(number)}")

    def ours() -> None:
        making.scene(where / f"ours-{next(number)}", source)

    _compare(setting, IN, CLONE, measure({CLONE: clone, OURS: ours}, setting.effort.rounds))


def _measure_reading(setting: Setting, files: int) -> None:
    from tests.changes import making

    where = setting.root / "reading"
    made, number = making.scene(where, making.repository(where / "r")), itertools.count()
    made.write(_files(files))
    expected = made.read().tree

    def add() -> None:
        empty = {"GIT_DIR": str(where / f"add-{next(number)}.git")}
        making.person_git(made.clone, "init", "-q", env=empty)
        making.person_git(made.clone, "--work-tree=.", "add", "-A", "--force", env=empty)

    def ours() -> None:
        if made.read().tree != expected:
            raise AssertionError("the same files made another tree")

    _compare(setting, OUT, ADD, measure({ADD: add, OURS: ours}, setting.effort.rounds))


def _compare(setting: Setting, label: str, other: str, seconds: dict[str, float]) -> None:
    setting.report.table([OURS, other], OURS, [(label, seconds)])
    if label in TARGETS:
        ratio = seconds[OURS] / seconds[other]
        setting.report.target(label.replace("seconds", f"beside {other}"), ratio, TARGETS[label])


def _files(count: int) -> dict[str | bytes, bytes]:
    return {
        str(Path(f"part-{number % 100}") / f"file-{number}"): b"content %d\n" % number * 20
        for number in range(count)
    }
