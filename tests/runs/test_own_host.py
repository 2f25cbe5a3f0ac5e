"""What of this host the probe is asked to reach; what is not tried is in the certificate."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from runs import own_host, seal
from tests.runs.test_seal_judgement import probe

FIB = """\
Local:
  +-- 0.0.0.0/0 3 0 5
     |-- 10.0.0.7
        /32 host LOCAL
     |-- 127.0.0.1
        /32 host LOCAL
     |-- 10.0.0.255
        /32 link BROADCAST
"""
INET6 = """\
fd000000000000000000000000000002 02 40 00 80     eth0
00000000000000000000000000000001 01 80 10 80       lo
fe800000000000000000000000000001 02 40 20 80     eth0
"""
HEADING = "  sl  local_address rem_address   st\n"
TCP = f"{HEADING}   0: 00000000:1F90 00000000:0000 0A\n   1: 0100007F:0016 00000000:0000 01\n"


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    for name, text in (("fib_trie", FIB), ("if_inet6", INET6), ("tcp", TCP), ("tcp6", HEADING)):
        (tmp_path / name).write_text(text)
    return tmp_path


def test_addresses_and_ports_are_read_and_nothing_is_left_out(proc: Path):
    assert own_host.look(proc) == own_host.OwnHost(("10.0.0.7", "fd00::2"), (8080, 22))


def test_a_kernel_without_ipv6_leaves_nothing_out(proc: Path):
    (proc / "if_inet6").unlink()
    (proc / "tcp6").unlink()
    assert own_host.look(proc).untried == ()


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("if_inet6", f"{INET6}fd00zz 02 40 00 80 eth0\n", "1 line of {} that cannot be understood"),
        ("if_inet6", f"{INET6}\nfd00 02\n", "2 lines of {} that cannot be understood"),
        ("fib_trie", FIB.replace("10.0.0.7", "10.0.0.777"), "1 line of {} that cannot be"),
        ("tcp", f"{TCP}   2: nothing\n   3: 00:zz 0 0A\n", "2 lines of {} that cannot be"),
    ],
)
def test_a_line_that_cannot_be_understood_is_told(proc: Path, name: str, text: str, said: str):
    (proc / name).write_text(text)
    [told] = own_host.look(proc).untried
    assert told.startswith(said.format(proc / name))


@pytest.mark.parametrize(
    ("name", "what"), [("fib_trie", "IPv4 addresses"), ("if_inet6", "IPv6"), ("tcp", "open ports")]
)
def test_a_list_that_cannot_be_read_is_told(proc: Path, name: str, what: str):
    (proc / name).unlink()
    (proc / name).mkdir()
    [told] = own_host.look(proc).untried
    assert told.startswith(f"its {what}")
    assert f"{proc / name} cannot be read" in told


def test_more_addresses_than_are_tried_are_told(proc: Path):
    lines = [f"     |-- 10.1.0.{n}\n        /32 host LOCAL\n" for n in range(30)]
    (proc / "fib_trie").write_text("".join(lines))
    host = own_host.look(proc)

    assert len(host.addresses) == own_host.ADDRESSES_TRIED
    assert host.untried == ("11 of its 31 addresses",)


def test_what_is_not_tried_stands_in_the_certificate():
    judged = seal.judge(probe(), mode="sealed")
    certificate = seal.with_untried(judged, ["1 of its 17 addresses", "its IPv6 addresses"])

    assert seal.with_untried(judged, ()) == judged
    assert certificate.checks[-1] == seal.Check(
        "untried", "unknown", "of this host, not tried: 1 of its 17 addresses; its IPv6 addresses"
    )
    assert certificate.headline.endswith("; 1 of 10 checks could not be made")


def test_a_port_that_listens_everywhere_is_asked_for():
    with socket.create_server(("0.0.0.0", 0)) as listening:  # noqa: S104 - that is the question
        port = listening.getsockname()[1]
        found = own_host.look().ports
        assert port in found or len(found) == own_host.PORTS_TRIED
    assert 1 <= len(found) == len(set(found)) <= own_host.PORTS_TRIED


def test_the_hosts_addresses_hold_no_loopback():
    for address in own_host.look().addresses:
        assert not address.startswith(("127.", "fe80"))
        assert address != "::1"
