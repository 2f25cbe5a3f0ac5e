"""The shell that recipes and scripts are made of, run on this machine with stand-in programs."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest

from recipes import load, render
from recipes.catalog import SHIPPED
from tests.recipes.conftest import Write

SCRIPTS = Path(__file__).parents[2] / "scripts"
WORDS = [
    "apt-get", "awk", "cat", "chmod", "cp", "dirname", "env", "grep", "gzip", "head", "id",
    "install", "ln", "mkdir", "mktemp", "mv", "rm", "sed", "sh", "sha256sum", "sleep", "tail",
    "tar", "timeout", "tr", "uname",
]  # fmt: skip


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A PATH of its own with ordinary programs; a test adds or replaces some."""
    directory = tmp_path / "programs"
    directory.mkdir()
    for word in WORDS:
        if found := shutil.which(word):
            (directory / word).symlink_to(found)
    return directory


def program(programs: Path, name: str, script: str) -> None:
    (programs / name).unlink(missing_ok=True)
    (programs / name).write_text(f"#!/bin/sh\n{script}\n")
    (programs / name).chmod(0o755)


def run(programs: Path, *command: str | Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(word) for word in command],
        env={"PATH": str(programs), **env},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


# -- downloads ---------------------------------------------------------------------------------


def archive(*members: str) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for member in members:
            info = tarfile.TarInfo(member)
            info.size, info.mode, info.uid = 3, 0o755, 4242
            tar.addfile(info, io.BytesIO(b"hi\n"))
    return buffer.getvalue()


def download(
    write: Write, programs: Path, tmp_path: Path, content: bytes, sha256: str = "", **keys: Any
) -> subprocess.CompletedProcess[str]:
    """Run the script of a download section, with curl handing out the content."""
    served = tmp_path / "served"
    served.write_bytes(content)
    program(
        programs,
        "curl",
        f'while [ "$1" != --output ]; do shift; done; cp {served} "$2"; echo "$3" >&2',
    )
    program(programs, "dpkg", "echo amd64")
    artifact = {
        "url": "https://x.invalid/d.tgz",
        "sha256": sha256 or hashlib.sha256(content).hexdigest(),
        **keys.pop("artifact", {}),
    }
    section = {"name": "d", "artifacts": {"amd64": artifact}, **keys}
    made = render(load(str(write("x", sections=[section]))), arch="amd64")
    made.write(tmp_path)
    return run(programs, "sh", "-eu", tmp_path / "steps" / "x-d.sh", TMPDIR=str(tmp_path))


def test_a_program_is_installed_from_its_download(
    write: Write, programs: Path, tmp_path: Path
) -> None:
    target = tmp_path / "bin" / "d"
    done = download(write, programs, tmp_path, b"program", type="binary", path=str(target))
    assert (done.returncode, done.stderr) == (0, "https://x.invalid/d.tgz\n")
    assert target.read_bytes() == b"program"
    assert target.stat().st_mode & 0o777 == 0o755


def test_a_program_is_taken_out_of_an_archive(write: Write, programs: Path, tmp_path: Path) -> None:
    target = tmp_path / "bin" / "d"
    content = archive("d-1/bin/d", "d-1/README")
    done = download(
        write, programs, tmp_path, content,
        type="binary", path=str(target), artifact={"member": "d-1/bin/d"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert target.read_bytes() == b"hi\n"


def test_k5_an_archive_is_unpacked_stripped_linked_and_owned_by_whoever_unpacks(
    write: Write, programs: Path, tmp_path: Path
) -> None:
    dest, link = tmp_path / "opt", tmp_path / "bin" / "d"
    done = download(
        write, programs, tmp_path, archive("d-1/bin/d"),
        type="archive", dest=str(dest), links={str(link): "bin/d"}, artifact={"strip": 1},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert link.read_bytes() == b"hi\n"
    assert (dest / "bin" / "d").stat().st_uid == os.getuid()


def test_a_download_with_another_hash_is_refused_with_both(
    write: Write, programs: Path, tmp_path: Path
) -> None:
    target = tmp_path / "d"
    done = download(
        write, programs, tmp_path, b"other", sha256="0" * 64, type="binary", path=str(target)
    )
    assert done.returncode == 1
    assert "0" * 64 in done.stderr
    assert hashlib.sha256(b"other").hexdigest() in done.stderr
    assert not target.exists()


@pytest.mark.parametrize("member", ["/tmp/absolute", "../above", "a/../../above"])
def test_an_archive_that_leaves_its_place_is_refused(
    write: Write, programs: Path, tmp_path: Path, member: str
) -> None:
    dest = tmp_path / "opt"
    done = download(write, programs, tmp_path, archive(member), type="archive", dest=str(dest))
    assert done.returncode == 1
    assert "leaves the archive" in done.stderr
    assert not dest.exists()


def test_an_unknown_architecture_fails_the_build(
    write: Write, programs: Path, tmp_path: Path
) -> None:
    download(write, programs, tmp_path, b"x", type="binary", path=str(tmp_path / "d"))
    program(programs, "dpkg", "echo riscv64")
    done = run(programs, "sh", "-eu", tmp_path / "steps" / "x-d.sh", TMPDIR=str(tmp_path))
    assert done.returncode == 1
    assert "nothing to download for this architecture" in done.stderr


# -- pi's wrapper --------------------------------------------------------------------------------


def test_pi_s_wrapper_writes_the_models_and_becomes_pi(programs: Path, tmp_path: Path) -> None:
    program(programs, "pi", 'printf "%s|" "$@"')
    directory = tmp_path / "home" / "a b"
    done = run(
        programs,
        SHIPPED / "pi" / "sanduk-pi", "--", "-x y", "",
        HOME=str(tmp_path), PI_CODING_AGENT_DIR=str(directory), SANDUK_MODELS_JSON='{"a": "\\n"}',
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "--|-x y||")
    assert (directory / "models.json").read_text() == '{"a": "\\n"}\n'


def test_pi_s_wrapper_leaves_the_models_alone_when_it_has_none(
    programs: Path, tmp_path: Path
) -> None:
    program(programs, "pi", "echo pi")
    done = run(programs, SHIPPED / "pi" / "sanduk-pi", HOME=str(tmp_path))
    assert (done.returncode, done.stdout) == (0, "pi\n")
    assert not (tmp_path / ".pi").exists()


# -- prime's wrapper -----------------------------------------------------------------------------


def test_prime_s_wrapper_writes_the_models_and_becomes_prime(
    programs: Path,
    tmp_path: Path,
) -> None:
    program(programs, "prime-agent", 'printf "%s|" "$@"')
    directory = tmp_path / "home" / "a b"
    done = run(
        programs, SHIPPED / "prime" / "sanduk-prime", "--", "-x y", "",
        HOME=str(tmp_path), PRIME_AGENT_CODING_AGENT_DIR=str(directory),
        SANDUK_MODELS_JSON='{"a": "\\n"}',
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "--|-x y||")
    assert (directory / "models.json").read_text() == '{"a": "\\n"}\n'


def test_prime_s_wrapper_leaves_the_models_alone_when_it_has_none(
    programs: Path,
    tmp_path: Path,
) -> None:
    program(programs, "prime-agent", "echo prime")
    done = run(programs, SHIPPED / "prime" / "sanduk-prime", HOME=str(tmp_path))
    assert (done.returncode, done.stdout) == (0, "prime\n")
    assert not (tmp_path / ".prime").exists()


@pytest.mark.parametrize(("given", "seen"), [({}, "1"), ({"UV_OFFLINE": "0"}, "0")])
def test_prime_s_python_asks_no_package_index_unless_told_to(
    programs: Path,
    tmp_path: Path,
    given: dict[str, str],
    seen: str,
) -> None:
    program(programs, "prime-agent", 'echo "$UV_OFFLINE"')
    done = run(programs, SHIPPED / "prime" / "sanduk-prime", HOME=str(tmp_path), **given)
    assert (done.returncode, done.stdout) == (0, f"{seen}\n")


# -- engine-up -----------------------------------------------------------------------------------

DOCKER_THAT_HAS_ALL = 'case "$1" in version) echo 99.0 ;; image) exit 0 ;; *) exit 9 ;; esac'


def engine_up(programs: Path, tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return run(
        programs,
        SCRIPTS / "engine-up", *words,
        SANDUK_ENGINE_DIR=str(tmp_path / "engine"), TMPDIR=str(tmp_path),
    )  # fmt: skip


def test_an_engine_that_has_everything_is_left_alone(programs: Path, tmp_path: Path) -> None:
    program(programs, "docker", DOCKER_THAT_HAS_ALL)
    done = engine_up(programs, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Docker 99.0 answers" in done.stdout
    assert done.stdout.count(" is there") == 3


def test_missing_base_images_are_pulled_where_a_registry_answers(
    programs: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    program(
        programs,
        "docker",
        f'case "$1" in version) ;; pull) echo "$3" >>{log} ;; *) exit 1 ;; esac',
    )
    done = engine_up(programs, tmp_path)
    assert done.returncode == 0, done.stderr
    assert log.read_text().split() == ["debian:trixie-slim", "python:3.13-slim", "node:22-slim"]


@pytest.mark.parametrize("words", [[], ["--podman"]])
def test_a_normal_user_without_an_engine_gets_the_command(
    programs: Path, tmp_path: Path, words: list[str]
) -> None:
    if not Path("/etc/debian_version").exists():
        pytest.skip("not Debian or Ubuntu")
    program(programs, "docker", "exit 1")
    program(programs, "id", "echo 4242")
    done = engine_up(programs, tmp_path, *words)
    assert done.returncode == 2
    assert "sudo" in done.stderr


@pytest.mark.parametrize(
    ("tool", "command"),
    [
        ("dnf", "sudo dnf install"),
        ("pacman", "sudo pacman -S"),
        ("apk", "sudo apk add"),
        (None, "install and start Docker"),
    ],
)
def test_another_distribution_gets_its_own_command(
    programs: Path, tmp_path: Path, tool: str | None, command: str
) -> None:
    (programs / "apt-get").unlink(missing_ok=True)
    program(programs, "docker", "exit 1")
    if tool:
        program(programs, tool, "exit 0")
    done = engine_up(programs, tmp_path)
    assert done.returncode == 2
    assert command in done.stderr


@pytest.mark.parametrize("script", ["engine-up", "engine-down"])
def test_an_unknown_word_is_refused_with_the_usage(programs: Path, script: str) -> None:
    done = run(programs, SCRIPTS / script, "--frobnicate")
    assert done.returncode == 2
    assert "Usage: " in done.stdout + done.stderr


@pytest.mark.parametrize("script", ["engine-up", "engine-down"])
def test_help_explains_and_does_nothing(programs: Path, script: str) -> None:
    done = run(programs, SCRIPTS / script, "--help")
    assert done.returncode == 0
    assert done.stdout.startswith("Usage: ")


def test_the_shell_scripts_are_clean() -> None:
    if not (shellcheck := shutil.which("shellcheck")):
        pytest.skip("shellcheck is not installed")
    package = SHIPPED.parent
    scripts = [
        SCRIPTS / "engine-up",
        SCRIPTS / "engine-down",
        *package.glob("steps/*.sh"),
        *package.glob("shipped/*/sanduk-*"),
    ]
    done = subprocess.run([shellcheck, *scripts], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
