"""The link's probe, run on this machine against sockets of our own."""

from __future__ import annotations

import importlib
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from types import ModuleType
from typing import Any

import pytest

from recipes.catalog import SHIPPED
from tests.pace import stretched
from tests.recipes.answering import answering

PROGRAM = SHIPPED / "link" / "link.py"


@pytest.fixture(scope="module")
def modules() -> Iterator[dict[str, ModuleType]]:
    """The program and what it loads, found as in its image: beside it."""
    names = ("link", "probe", "namespace")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(PROGRAM.parent)
        yield {name: importlib.import_module(name) for name in names}
    for name in names:
        del sys.modules[name]


@pytest.fixture
def link(modules: dict[str, ModuleType]) -> ModuleType:
    return modules["link"]


@pytest.fixture
def probe(modules: dict[str, ModuleType]) -> ModuleType:
    return modules["probe"]


@pytest.fixture
def namespace(modules: dict[str, ModuleType]) -> ModuleType:
    return modules["namespace"]


@contextmanager
def listening(family: int = socket.AF_INET, answer: bytes | None = None) -> Iterator[int]:
    """A port on loopback; with an answer, every connection gets it and is closed."""
    with socket.socket(family) as server:
        server.bind(("::1" if family == socket.AF_INET6 else "127.0.0.1", 0))
        server.listen()
        with nullcontext() if answer is None else answering(server, answer):
            yield server.getsockname()[1]


def free_port() -> int:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return int(unused.getsockname()[1])


def order(**keys: Any) -> dict[str, Any]:
    return {
        "socket": "/run/relay.sock",
        "port": 8080,
        "egress_socket": None,
        "limit_s": 5,
        "host_addresses": [],
        "host_ports": [],
        "neighbours": [],
        "name": "sanduk-test.invalid",
        **keys,
    }


def test_open_and_closed_ports_are_told_apart(probe: ModuleType) -> None:
    closed = free_port()
    with listening() as port:
        first, second = probe.connect_all([("127.0.0.1", port), ("127.0.0.1", closed)])
    assert first == {"address": "127.0.0.1", "port": port, "open": True, "error": None}
    assert second == {
        "address": "127.0.0.1",
        "port": closed,
        "open": False,
        "error": "ECONNREFUSED",
    }


def test_a_port_over_ipv6_is_found(probe: ModuleType) -> None:
    with listening(socket.AF_INET6) as port:
        (found,) = probe.connect_all([("::1", port)])
    assert found["open"] is True


@pytest.mark.parametrize(
    "address", ["localhost", "", "127.0.0.1.5", "fe80::1%none0", "::g", "a\0b"]
)
def test_what_is_no_address_is_recorded_and_never_looked_up(
    probe: ModuleType, address: str
) -> None:
    (found,) = probe.connect_all([(address, 80)])
    assert found == {"address": address, "port": 80, "open": False, "error": "EINVAL"}


def test_silent_ports_cost_one_limit_all_together(probe: ModuleType) -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        port = full.getsockname()[1]
        queued = [socket.socket() for _ in range(4)]
        for each in queued:
            each.setblocking(False)
            each.connect_ex(("127.0.0.1", port))
        time.sleep(0.05)
        started = time.monotonic()
        found = probe.connect_all([("127.0.0.1", port)] * 100, limit_s=0.2)
        took = time.monotonic() - started
        for each in queued:
            each.close()
    assert [each["error"] for each in found] == ["timeout"] * 100
    assert 0.15 < took < stretched(1)


def test_more_targets_than_a_batch_are_all_tried(probe: ModuleType) -> None:
    with listening() as port:
        found = probe.connect_all(
            [("127.0.0.1", free_port())] * probe.BATCH + [("127.0.0.1", port)]
        )
    assert len(found) == probe.BATCH + 1
    assert found[-1]["open"] is True


def test_interfaces_are_those_of_this_machine(namespace: ModuleType) -> None:
    found = {each["name"]: each for each in namespace.interfaces()}
    assert set(found) == {name for _, name in socket.if_nameindex()}
    assert found["lo"]["up"] is True
    assert "127.0.0.1" in found["lo"]["addresses"]


def test_a_default_route_is_read_from_the_kernel_s_table(
    namespace: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    header = "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT"
    tables = {
        "/proc/net/route": [
            header,
            "eth0 00000000 010011AC 0003 0 0 0 00000000 0 0 0",
            "lo 0000007F 00000000 0001 0 0 0 000000FF 0 0 0",
            "eth0 000011AC 00000000 0001 0 0 0 0000FFFF 0 0 0",
            "short",
        ],
        "/proc/net/ipv6_route": [
            f"{'0' * 32} 00 {'0' * 32} 00 fe80{'0' * 27}1 400 1 0 3 eth0",
            f"{'0' * 31}1 80 {'0' * 32} 00 {'0' * 32} 0 2 0 80200001 lo",
        ],
    }
    monkeypatch.setattr(namespace, "_lines", lambda path: tables[path])
    monkeypatch.setattr(namespace.os.path, "exists", lambda path: True)
    assert namespace.routes() == {
        "v4": [
            {"interface": "eth0", "destination": "0.0.0.0/0", "gateway": "172.17.0.1"},
            {"interface": "eth0", "destination": "172.17.0.0/16", "gateway": "0.0.0.0"},  # noqa: S104
        ],
        "v6": [{"interface": "eth0", "destination": "::/0", "gateway": "fe80::1"}],
    }


def test_a_missing_table_is_not_an_empty_one(
    namespace: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(namespace, "_lines", lambda path: [])
    monkeypatch.setattr(namespace.os.path, "exists", lambda path: False)
    assert namespace.routes() == {"v4": None, "v6": None}


def test_families_that_open_are_told_from_those_that_do_not(
    probe: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = socket.socket

    def socket_of(family: int, kind: int, protocol: int) -> socket.socket:
        if family == 16 or (family, kind) == (17, 3):
            raise PermissionError(1, "no")
        return real(socket.AF_INET if family in (2, 17) else socket.AF_UNIX)

    monkeypatch.setattr(probe.socket, "socket", socket_of)
    found = probe.families()
    assert found["AF_INET"] is True
    assert found["AF_NETLINK"] is False
    assert found["AF_PACKET"] is True  # by its second type
    assert len(found) == len(probe.FAMILIES) == 13


def test_vsock_says_why_it_could_not(probe: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*args: int) -> socket.socket:
        raise PermissionError(1, "no")

    monkeypatch.setattr(probe.socket, "socket", refused)
    assert probe.vsock() == {"open": False, "error": "EPERM"}


def test_a_name_that_resolves_is_found_out(probe: ModuleType) -> None:
    found = probe.Lookup("localhost").wait()
    assert (found["resolved"], found["error"]) == (True, None)


def test_a_resolver_that_does_not_answer_is_not_waited_for(
    probe: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = threading.Event()
    monkeypatch.setattr(probe.socket, "getaddrinfo", lambda *args: release.wait(10))
    monkeypatch.setattr(probe, "DNS_LIMIT_S", 0.1)
    lookup = probe.Lookup("x.invalid")
    found = lookup.wait()
    assert (found["resolved"], found["error"]) == (False, "timeout")
    assert 50 < found["ms"] < 5000
    release.set()
    assert lookup.done.acquire(timeout=5)


def test_a_failed_look_up_names_its_error(
    probe: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*args: object) -> None:
        raise socket.gaierror(socket.EAI_AGAIN, "later")

    monkeypatch.setattr(probe.socket, "getaddrinfo", fails)
    found = probe.Lookup("x.invalid").wait()
    assert (found["resolved"], found["error"]) == (False, "EAI_AGAIN")


@pytest.mark.parametrize(
    ("answer", "status", "error"),
    [
        (b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n", 401, None),
        (b"HTTP/1.1 200 OK\r\n\r\n", 200, None),
        (b"", None, "EPROTO"),
        (b"HTTP/1.1 \xff\r\n", None, "EPROTO"),
        (b"SSH-2.0 401\r\n", None, "EPROTO"),
    ],
)
def test_the_relay_s_answer_without_a_token_is_recorded(
    probe: ModuleType, answer: bytes, status: int | None, error: str | None
) -> None:
    with listening(answer=answer) as port:
        found = probe.relay(port)
    assert (found["status_without_token"], found["error"]) == (status, error)


def test_a_relay_that_never_listens_is_given_up(probe: ModuleType) -> None:
    started = time.monotonic()
    assert probe.relay(free_port(), limit_s=0.2)["error"] == "ECONNREFUSED"
    assert time.monotonic() - started < stretched(2)


def test_a_relay_that_says_nothing_is_given_up(probe: ModuleType) -> None:
    with listening() as port:
        assert probe.relay(port, limit_s=0.2)["error"] == "timeout"


def test_the_probe_records_everything_in_one_object(
    link: ModuleType, probe: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "METADATA", "127.0.0.1")  # a test asks nobody outside
    monkeypatch.setattr(probe.socket, "getaddrinfo", lambda *args: [])
    with listening(answer=b"HTTP/1.1 401 No\r\n\r\n") as port:
        asked = order(
            port=port,
            host_addresses=["127.0.0.1", "::1"],
            host_ports=[port, free_port()],
            neighbours=[["127.0.0.1", port]],
        )
        read = link.Order(json.dumps(asked))
        given = (read.host, read.neighbours, read.name, read.port)
        found = json.loads(json.dumps(probe.probe(*given)))
    assert set(found) == {
        "interfaces", "routes", "host", "neighbours", "metadata", "ipv6", "families", "vsock",
        "netns", "relay", "dns", "ms",
    }  # fmt: skip
    assert [(each["address"], each["open"]) for each in found["host"]] == [
        ("127.0.0.1", True),
        ("127.0.0.1", False),
        ("::1", False),
        ("::1", False),
    ]
    assert found["neighbours"][0]["open"] is True
    assert found["relay"]["status_without_token"] == 401


def test_the_forwarder_has_a_time_limit_and_no_delay(link: ModuleType) -> None:
    command = link.forward(8080, "/run/relay.sock", 60)
    assert command[:3] == ["/usr/bin/timeout", "60", "/usr/bin/socat"]
    assert command[-2].startswith("TCP-LISTEN:8080,bind=127.0.0.1,fork,reuseaddr,nodelay,")
    assert command[-1] == "UNIX-CONNECT:/run/relay.sock"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        json.dumps(order(port="8080")),
        json.dumps(order(port=True)),
        json.dumps(order(limit_s=0)),
        json.dumps(order(socket="relay.sock")),
        json.dumps(order(socket="/run/a,fork")),
        json.dumps(order(egress_socket="/run/a:b")),
        json.dumps(order(host_ports=[70000])),
        json.dumps(order(neighbours=[["127.0.0.1"]])),
    ],
)
def test_a_bad_order_is_refused_before_anything_starts(text: str) -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-S", PROGRAM, text], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("link: bad order: ")
