"""Images really built and containers really started from them."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from recipes import BuildContext, image_tag, load, render
from tests.recipes.answering import answering
from tests.recipes.conftest import Write

pytestmark = pytest.mark.engine
LABEL = f"sanduk.install=test-recipes-{uuid.uuid4().hex[:8]}"
HARDENED = [
    "--label", LABEL, "--rm", "--init", "--cap-drop", "ALL", "--security-opt", "no-new-privileges",
]  # fmt: skip
ANY_UID = ["--user", "4242:4242", "--group-add", "0"]
AGENTS = {
    "claude": "2.1.332",
    "codex": "0.171.0",
    "gemini": "0.61.0",
    "hermes": "0.19.0",
    "opencode": "1.18.33",
    "pi": "1.6.0",
}


def docker(*words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["docker", *words],
        env={**os.environ, "DOCKER_BUILDKIT": "0"},
        capture_output=True,
        text=True,
        check=check,
        timeout=280,
    )


@pytest.fixture(scope="module", autouse=True)
def engine() -> Iterator[None]:
    """Docker, and nothing of ours left in it but the images of shipped recipes."""
    try:
        docker("version")
    except (OSError, subprocess.SubprocessError):
        pytest.skip("no Docker answers; scripts/engine-up brings one")
    yield
    for kind in ("container", "network", "image"):
        command = ["ls", "--quiet", "--filter", f"label={LABEL}"]
        for found in docker(
            kind, *command, *(["--all"] if kind == "container" else [])
        ).stdout.split():
            docker(kind, "rm", *([] if kind == "network" else ["--force"]), found, check=False)


def build(
    context: BuildContext, directory: Path, *words: str, check: bool = True
) -> subprocess.CompletedProcess[str]:
    directory.mkdir(exist_ok=True)
    context.write(directory)
    return docker(
        "build", "--force-rm", *words, "--file", f"{directory}/Containerfile", str(directory),
        check=check,
    )  # fmt: skip


def shipped_image(name: str, directory: Path) -> str:
    """The image of a shipped recipe, built when this engine does not have it. It stays."""
    context = render(load(name))
    tag = image_tag(context, {})
    if docker("image", "inspect", tag, check=False).returncode:
        build(context, directory, "--tag", tag)
    return tag


def own_image(path: Path, directory: Path, *words: str) -> str:
    context = render(load(str(path)), instructions_file=".pi/agent/AGENTS.md")
    tag = image_tag(context, {})
    build(context, directory, "--label", LABEL, "--tag", tag, *words)
    return tag


# -- the agent's user and home -----------------------------------------------------------------

TRY_HOME = """
touch "$HOME/new" && echo can-write
cat "$HOME/.secret" "$HOME/.pi/agent/AGENTS.md" && touch "$HOME/.cache/new" && echo can-use
touch /work/new && echo can-work
echo x >"$HOME/.pi/agent/AGENTS.md" || echo instructions-kept
"""


def test_any_uid_with_the_group_0_uses_the_home_and_what_was_baked_into_it(
    write: Write, tmp_path: Path
) -> None:
    agent = ["umask 0077", "echo baked >~/.secret", "mkdir ~/.cache", "id -u >~/.uid"]
    tag = own_image(
        write(
            "home",
            sections=[{"name": "bake", "type": "run", "lines": agent, "user": "agent"}],
            instructions={"text": "Be brief."},
        ),
        tmp_path / "context",
    )
    shell = ["--network", "none", "--env", "HOME=/home/agent", "--entrypoint", "sh", tag, "-c"]
    done = docker("run", *HARDENED, *ANY_UID, *shell, TRY_HOME)
    assert done.stdout.split("\n")[:-1] == [
        "can-write", "baked", "Be brief.", "can-use", "can-work", "instructions-kept",
    ]  # fmt: skip
    # Without the group nothing of it works: the test above shows what the group is for.
    done = docker("run", *HARDENED, "--user", "4242:4242", *shell, TRY_HOME)
    assert "can" not in done.stdout.replace("cannot", "")
    done = docker("run", *HARDENED, *shell, "id -u; cat ~/.uid")
    assert done.stdout.split() == ["1000", "1000"]


def test_an_account_of_the_base_image_gets_the_agent_s_ids(write: Write, tmp_path: Path) -> None:
    tag = own_image(
        write("games", user="games"), tmp_path / "context",
        "--build-arg", "AGENT_UID=33", "--build-arg", "AGENT_GID=2002",
    )  # fmt: skip
    shell = ["--network", "none", "--entrypoint", "sh", tag, "-c"]
    done = docker("run", *HARDENED, *shell, "id -u; id -g; echo ~; stat -c %u:%g ~")
    assert done.stdout.split() == ["33", "2002", "/home/agent", "33:0"]
    assert (
        json.loads(docker("image", "inspect", tag).stdout)[0]["Config"]["Labels"]
        | {
            "sanduk.agent-uid": "33",
            "sanduk.recipe": "games",
            "sanduk.kits": "",
            "sanduk.home": "/home/agent",
        }
        == json.loads(docker("image", "inspect", tag).stdout)[0]["Config"]["Labels"]
    )


def test_the_agent_s_user_is_never_uid_0(write: Write, tmp_path: Path) -> None:
    context = render(load(str(write("zero"))))
    done = build(
        context, tmp_path / "context", "--label", LABEL, "--build-arg", "AGENT_UID=0", check=False
    )
    assert done.returncode != 0
    assert "never runs as uid 0" in done.stdout + done.stderr


@pytest.mark.parametrize("agent", AGENTS)
def test_a_shipped_agent_starts_as_any_uid(agent: str, tmp_path: Path) -> None:
    recipe = load(agent)
    tag = shipped_image(agent, tmp_path / "context")
    done = docker(
        "run", *HARDENED, *ANY_UID, "--network", "none", "--env", f"HOME={recipe.home}",
        "--env", "SANDUK_MODELS_JSON={}", tag, "--version",
    )  # fmt: skip
    assert AGENTS[agent] in done.stdout


# -- the link ------------------------------------------------------------------------------------


@pytest.fixture
def relay_socket(tmp_path: Path) -> Iterator[Path]:
    """A socket of another uid in a 0700 directory that answers 401, like a relay."""
    tmp_path.chmod(0o700)
    path = tmp_path / "r.sock"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        path.chmod(0o666)
        with answering(server, b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n"):
            yield path


@contextmanager
def linked(
    tag: str, relay_socket: Path, network: str, **order: Any
) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """A link as a run starts it, and the one line of its probe."""
    resolv = relay_socket.parent / "resolv.conf"
    resolv.write_text("nameserver 127.0.0.1\n")
    resolv.chmod(0o644)
    asked = {
        "socket": "/run/relay.sock", "port": 8080, "egress_socket": None, "limit_s": 4,
        "host_addresses": [], "host_ports": [], "neighbours": [], "name": "nobody.invalid", **order,
    }  # fmt: skip
    command = [
        "docker", "run", *HARDENED, "--read-only", "--network", network, "--user", "4242:4242",
        "--memory", "192m", "--memory-swap", "192m", "--pids-limit", "600",
        "--mount", f"type=bind,source={relay_socket},target=/run/relay.sock",
        "--mount", f"type=bind,source={resolv},target=/etc/resolv.conf,readonly",
        tag, json.dumps(asked),
    ]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process, json.loads(process.stdout.readline())
        finally:
            process.terminate()


def test_the_link_finds_no_way_out_of_no_network_and_the_holes_of_an_internal_one(
    tmp_path: Path, relay_socket: Path
) -> None:
    tag = shipped_image("link", tmp_path / "context")
    name = f"sanduk-test-{uuid.uuid4().hex[:8]}"
    docker("network", "create", "--internal", "--label", LABEL, name)
    facts = json.loads(docker("network", "inspect", name).stdout)[0]
    gateway = facts["IPAM"]["Config"][0]["Gateway"]
    server = socket.socket()
    server.bind((gateway, 0))
    order = {"host_addresses": [gateway], "host_ports": [server.getsockname()[1]]}
    with (
        server,
        answering(server, b"hello"),
        linked(tag, relay_socket, "none", **order) as (sealed, found),
        linked(tag, relay_socket, name, **order) as (leaky, hole),
    ):
        assert (sealed.wait(30), leaky.wait(30)) == (124, 124)  # their own time limit
    assert hole["host"][0]["open"] is True
    assert {each["name"] for each in hole["interfaces"]} > {"lo"}
    assert hole["routes"]["v4"] != []

    assert [each["name"] for each in found["interfaces"] if each["up"]] == ["lo"]
    assert found["routes"] == {"v4": [], "v6": []}
    assert found["host"][0]["error"] == found["metadata"]["error"] == "ENETUNREACH"
    assert found["ipv6"]["open"] is False
    assert found["dns"]["resolved"] is False
    assert found["dns"]["error"] != "timeout"
    assert found["families"]["AF_INET"] is True
    assert found["families"]["AF_PACKET"] is False
    for probe in (found, hole):
        assert probe["relay"]["status_without_token"] == 401
        assert isinstance(probe["netns"], int)


def test_a_link_prints_one_line_and_forwards_to_both_sockets(
    tmp_path: Path, relay_socket: Path
) -> None:
    tag = shipped_image("link", tmp_path / "context")
    fetch = (
        "import socket, sys\n"
        "s = socket.create_connection(('127.0.0.1', int(sys.argv[1])), 5)\n"
        "s.sendall(b'GET / HTTP/1.1\\r\\n\\r\\n'); print(s.recv(99)[:12])"
    )
    end = fetch.replace("GET / HTTP/1.1", "LATE").replace("; print", "; s.shutdown(1); print")
    door = {"limit_s": 60, "egress_socket": "/run/relay.sock"}
    with linked(tag, relay_socket, "none", **door) as (process, _):
        (container,) = docker("ps", "--quiet", "--filter", f"label={LABEL}").stdout.split()
        joined = ["--network", f"container:{container}", "--entrypoint", "/usr/bin/python3"]
        for port in ("8080", "3128"):
            done = docker("run", *HARDENED, *ANY_UID, *joined, tag, "-c", fetch, port)
            assert done.stdout == "b'HTTP/1.1 401'\n"
        # whoever has said everything still hears what comes late out of a tunnel
        done = docker("run", *HARDENED, *ANY_UID, *joined, tag, "-c", end, "3128")
        assert done.stdout == "b'HTTP/1.1 401'\n"
        # Zombies would count against the link's process limit.
        states = docker("top", container, "-o", "pid,stat").stdout.splitlines()[1:]
        assert not [state for state in states if state.split()[1].startswith("Z")]
        docker("rm", "--force", container)
        rest, _ = process.communicate(timeout=30)
        assert rest == ""
