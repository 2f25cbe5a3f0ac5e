"""Keys in a container: none of N in relayed modes, and in open mode the one that was asked for."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from relay import get_provider, provider_names
from tests.engine.engine_fixtures import told
from tests.engine.running import READY, Going, Installation

pytestmark = pytest.mark.engine
VARIABLES = sorted({get_provider(name).key_env for name in provider_names()} - {""})
KEYS = {name: f"sk-canary-{hashlib.sha256(name.encode()).hexdigest()}" for name in VARIABLES}
# each environment, argument and small file in the container, as its own user sees it
LOOK = r"""
python3 - <<'LOOK'
import glob, hashlib, json, os, re
found = set()
def look(path):
    try:
        with open(path, "rb") as file:
            found.update(re.findall(rb"sk-canary-[0-9a-f]{64}", file.read(1 << 20)))
    except OSError:
        pass
for place in ("environ", "cmdline", "mountinfo"):
    for path in glob.glob(f"/proc/[0-9]*/{place}"):
        look(path)
for top in ("/run", "/work", "/home", "/tmp", "/etc", "/root"):
    for folder, _, names in os.walk(top):
        for name in names:
            path = os.path.join(folder, name)
            if os.path.isfile(path):
                look(path)
# only digests: what is printed is kept
print(json.dumps({"keys": sorted(hashlib.sha256(key).hexdigest() for key in found)}), flush=True)
LOOK
"""
STAY = f"{LOOK}{READY}; sleep 60"


def in_container(made: Installation) -> list[str]:
    """The names of the keys that the agent found around itself."""
    log = made.home / "runs" / made.row["uid"] / "output.log"
    found = next(line for line in log.read_text().splitlines() if line.startswith('{"keys"'))
    digests = json.loads(found)["keys"]
    known = {hashlib.sha256(key.encode()).hexdigest(): name for name, key in KEYS.items()}
    return [known[digest] for digest in digests]


def on_host(made: Installation, going: Going) -> dict[str, str]:
    """What anybody on this host, or with the engine, may read of a run that is going on."""
    containers = made.containers()
    images = {made.engine_says("inspect", "--format", "{{.Image}}", each) for each in containers}
    argv = [p.read_bytes() for p in Path("/proc").glob("[0-9]*/cmdline") if _alive(p)]
    return {
        "inspect": made.engine_says("inspect", *containers),
        "history": "\n".join(
            made.engine_says("history", "--no-trunc", "--format", "{{json .}}", each)
            for each in images
        ),
        "logs": "\n".join(
            done.stdout + done.stderr for done in (told(made.cli, "logs", c) for c in containers)
        ),
        "argv": b"\n".join(argv).decode("utf-8", "replace"),
        "stdout": going.out.read_text(),
        "stderr": going.err.read_text(),
    }


def _alive(path: Path) -> bool:
    try:
        return bool(path.read_bytes())
    except OSError:
        return False


def in_state(made: Installation) -> str:
    """All of the state directory, database and its journal included."""
    return "\n".join(
        file.read_bytes().decode("latin-1") for file in made.home.rglob("*") if file.is_file()
    )


def keys_in(text: str) -> set[str]:
    return {key for key in KEYS.values() if key in text}


@pytest.fixture
def metadata_address() -> Iterator[None]:
    """A key-safe run's probe tries 169.254.169.254: let that be this machine, and nobody else."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("only root, with iproute2, can give this machine the metadata address")
    words = ("169.254.169.254/32", "dev", "lo")
    added = subprocess.run(["ip", "addr", "add", *words], capture_output=True).returncode == 0
    yield
    if added:
        subprocess.run(["ip", "addr", "del", *words], check=True)


@pytest.mark.usefixtures("metadata_address")
@pytest.mark.parametrize("mode", ["sealed", "key-safe"])
def test_the_container_holds_none_of_the_keys(installation: Installation, mode: str):
    """With every provider's key exported: 0 of N, and none of them anywhere else either."""
    going = installation.begin(STAY, "--mode", mode, "--provider", "openai", **KEYS)
    places = on_host(installation, going)
    inside = in_container(installation)
    done = going.signal(2).end()

    assert len(KEYS) >= 3
    assert inside == [], f"keys in the container: {len(inside)} of {len(KEYS)}"
    assert {place for place, text in places.items() if keys_in(text)} == set()
    assert keys_in(in_state(installation)) == set()
    assert keys_in(done.out + done.err) == set()
    assert done.code == 130
    installation.nothing_left()


def test_in_open_mode_the_same_look_finds_the_one_key_and_inspect_does_not(docker: Installation):
    """So the look above can fail. No call is made: the container has no network either."""
    going = docker.begin(
        STAY, "--mode", "open", "--network", "none", "--provider", "openai", **KEYS
    )
    places = on_host(docker, going)
    inside = in_container(docker)
    going.signal(2).end()

    assert inside == ["OPENAI_API_KEY"]
    assert {place for place, text in places.items() if keys_in(text)} == set()
    assert keys_in(in_state(docker)) == set()
    docker.nothing_left()


def test_the_run_token_is_in_no_argument_and_dies_with_the_run(docker: Installation):
    script = """printf '{"type": "text", "text": "token %s"}\\n' "$RELAY_TOKEN"; sleep 60"""
    going = docker.begin(script, word="token ").until("\n")
    (token,) = re.findall(r"token (\S+)", going.out.read_text())
    places = on_host(docker, going)
    boxes = docker.boxes()
    going.signal(2).end()

    assert len(token) > 20
    assert token not in places["argv"]
    assert token not in places["inspect"]
    assert len(boxes) == 1
    assert docker.boxes() == []


@pytest.mark.parametrize("name", ["OPENAI_API_KEY", "ANTHROPIC_API_KEY"])
def test_a_key_cannot_be_lent_to_a_sealed_container(docker: Installation, name: str):
    """C-4: neither by its name nor as the value of another."""
    by_name = docker.run(STAY, "--env", name, **KEYS)
    by_value = docker.run(STAY, "--env", f"OTHER={KEYS[name]}", **KEYS)

    assert by_name.code == by_value.code == 2
    assert name in by_name.line
    assert keys_in(by_name.err + by_value.err) == set()


def test_a_private_box_is_closed_to_everybody_else(docker: Installation):
    going = docker.begin(STAY)
    (box,) = docker.boxes()
    modes = {
        str(p.relative_to(box.parent.parent)): p.stat().st_mode & 0o777 for p in (box.parent, box)
    }
    going.signal(2).end()

    assert set(modes.values()) == {0o700}


def test_a_strangers_processes_cannot_read_a_runs_files(docker: Installation, needs_root: None):
    going = docker.begin(STAY)
    (box,) = docker.boxes()
    stranger = ("setpriv", "--reuid", "4242", "--regid", "4242", "--clear-groups")
    tried = [
        subprocess.run([*stranger, "cat", str(path)], capture_output=True, check=False)
        for path in (box / "env", box / "stdin", docker.home / "sanduk.sqlite3")
    ]
    going.signal(2).end()

    assert all(done.returncode != 0 for done in tried)
    assert all(b"Permission denied" in done.stderr for done in tried)
