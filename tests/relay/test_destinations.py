"""Which hosts may be named, and which addresses nobody reaches."""

from __future__ import annotations

import errno
import socket
import ssl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay.client_hello import MAX_HELLO_BYTES, UnreadableHello, names_asked_for
from relay.destinations import (
    InvalidHost,
    egress_rules,
    is_public,
    is_this_machine,
    parse_allowed_host,
    read_host_port,
    show_host_port,
)


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("files.test", "files.test", 443),
        ("Files.Test.", "files.test", 443),
        ("files.test:8443", "files.test", 8443),
        ("93.184.215.14", "93.184.215.14", 443),
        ("[2606:4700:0::1]:8443", "2606:4700::1", 8443),
    ],
)
def test_a_host_is_an_exact_name_and_port(text, host, port):
    assert parse_allowed_host(text) == (host, port)
    assert parse_allowed_host(show_host_port(host, port)) == (host, port)


@pytest.mark.parametrize(
    "text",
    [
        "*.files.test",
        "*",
        "https://files.test",
        "files.test/simple",
        "me@files.test",
        "files.test:0",
        "files.test:65536",
        "files.test:https",
        "files.test:",
        "",
        ":443",
        "a b",
        "files..test",
        "bücher.test",
        "2606:4700::1",
        "[not-an-address]",
        "[93.184.215.14]",
        "x" * 64 + ".test",
        "a." * 127 + "test",
        "files.test\n",
    ],
)
def test_whatever_is_no_exact_host_is_refused_by_the_flag(text):
    with pytest.raises(InvalidHost, match="--allow-host"):
        parse_allowed_host(text)


@pytest.mark.parametrize("text", ["localhost", "127.0.0.1", "10.0.0.1:443", "[::1]", "[fe80::1]"])
def test_a_private_host_cannot_be_listed(text):
    with pytest.raises(InvalidHost, match="private"):
        parse_allowed_host(text)


def test_the_providers_host_cannot_be_listed():
    with pytest.raises(InvalidHost, match="relay alone"):
        egress_rules(["api.vendor.test:8443"], provider_host="API.vendor.test")


@pytest.mark.parametrize("text", ["files.test:443", "127.0.0.1", "10.0.0.0/8:443", ""])
def test_only_addresses_with_a_port_can_be_admitted(text):
    with pytest.raises(InvalidHost, match="ADDRESS:PORT"):
        egress_rules([], admit=[text])


def test_a_mode_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="refuse or warn"):
        egress_rules([], mode="allow")


PRIVATE = [
    "127.0.0.1",
    "127.255.255.254",
    "0.0.0.0",  # noqa: S104
    "10.0.0.1",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "100.64.0.1",
    "100.100.100.200",
    "169.254.169.254",
    "168.63.129.16",
    "192.0.0.192",
    "198.18.0.1",
    "224.0.0.251",
    "239.255.255.250",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "fe80::1",
    "fe80::1%eth0",
    "2606:4700::1%eth0",
    "fc00::1",
    "fd00:ec2::254",
    "ff02::1",
    "fec0::1",
    "2001:db8::1",
    "::ffff:127.0.0.1",
    "::ffff:169.254.169.254",
    "::ffff:10.0.0.1",
    "::127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::1",
    "2002:7f00:1::1",
    "2002:a9fe:a9fe::1",
    "2002:0a00:0001::1",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "nonsense",
    "",
]


@pytest.mark.parametrize("address", PRIVATE)
def test_addresses_nobody_reaches(address):
    assert not is_public(address)


@pytest.mark.parametrize(
    "address",
    [
        "93.184.215.14",
        "1.1.1.1",
        "172.32.0.1",
        "2606:4700::1",
        "::ffff:1.1.1.1",
        "64:ff9b::101:101",
        "2002:101:101::1",
    ],
)
def test_addresses_of_the_public_internet(address):
    assert is_public(address)


def test_an_address_of_this_machine_is_known_as_one():
    assert is_this_machine("127.0.0.1")
    assert not is_this_machine("192.0.2.1")


def test_a_public_address_of_this_machine_is_not_reachable(monkeypatch):
    rules = egress_rules([])
    assert rules.is_reachable("93.184.215.14", 443)
    monkeypatch.setattr("relay.destinations.is_this_machine", lambda _: True)
    assert not rules.is_reachable("93.184.215.14", 443)


def test_an_admitted_address_is_admitted_with_its_port_alone():
    rules = egress_rules([], admit=["127.0.0.1:8443", "[::1]:8443"])
    assert rules.is_reachable("127.0.0.1", 8443)
    assert rules.is_reachable("::1", 8443)
    assert not rules.is_reachable("127.0.0.1", 8444)
    assert not rules.is_reachable("127.0.0.2", 8443)


@given(st.text(max_size=40))
def test_reading_a_host_never_fails_and_has_one_spelling(text):
    found = read_host_port(text)
    if found is not None:
        assert read_host_port(show_host_port(*found)) == found


# -- the TLS greeting ----------------------------------------------------------------------------
def greeting(name: str | None) -> bytes:
    """The first bytes a real TLS client sends."""
    context = ssl.create_default_context()
    context.check_hostname = name is not None
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(incoming, outgoing, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


def split_records(hello: bytes, size: int) -> bytes:
    """The same greeting, spread over records of at most `size` bytes."""
    message = hello[5:]
    parts = [message[at : at + size] for at in range(0, len(message), size)]
    return b"".join(hello[:3] + len(part).to_bytes(2, "big") + part for part in parts)


def test_the_name_of_a_real_greeting_is_read():
    assert names_asked_for(greeting("files.vendor.test")) == ("files.vendor.test",)
    assert names_asked_for(greeting(None)) == ()


@pytest.mark.parametrize("size", [1, 3, 40, 100])
def test_a_greeting_in_many_records_is_read(size):
    data = split_records(greeting("files.vendor.test"), size)
    assert names_asked_for(data) == ("files.vendor.test",)


@given(st.data())
def test_a_greeting_cut_anywhere_wants_more(data):
    hello = greeting("files.vendor.test")
    cut = data.draw(st.integers(0, len(hello) - 1))
    assert names_asked_for(hello[:cut]) is None


@pytest.mark.parametrize("data", [b"GET / HTTP/1.1\r\n", b"SSH-2.0-x\r\n", b"\x16\x02", b"\x80"])
def test_what_is_no_tls_asks_for_no_name(data):
    assert names_asked_for(data) == ()


@pytest.mark.parametrize(
    "data",
    [
        b"\x15\x03\x01\x00\x02\x01\x00",  # an alert that some servers pass over
        b"\x14\x03\x01\x00\x01\x01",
        b"\x16\x03\x01\x00\x00",
        b"\x16\x03\x01\x00\x04\x02\x00\x00\x00",
        b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x03",
        b"\x16\x03\x01\x00\x10\x01\x00\xff\xff" + b"x" * (MAX_HELLO_BYTES + 1),
    ],
)
def test_tls_whose_name_cannot_be_told_is_unreadable(data):
    with pytest.raises(UnreadableHello):
        names_asked_for(data)


@given(st.binary(max_size=300).map(lambda tail: b"\x16\x03\x01" + tail) | st.binary(max_size=300))
def test_hostile_greetings_raise_nothing_else(data):
    try:
        names = names_asked_for(data)
    except UnreadableHello:
        return
    assert names is None or isinstance(names, tuple)


def test_a_damaged_extension_is_not_taken_for_no_name():
    hello = bytearray(greeting("files.vendor.test"))
    at = hello.find(b"files.vendor.test")
    hello[at - 2 : at] = (4000).to_bytes(2, "big")
    with pytest.raises(UnreadableHello):
        names_asked_for(bytes(hello))


def test_socket_families_of_both_kinds_are_tried(monkeypatch):
    """A machine without IPv6 owns no IPv6 address."""
    real = socket.socket

    def without_ipv6(family, kind):
        if family == socket.AF_INET6:
            raise OSError(errno.EAFNOSUPPORT, "not supported")
        return real(family, kind)

    monkeypatch.setattr("relay.destinations.socket.socket", without_ipv6)
    assert not is_this_machine("2606:4700::1")
