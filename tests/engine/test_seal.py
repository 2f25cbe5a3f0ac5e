"""Sealed is proved: a hostile probe of ours, in a sealed run and where holes are known."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from runs import own_host
from tests.engine.daemon import Asked, door_before
from tests.engine.engine_fixtures import told
from tests.engine.running import DONE, SCRIPTED, Installation, image_tags

pytestmark = pytest.mark.engine
ANYWHERE = "0.0.0.0"  # noqa: S104 - what the probe must not reach
# Tries everything it is told to, and prints what answered. Written for this test: the product's
# own probe must not be its own judge.
PROBE = r"""
import json, os, socket, sys
order = json.loads(sys.argv[1])
found = {"tcp": [], "udp": [], "names": [], "families": [], "abstract": [], "addresses": []}
for address, port in order["tcp"]:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family) as tried:
            tried.settimeout(1)
            tried.connect((address, port))
            found["tcp"].append([address, port])
    except OSError:
        pass
for address, port in order["udp"]:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as tried:
            tried.settimeout(1)
            tried.sendto(b"knock", (address, port))
            if tried.recv(100) == b"knock":
                found["udp"].append([address, port])
    except OSError:
        pass
for name in order["names"]:
    try:
        socket.getaddrinfo(name, 80)
        found["names"].append(name)
    except OSError:
        pass
for name in order["abstract"]:
    try:
        with socket.socket(socket.AF_UNIX) as tried:
            tried.connect("\0" + name)
            found["abstract"].append(name)
    except OSError:
        pass
known = {1: "unix", 2: "inet", 10: "inet6", 16: "netlink"}
for family in range(1, 46):
    for kind in (1, 2, 3, 5):
        try:
            socket.socket(family, kind, 0).close()
        except OSError:
            continue
        found["families"].append(known.get(family, str(family)))
        break
lines = open("/proc/net/fib_trie").read().splitlines()
found["addresses"] = sorted({
    before.split("|--")[1].strip()
    for before, line in zip(lines, lines[1:])
    if "/32 host LOCAL" in line
})
found["mounts"] = open("/proc/self/mounts").read()
found["files"] = [
    os.path.join(folder, name)
    for place in ("/run", "/tmp", "/var/run", "/home", "/work")
    for folder, _, names in os.walk(place)
    for name in names
    if name.endswith(".sock")
]
print(json.dumps(found), flush=True)
"""


@dataclass
class Ground:
    """What listens on this host and beside it, and the order for the probe."""

    order: dict[str, Any]
    tcp_port: int
    neighbour: str


def listen(family: socket.AddressFamily, kind: socket.SocketKind, address: str) -> socket.socket:
    listener = socket.socket(family, kind)
    if family == socket.AF_INET6:
        listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    listener.bind((address, 0))
    if kind == socket.SOCK_STREAM:
        listener.listen(64)
    return listener


def echo(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while True:
            data, back = sock.recvfrom(100)
            sock.sendto(data, back)


@pytest.fixture
def ground() -> Iterator[Ground]:
    """Listeners on every address of this host, and a neighbour with an open port."""
    label = f"sanduk.install=test-seal-{secrets.token_hex(4)}"
    (image,) = image_tags(SCRIPTED)
    network = f"sanduk-test-{secrets.token_hex(4)}"
    with contextlib.ExitStack() as stack:
        v4 = stack.enter_context(listen(socket.AF_INET, socket.SOCK_STREAM, ANYWHERE))
        datagrams = stack.enter_context(listen(socket.AF_INET, socket.SOCK_DGRAM, ANYWHERE))
        ports = [v4.getsockname()[1]]
        if socket.has_ipv6 and Path("/proc/net/if_inet6").exists():
            v6 = stack.enter_context(listen(socket.AF_INET6, socket.SOCK_STREAM, "::"))
            ports.append(v6.getsockname()[1])
        name = f"sanduk-test-{secrets.token_hex(8)}"
        abstract = stack.enter_context(socket.socket(socket.AF_UNIX))
        abstract.bind(f"\0{name}")
        abstract.listen()
        threading.Thread(target=echo, args=(datagrams,), daemon=True).start()
        made = told("docker", "network", "create", "--internal", "--label", label, network)
        assert made.returncode == 0, made.stderr
        stack.callback(told, "docker", "network", "rm", network)
        neighbour = told(
            "docker", "run", "--detach", "--rm", "--label", label, "--network", network,
            "--entrypoint", "python3", image, "-m", "http.server", "8000",
        )  # fmt: skip
        assert neighbour.returncode == 0, neighbour.stderr
        stack.callback(told, "docker", "rm", "--force", neighbour.stdout.strip())
        seen = told("docker", "inspect", "--format", "{{json .NetworkSettings.Networks}}",
                    neighbour.stdout.strip())  # fmt: skip
        (facts,) = json.loads(seen.stdout).values()
        hosts = [*own_host.look().addresses, facts["Gateway"]]
        order = {
            "tcp": [[a, p] for a in dict.fromkeys(hosts) for p in (*ports, 22)]
            + [[facts["IPAddress"], 8000], ["169.254.169.254", 80], ["169.254.169.254", 53]]
            + [["127.0.0.1", p] for p in (*ports, 22, 53, 2375, 8000)]
            + [["::1", p] for p in ports]
            + [["2001:db8::1", 80], ["192.0.2.1", 80], ["198.51.100.1", 443]],
            "udp": [[a, datagrams.getsockname()[1]] for a in dict.fromkeys(hosts)],
            "names": ["example.com", f"{secrets.token_hex(6)}.example.com", "host.docker.internal"],
            "abstract": [name],
        }
        yield Ground(order, v4.getsockname()[1], f"{facts['IPAddress']}:8000@{network}")


def in_shell(order: dict[str, Any]) -> str:
    quoted = json.dumps(order).replace("'", "")
    return f"cat > /tmp/probe.py <<'PROBE'\n{PROBE}PROBE\npython3 /tmp/probe.py '{quoted}'\n{DONE}"


def printed(made: Installation) -> dict[str, Any]:
    log = made.home / "runs" / made.row["uid"] / "output.log"
    found: dict[str, Any] = json.loads(log.read_text().splitlines()[0])
    return found


def test_from_a_sealed_container_nothing_answers_but_the_relay(
    installation: Installation, ground: Ground
):
    order = {**ground.order, "tcp": [*ground.order["tcp"], ["127.0.0.1", 8080]]}
    done = installation.run(in_shell(order))
    found = printed(installation)

    assert (done.code, done.err) == (0, "")
    assert found["tcp"] == [["127.0.0.1", 8080]]
    assert found["udp"] == []
    assert found["names"] == []
    assert found["abstract"] == []
    assert found["addresses"] == ["127.0.0.1"]
    assert set(found["families"]) <= {"unix", "inet", "inet6", "netlink"}
    assert found["files"] == []
    assert "relay.sock" not in found["mounts"]
    certificate = json.loads(installation.row["certificate"])
    assert certificate["headline"].startswith("sealed: nothing answers but the relay")
    assert {c["verdict"] for c in certificate["checks"]} == {"closed"}
    installation.nothing_left()


def test_the_same_probe_finds_the_holes_of_an_internal_bridge(docker: Installation, ground: Ground):
    """So the test above can fail: this is the common way, with its two known leaks."""
    address, _, network = ground.neighbour.partition("@")
    # no names and no addresses beyond: a bridge's resolver asks the world
    near = [[a, p] for a, p in ground.order["tcp"] if not a.startswith(("192.0.2.", "198.51."))]
    order = {**ground.order, "names": [], "tcp": near}
    (image,) = image_tags(SCRIPTED)
    done = told(
        "docker", "run", "--rm", "--label", "sanduk.install=test-seal", "--network", network,
        "--cap-drop", "ALL", "--user", "1000:1000", image, "-c", in_shell(order),
    )  # fmt: skip
    found = json.loads(done.stdout.splitlines()[0])
    reached = [f"{a}:{p}" for a, p in found["tcp"]]

    assert address in reached
    assert any(p == ground.tcp_port and a != "127.0.0.1" for a, p in found["tcp"])
    assert found["udp"]
    assert found["addresses"] != ["127.0.0.1"]


def test_the_same_probe_finds_an_abstract_socket_where_the_hosts_network_is_shared(
    docker: Installation, ground: Ground
):
    order = {**ground.order, "tcp": [], "udp": [], "names": []}
    (image,) = image_tags(SCRIPTED)
    done = told(
        "docker", "run", "--rm", "--label", "sanduk.install=test-seal", "--network", "host",
        "--user", "1000:1000", image, "-c", in_shell(order),
    )  # fmt: skip
    found = json.loads(done.stdout.splitlines()[0])

    assert found["abstract"] == ground.order["abstract"]


def test_a_link_with_a_network_is_refused_before_the_agent_starts(docker: Installation):
    started: list[str] = []

    def rule(asked: Asked) -> str | None:
        if asked.creates:
            body = json.loads(asked.body)
            if body["Labels"].get("sanduk.role") == "link":
                body["HostConfig"]["NetworkMode"] = "bridge"
                body["NetworkDisabled"] = False
                body["NetworkingConfig"] = {"EndpointsConfig": {}}
                asked.body = json.dumps(body).encode()
        if asked.path.endswith("/start"):
            started.append(asked.path.split("/")[-2])
        return None

    docker.work.mkdir()
    if os.geteuid() == 0:
        os.chown(docker.work, 1000, 1000)
    with door_before(docker) as door:
        door.rule = rule
        done = docker.run(f"echo agent was here > /work/trace; {DONE}")

    assert done.code == 2, done
    assert "the seal has a hole" in done.line
    assert "it has an address on eth0" in done.line
    assert docker.row["outcome"] == "refused"
    assert len(set(started)) == 1  # the link
    assert not (docker.work / "trace").exists()
    certificate = json.loads(docker.row["certificate"])
    assert certificate["headline"].startswith("not sealed: ")
    docker.nothing_left()


@pytest.mark.parametrize(
    ("header", "status"),
    [
        ("Authorization: Bearer wrong", 401),
        ("Authorization: Bearer ", 401),
        ("X-Nothing: here", 401),
        ("x-api-key: wrong", 401),
        ("Authorization: Bearer $RELAY_TOKEN", 200),
    ],
)
def test_only_the_runs_token_opens_the_relay(docker: Installation, header: str, status: int):
    call = (
        f'curl -sS -o /dev/null -w "%{{http_code}}\\n" -H "{header}" '
        '-H \'Content-Type: application/json\' -d \'{"model": "rehearsal", "messages": []}\' '
        '"$RELAY_URL/chat/completions"'
    )
    done = docker.run(f"{call}\n{DONE}")
    log = (docker.home / "runs" / docker.row["uid"] / "output.log").read_text()

    assert done.code == 0
    assert log.splitlines()[0] == str(status)


def test_one_runs_token_is_worth_nothing_in_another(docker: Installation):
    """Each run has a relay of its own behind a link of its own."""
    first = docker.begin(
        """printf '{"type": "text", "text": "ready %s"}\\n' "$RELAY_TOKEN"; sleep 60"""
    )
    first.until("\n")
    token = first.out.read_text().split("ready ")[1].split()[0]
    call = (
        f'curl -sS -o /dev/null -w "%{{http_code}}\\n" -H "Authorization: Bearer {token}" '
        '-H \'Content-Type: application/json\' -d \'{"model": "rehearsal", "messages": []}\' '
        '"$RELAY_URL/chat/completions"'
    )
    docker.run(f"{call}\n{DONE}", "--workdir", str(docker.ground / "other"))
    log = (docker.home / "runs" / docker.row["uid"] / "output.log").read_text()
    first.signal(2).end()

    assert len(token) > 20
    assert log.splitlines()[0] == "401"
    docker.nothing_left()
