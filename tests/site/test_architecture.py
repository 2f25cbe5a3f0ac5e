"""The house rules that a machine can check."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("sanduk_site", "assistants", "changes", "runs", "relay", "recipes")
ABOUT_400 = 400
IN_A_BOX = "sanduk_site/boundary/inside/"  # runs in no process of ours
A_SCRIPT = 450  # of the shell, which cannot import its parts


def tool(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", *words]
    if words[0] == "lint-imports":
        command = [str(Path(sys.executable).with_name("lint-imports")), *words[1:]]
    return subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def clean(done: subprocess.CompletedProcess[str]) -> bool:
    print(done.stdout[-4000:], done.stderr[-4000:])
    return done.returncode == 0


def sources() -> Iterator[Path]:
    for package in PACKAGES:
        yield from sorted((ROOT / package).rglob("*.py"))


def tracked() -> list[Path]:
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("not a git checkout")
    done = subprocess.run(
        ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z"],
        cwd=ROOT,
        capture_output=True,
        check=True,
        timeout=30,
    )
    names = [os.fsdecode(name) for name in done.stdout.split(b"\0") if name]
    return [ROOT / name for name in names if (ROOT / name).is_file()]


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_imports_point_one_way():
    assert clean(tool("lint-imports"))


def test_no_migration_is_missing(tmp_path: Path):
    assert clean(
        tool(
            "django", "makemigrations", "--check", "--dry-run",
            DJANGO_SETTINGS_MODULE="tests.settings", SANDUK_TEST_HOME=str(tmp_path), PYTHONPATH=".",
        )
    )  # fmt: skip


def test_the_linter_finds_nothing():
    assert clean(tool("ruff", "check", "."))


def test_the_formatter_finds_nothing():
    assert clean(tool("ruff", "format", "--check", "."))


def test_the_types_hold():
    assert clean(tool("mypy", "relay", "recipes", "runs", "assistants", "changes", "sanduk_site"))


def test_every_part_has_its_place():
    for package in PACKAGES:
        assert (ROOT / package / "__init__.py").is_file(), package


def test_no_file_is_too_long_to_know():
    scripts = [p for p in (ROOT / "scripts").iterdir() if p.is_file()]
    files = [*sources(), *(ROOT / "tests").rglob("*.py"), *scripts]
    lines = {path: len(path.read_text().splitlines()) for path in files}
    assert not {
        name_of(path): count
        for path, count in lines.items()
        if count > (A_SCRIPT if path in scripts else ABOUT_400)
    }


def test_no_module_is_a_drawer_for_everything():
    forbidden = {"utils", "helpers", "common", "services", "manager", "managers", "misc"}

    assert not [name_of(path) for path in sources() if path.stem in forbidden]


def imported(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module)
    return {name.partition(".")[0] for name in found}


def test_the_queue_is_known_to_one_module():
    users = {name_of(path) for path in sources() if "django_q" in imported(path)}

    assert users <= {"runs/queue.py"}


STARTERS = {
    "Popen", "run", "call", "check_call", "check_output", "system", "popen", "execv", "execve",
    "execvp", "execvpe", "posix_spawn", "posix_spawnp", "create_subprocess_exec",
    "create_subprocess_shell", "subprocess_exec", "subprocess_shell", "spawnv", "spawnvp",
}  # fmt: skip


def starts_a_process(path: Path) -> bool:
    for node in ast.walk(ast.parse(path.read_text())):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        owner = node.func.value
        named = isinstance(owner, ast.Name) and owner.id in ("subprocess", "os", "asyncio")
        if named and node.func.attr in STARTERS:
            asyncio_run = (owner.id, node.func.attr) == ("asyncio", "run")  # type: ignore[attr-defined]
            if not asyncio_run:
                return True
    return False


def test_only_the_engines_package_starts_an_engines_command():
    """Others start only the undertaker's shell and our own executor; an engine is never named."""
    outside = {
        name_of(path): path
        for path in sources()
        if not name_of(path).startswith(("runs/engines/", "recipes/shipped/", IN_A_BOX))
        and starts_a_process(path)
    }

    # what the operator names: a destination's own program, an assistant's gate
    operators = {"assistants/delivery/program.py", "assistants/gate.py"}
    ours = {
        "runs/undertaker.py",
        "runs/management/detach.py",
        "runs/worker.py",
        "assistants/processes.py",
        "sanduk_site/supervisor.py",
        "sanduk_site/boundary/boxes.py",  # `sanduk shell`
        "changes/git.py",  # git alone
        "changes/handover.py",
    }
    assert set(outside) <= ours | operators
    for path in outside.values():
        words = {
            node.value
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        }
        assert not words & {"docker", "podman", "container"}, path


def test_only_supervision_starts_a_relay():
    users = {
        name_of(path)
        for path in sources()
        if not name_of(path).startswith("relay/")
        and re.search(r"\brelay\.serving\(|import[^\n]*\bserving\b", path.read_text())
    }

    assert users <= {"runs/supervise.py", "runs/starting.py"}


# put together here, so that this file does not hold what it looks for
REGISTRIES = [
    "pypi" + r"\.org", "python" + r"hosted\.org", "registry\\." + r"npmjs",
    "npmjs" + r"\.(org|com)",
    "proxy\\." + r"golang\.org", "crates" + r"\.io", "registry-1\\." + r"docker", "ghcr" + r"\.io",
    "quay" + r"\.io", "deb\\." + r"debian\.org", "archive\\." + r"ubuntu\.com",
]  # fmt: skip
MACHINE = ["/work/" + "(main|shared|\\.library)", "/tmp/" + "brief", "/root/" + r"\.pyenv"]


@pytest.mark.parametrize("patterns", [REGISTRIES, MACHINE], ids=["registry", "machine path"])
def test_no_tracked_file_names_one(patterns):
    wanted = re.compile("|".join(patterns), re.IGNORECASE)
    found = []
    for path in tracked():
        text = path.read_bytes().decode("utf-8", "replace")
        found += [f"{name_of(path)}: {match[0]}" for match in wanted.finditer(text)]

    assert not found
