"""Real package clients in a sealed container: they reach the hosts on the list, and nothing else.

Where their registries are is asked of this machine's own clients when the test runs.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pip
import pytest

from relay.destinations import is_public
from tests.engine.running import DONE, Installation

pytestmark = pytest.mark.engine
WHEEL, MODULE = "iniconfig", "wrappy"  # small, and pure Python and JavaScript
PROVIDER = "models.invalid"
OWN_PROVIDER = f"""
[own]
scheme = "https"
host = "{PROVIDER}"
prefix = "/v1"
key_env = "OWN_KEY"
default_model = "m"
routes = [{{ path = "/v1/chat/completions", protocol = "openai-chat" }}]
"""

# Says the status and reason of one CONNECT, as a line of the trace.
ASK = """
import json, socket, sys
def ask(where):
    with socket.create_connection(("127.0.0.1", 3128), 5) as door:
        door.sendall(f"CONNECT {where} HTTP/1.1\\r\\nhost: {where}\\r\\n\\r\\n".encode())
        return door.makefile("rb").readline().decode().strip()
for where in sys.argv[1:]:
    print(json.dumps({"type": "text", "text": f"{where} -> {ask(where)}"}), flush=True)
"""
STRAIGHT = """
import json, socket, sys
for host, port in (word.rsplit(":", 1) for word in sys.argv[1:]):
    try:
        socket.create_connection((host, int(port)), 3).close()
        said = "connected"
    except OSError as error:
        said = f"failed: {error}"
    print(json.dumps({"type": "text", "text": f"straight to {host} {said}"}), flush=True)
"""


@dataclass(frozen=True)
class Registry:
    """Where a client gets its packages: an index and the hosts it needs."""

    url: str
    hosts: tuple[str, ...]

    @property
    def flags(self) -> list[str]:
        return [word for host in self.hosts for word in ("--allow-host", host)]


def told(*words: str, env: dict[str, str] | None = None) -> str:
    """What one of this machine's clients answers; without an answer there is nothing to test."""
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, env=env)
    if done.returncode != 0:
        pytest.skip(f"{' '.join(words[:4])} failed on this machine itself: {done.stderr[-300:]}")
    return done.stdout


def registry(url: str, *files: str) -> Registry:
    """Skips what the door cannot carry: it takes https, and dials without another proxy."""
    parts = [urlsplit(each) for each in (url, *files)]
    if any(part.scheme != "https" or not part.hostname for part in parts):
        pytest.skip("this machine's registry is no https address, and the door takes nothing else")
    if any(part.username for part in parts):
        pytest.skip("this machine's registry wants a password, which no container gets")
    behind = [name for name in os.environ if name.lower() in ("https_proxy", "all_proxy")]
    if behind:
        pytest.skip(f"this machine goes by a proxy ({behind[0]}), and the door dials by itself")
    return Registry(url, tuple(dict.fromkeys(f"{p.hostname}:{p.port or 443}" for p in parts)))


@pytest.fixture(scope="module")
def index() -> Registry:
    """pip's: its help tells the index it is set to, a dry run where the files are."""
    python = (sys.executable, "-m", "pip")
    found = re.search(r"--index-url\b.*?\(default\s+(\S+)\)", told(*python, "download", "-h"), re.S)
    assert found is not None
    # local directories that this machine's pip looks into as well must not answer for the index
    alone = {k: v for k, v in os.environ.items() if not k.startswith("PIP_") or k == "PIP_CERT"}
    report = told(
        *python, "install", "--quiet", "--dry-run", "--ignore-installed", "--no-deps",
        "--no-cache-dir", "--report", "-", "--index-url", found[1], WHEEL,
        env={**alone, "PIP_CONFIG_FILE": os.devnull},
    )  # fmt: skip
    return registry(found[1], json.loads(report)["install"][0]["download_info"]["url"])


@pytest.fixture(scope="module")
def npm_registry() -> Registry:
    """npm's, by its own configuration; by that of the image's npm where this machine has none."""
    words = ("npm", "config", "get", "registry")
    if shutil.which("npm") is None:
        words = ("docker", "run", "--rm", "--network", "none", "node:22-slim", *words)
    return registry(told(*words).strip())


def admitted(*registries: Registry) -> str:
    """Addresses of a mirror in a private network: those alone need the operator's word."""
    found = set()
    for host, _, port in (each.rpartition(":") for r in registries for each in r.hosts):
        with contextlib.suppress(OSError):
            for *_, address in socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM):
                if not is_public(str(address[0])) and ":" not in str(address[0]):
                    found.add(f"{address[0]}:{port}")
    return ",".join(sorted(found))


def client_recipe(place: Path, client: str, base: str) -> str:
    file = place / f"scripted-{client}.json"
    recipe = {
        "name": file.stem,
        "description": f"A scripted test agent beside a real {client}",
        "agent": "scripted-offline",
        "from": f"docker.io/library/{base}",
        "user": "agent",
        "home": "/home/agent",
        "sections": [],
        "entrypoint": ["sh"],
    }
    file.write_text(json.dumps(recipe))
    return str(file)


def run(made: Installation, recipe: str, script: str, *flags: str, admit: str = "") -> None:
    made.home.joinpath("providers.toml").write_text(OWN_PROVIDER)
    done = made.sanduk(
        "run", "-q", "--runtime", made.engine, "-w", str(made.work), "-r", recipe, "--provider",
        "own", "--skip-key-check", "--no-report-instruction", *flags, "--", f"{script}\n{DONE}",
        limit_s=280, SANDUK_EGRESS_ADMIT=admit, OWN_KEY="none",
    )  # fmt: skip
    assert done.code == 0, done


def python(program: str, *words: str) -> str:
    """A line of the script that runs a program with these arguments."""
    return f"python3 - {' '.join(words)} <<'END'\n{program}\nEND"


def say(command: str) -> str:
    """Run a command and put its last line and its exit code into the trace."""
    return (
        f"said=$({command} 2>&1); code=$?; "
        'printf \'{"type": "text", "text": "%s [%s]"}\\n\' '
        '"$(echo "$said" | tail -n 1 | tr -d \'\\\\"\')" "$code"'
    )


PIP_FOR_IMAGE = (23, 2)  # the first that Python 3.12 and newer can run


def pip_words(registry_url: str) -> str:
    return (
        "PYTHONPATH=/opt/clients python3 -m pip download --quiet --no-cache-dir --no-deps "
        f"--retries 0 --timeout 20 --disable-pip-version-check --dest /work/got "
        f"--index-url {registry_url} {WHEEL}"
    )


@pytest.fixture
def pip_only(tmp_path: Path) -> list[str]:
    """A pip, lent to a container: an image's base may come without one.

    It is this machine's own, or, where that is too old for the image's Python, the current one.
    """
    place = tmp_path / "clients"
    if tuple(map(int, pip.__version__.split(".")[:2])) >= PIP_FOR_IMAGE:
        shutil.copytree(Path(pip.__file__).parent, place / "pip")
    else:
        download = ("download", "--quiet", "--no-deps", "--dest", str(tmp_path), "pip")
        told(sys.executable, "-m", "pip", *download)
        (wheel,) = tmp_path.glob("pip-*.whl")
        shutil.unpack_archive(wheel, place, "zip")
    for folder in (place, *tmp_path.parents):
        if folder.stat().st_uid == os.geteuid():
            folder.chmod(folder.stat().st_mode | 0o055)
    return ["--mount", f"{place}:/opt/clients:ro"]


def test_pip_downloads_through_the_door_of_a_sealed_container(
    docker: Installation, index: Registry, pip_only: list[str]
):
    recipe = client_recipe(docker.ground, "pip", "python:3.13-slim")
    script = f"{say(pip_words(index.url))}\n{say('ls /work/got')}"
    run(docker, recipe, script, *pip_only, *index.flags, admit=admitted(index))

    shown = docker.show()
    assert any(f"{WHEEL}-" in each and ".whl [0]" in each for each in docker.events())
    (wheel,) = (docker.work / "got").glob(f"{WHEEL}-*.whl")
    assert wheel.read_bytes()[:2] == b"PK"
    attempts = shown["egress_attempts"]
    assert {f"{a['host']}:{a['port']}" for a in attempts} == set(index.hosts)
    assert all(a["allowed"] and a["listed"] and not a["flag"] for a in attempts), attempts
    assert sum(a["bytes_in"] for a in attempts) > wheel.stat().st_size
    assert all(a["ended_at"] >= a["started_at"] for a in attempts)
    assert shown["certificate"]["headline"].startswith("sealed")


def test_npm_asks_its_registry_through_the_door_of_a_sealed_container(
    docker: Installation, npm_registry: Registry
):
    recipe = client_recipe(docker.ground, "npm", "node:22-slim")
    quiet = "npm_config_update_notifier=false npm_config_cache=/tmp/npm npm_config_fetch_retries=0"
    view = f"{quiet} npm view --registry {{}} {MODULE} name"
    script = "\n".join(
        (say(view.format(npm_registry.url)), say(view.format("https://unlisted.invalid/")))
    )
    run(docker, recipe, script, *npm_registry.flags, admit=admitted(npm_registry))

    shown = docker.show()
    allowed = [a for a in shown["egress_attempts"] if a["allowed"]]
    refused = [a for a in shown["egress_attempts"] if not a["allowed"]]
    assert f"text: {MODULE} [0]" in docker.events()
    assert {f"{a['host']}:{a['port']}" for a in allowed} == set(npm_registry.hosts)
    assert {a["flag"] for a in refused} == {"--allow-host unlisted.invalid:443"}


def test_whatever_is_not_listed_is_refused_to_the_container_that_pip_works_in(
    docker: Installation, index: Registry, pip_only: list[str]
):
    listed = index.hosts[0]
    host, _, port = listed.rpartition(":")
    address = socket.getaddrinfo(host, int(port), socket.AF_INET)[0][4][0]
    # what is asked of the door, and the flag that would allow it ("": nothing would)
    asked = {
        "unlisted.invalid:443": "--allow-host unlisted.invalid:443",
        f"{host}:8443": f"--allow-host {host}:8443",
        f"{host}:80": f"--allow-host {host}:80",
        f"www.{host}:443": f"--allow-host www.{host}:443",
        f"{PROVIDER}:443": "",
        "10.0.0.1:443": "",
        "127.0.0.1:22": "",
        "169.254.169.254:80": "",
        "[::1]:443": "",
        "192.168.1.1:443": "",
        # a listed host's address is no name on the list
        f"{address}:{port}": f"--allow-host {address}:{port}" if is_public(str(address)) else "",
    }
    recipe = client_recipe(docker.ground, "pip", "python:3.13-slim")
    script = "\n".join(
        (
            say(pip_words(index.url)),
            say(pip_words("https://unlisted.invalid/simple")),
            python(ASK, *asked, listed),
            python(STRAIGHT, f"{address}:{port}", listed, "10.0.0.1:443"),
        )
    )
    run(docker, recipe, script, *pip_only, *index.flags, admit=admitted(index))

    shown = docker.show()
    said = [event["text"] for event in shown["trace"]]
    refused = [a for a in shown["egress_attempts"] if not a["allowed"]]
    flags = {f"{show(a['host'])}:{a['port']}": a["flag"] for a in refused}
    assert flags == asked
    for where in asked:
        (answer,) = [line for line in said if line.startswith(f"{where} -> ")]
        assert " 403 " in answer, answer
    assert f"{listed} -> HTTP/1.1 200 Connection established" in said
    assert all(a["reason"] and not a["address"] and not a["bytes_in"] for a in refused)
    straight = [line for line in said if line.startswith("straight to ")]
    assert len(straight) == 3
    assert not [line for line in straight if "connected" in line]
    page = docker.sanduk("show", docker.row["uid"], "--egress")
    assert f"| --allow-host {host}:8443" in page.out
    assert f"{PROVIDER}:443" in page.out


def show(host: str) -> str:
    return f"[{host}]" if ":" in host else host
