"""`sanduk` works from a plain installed wheel, with no checkout anywhere near."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def quietly(*words: str | Path, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env={"PATH": os.environ["PATH"], "HOME": str(cwd), "LC_ALL": "C.UTF-8", **env},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    print(done.stdout[-3000:], done.stderr[-3000:])
    return done


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("hatchling", reason="the build backend is not installed")
    directory = tmp_path_factory.mktemp("wheel")
    done = quietly(
        sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", directory, cwd=ROOT
    )
    assert done.returncode == 0
    [found] = directory.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `sanduk` of a fresh environment; what it depends on comes from this one."""
    directory = tmp_path_factory.mktemp("installed")
    assert quietly(sys.executable, "-m", "venv", directory / "venv", cwd=directory).returncode == 0
    python = directory / "venv" / "bin" / "python"
    words = (python, "-m", "pip", "install", "--no-deps", "--no-index", "--quiet", wheel)
    assert quietly(*words, cwd=directory).returncode == 0
    asked = quietly(
        python, "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])", cwd=directory
    )
    ours = sysconfig.get_paths()
    lines = "\n".join(dict.fromkeys((ours["purelib"], ours["platlib"])))
    (Path(asked.stdout.strip()) / "dependencies.pth").write_text(f"{lines}\n")
    return directory / "venv" / "bin" / "sanduk"


@pytest.mark.parametrize(
    "name",
    [
        "sanduk_site/settings.py",
        "runs/boxed/entry.sh",
        "runs/boxed/shell.sh",
        "runs/engines/seccomp.json",
        "runs/migrations/0001_initial.py",
        "runs/management/commands/sanduk_run.py",
        "relay/providers.toml",
        "relay/rehearsal/report.sh",
        "recipes/shipped/claude.json",
        "recipes/shipped/codex.json",
        "recipes/shipped/pi.json",
        "recipes/shipped/pi/sanduk-pi",
        "recipes/shipped/link.json",
        "recipes/shipped/link/link.py",
        "recipes/shipped/link/namespace.py",
        "recipes/shipped/link/probe.py",
        "recipes/steps/agent-user.sh",
        "recipes/steps/open-home.sh",
    ],
)
def test_the_wheel_holds(wheel: Path, name):
    assert name in zipfile.ZipFile(wheel).namelist()


def test_the_wheel_holds_every_file_of_the_packages(wheel: Path):
    names = set(zipfile.ZipFile(wheel).namelist())
    expected = {
        path.relative_to(ROOT).as_posix()
        for package in ("sanduk_site", "runs", "relay", "recipes", "assistants", "changes")
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    templates = {
        f"sanduk_site/{path.relative_to(ROOT).as_posix()}"
        for path in (ROOT / "templates").rglob("*")
        if path.is_file()
    }

    assert expected | templates <= names
    strangers = {n for n in names if n.startswith(("tests/", "docs/", "scripts/", "work/"))}
    assert not strangers


def test_the_wheels_metadata_names_the_command_and_the_licence(wheel: Path):
    archive = zipfile.ZipFile(wheel)
    [metadata] = [n for n in archive.namelist() if n.endswith(".dist-info/METADATA")]
    [entries] = [n for n in archive.namelist() if n.endswith(".dist-info/entry_points.txt")]

    assert "License-Expression: MIT" in archive.read(metadata).decode()
    assert "sanduk = sanduk_site.cli:main" in archive.read(entries).decode()


def test_an_installed_sanduk_lists_its_recipes_from_anywhere(installed: Path, tmp_path: Path):
    done = quietly(installed, "list", "recipes", cwd=tmp_path)

    assert done.returncode == 0
    assert {line.split()[0] for line in done.stdout.splitlines()} >= {
        "claude",
        "codex",
        "pi",
        "link",
    }
    assert not list(tmp_path.iterdir()), "listing leaves nothing behind"


def test_an_installed_sanduk_uses_its_own_files(installed: Path, tmp_path: Path):
    python = installed.with_name("python")
    code = "import recipes, runs.box, relay; print(recipes.__file__, runs.box.ENTRY.is_file())"

    done = quietly(python, "-c", code, cwd=tmp_path)

    assert done.stdout.startswith(str(installed.parent.parent))
    assert done.stdout.strip().endswith("True")


def test_an_installed_sanduk_plans_a_run_and_makes_its_database(installed: Path, tmp_path: Path):
    state = tmp_path / "state"
    words = (
        "run",
        "--agent",
        "pi",
        "--provider",
        "rehearsal",
        "-w",
        tmp_path / "w",
        "--dry-run",
        "x",
    )

    dry = quietly(installed, *words, cwd=tmp_path, SANDUK_HOME=str(state))
    runs = quietly(installed, "runs", "--json", cwd=tmp_path, SANDUK_HOME=str(state))

    assert dry.returncode == 0
    assert (runs.returncode, runs.stdout.strip()) == (0, "[]")
    assert (state / "sanduk.sqlite3").is_file()
