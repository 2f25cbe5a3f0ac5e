"""Whom the egress door lets reach whom: names, addresses, and never the model provider."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import pytest

from relay.destinations import egress_rules
from relay.egress import serving_egress
from relay.sockets import bind_unix
from tests.relay.certificates import make_certificate, server_context
from tests.relay.egress_door import NAME, PROVIDER, Door, door, echo, echo_door, greet
from tests.relay.stand import listening

pytestmark = pytest.mark.anyio


async def test_an_unlisted_host_is_refused_with_the_flag_that_would_allow_it():
    async with door(NAME) as opened:
        answer = await opened.refusal("other.vendor.test:443")
        line = answer.splitlines()[0]
        assert line.startswith("HTTP/1.1 403 ")
        assert "--allow-host other.vendor.test:443" in line
        attempt = await opened.attempt()
        assert (attempt.host, attempt.port, attempt.allowed) == ("other.vendor.test", 443, False)
        assert attempt.flag == "--allow-host other.vendor.test:443"
        assert attempt.reason == "not on the list"
        assert opened.looked_up == []


@pytest.mark.parametrize("authority", [f"{NAME}:80", f"x.{NAME}:443", "vendor.test:443"])
async def test_name_and_port_are_exact(authority):
    async with door(NAME) as opened:
        assert (await opened.refusal(authority)).startswith("HTTP/1.1 403 ")


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "10.0.0.5", "169.254.169.254", "::1", "::ffff:127.0.0.1", "fd00::1", "0.0.0.0"],  # noqa: S104
)
@pytest.mark.parametrize("mode", ["refuse", "warn"])
async def test_a_listed_name_may_not_lead_to_a_private_address(address, mode):
    async with door(NAME, names={NAME: ["93.184.215.14", address]}, mode=mode) as opened:
        assert (await opened.refusal(f"{NAME}:443")).startswith("HTTP/1.1 403 ")
        attempt = await opened.attempt()
        assert not attempt.allowed
        assert "private" in attempt.reason
        assert attempt.flag == ""
        assert attempt.address == ""


@pytest.mark.parametrize(
    "authority", ["127.0.0.1:{port}", "[::1]:{port}", "2130706433:{port}", "127.1:{port}"]
)
async def test_this_machine_is_not_reached_in_warn_mode_by_any_spelling(authority):
    reached = []

    async def note(reader, writer):
        reached.append(1)

    async with listening(note) as port:
        rules = egress_rules([], mode="warn")
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "egress.sock"
            attempts = []
            async with serving_egress(rules, bind_unix(path), attempts.append):  # system resolver
                opened = Door(path, attempts, [], asyncio.Event())
                answer = await opened.refusal(authority.format(port=port))
                assert answer.startswith(("HTTP/1.1 403 ", "HTTP/1.1 502 "))
        assert reached == []


async def test_the_address_that_was_judged_is_the_one_connected_to():
    """A name that changes its mind after the look-up gains nothing: there is only one look-up."""
    answers = iter([["127.0.0.1"], ["10.0.0.1"]])

    async def changing(host, port):
        return next(answers)

    async with echo_door(resolve=changing, provider="") as (opened, port):
        async with opened.tunnel(f"{NAME}:{port}") as (answer, _, _):
            assert answer.startswith(b"HTTP/1.1 200 ")
        assert opened.looked_up == [NAME]
        assert (await opened.attempt()).address == "127.0.0.1"


@pytest.mark.parametrize("mode", ["refuse", "warn"])
async def test_the_model_provider_is_never_reached_by_name(mode):
    async with door(NAME, mode=mode, names={PROVIDER: ["93.184.215.14"]}) as opened:
        for authority in (f"{PROVIDER}:443", f"{PROVIDER.upper()}.:8443"):
            assert (await opened.refusal(authority)).startswith("HTTP/1.1 403 ")
        assert [a.flag for a in opened.attempts] == ["", ""]
        assert opened.looked_up == []


@pytest.mark.parametrize("mode", ["refuse", "warn"])
async def test_the_model_provider_is_never_reached_by_another_name(mode):
    async with listening(echo) as port:
        names = {PROVIDER: ["127.0.0.1"]}
        async with door(
            f"{NAME}:{port}", mode=mode, names=names, admit=[f"127.0.0.1:{port}"]
        ) as opened:
            answer = await opened.refusal(f"{NAME}:{port}")
            assert "model provider" in answer.splitlines()[0]


@pytest.mark.parametrize("mode", ["refuse", "warn"])
async def test_the_model_provider_is_never_reached_through_a_shared_edge(certificate, mode):
    """The tunnel leads to a listed host, the TLS inside it asks for the provider."""
    asked = []
    context = server_context(certificate)
    context.sni_callback = lambda _, name, __: asked.append(name)
    async with (
        listening(greet, ssl=context) as port,
        door(f"{NAME}:{port}", admit=[f"127.0.0.1:{port}"], mode=mode) as opened,
    ):
        with pytest.raises((OSError, EOFError)):
            await opened.tls(f"{NAME}:{port}", PROVIDER, certificate)
        attempt = await opened.attempt()
        assert (attempt.allowed, attempt.bytes_out) == (False, 0)
        assert PROVIDER in attempt.reason
        assert asked == []


async def test_tls_for_another_host_is_noted_in_warn_mode(tmp_path):
    other = "other.vendor.test"
    certificate = make_certificate(tmp_path, other)
    async with (
        listening(greet, ssl=server_context(certificate)) as port,
        door(f"{NAME}:{port}", admit=[f"127.0.0.1:{port}"], mode="warn") as opened,
    ):
        reader, writer = await opened.tls(f"{NAME}:{port}", other, certificate)
        writer.write(b"hello\n")
        assert await reader.readline() == b"you said hello\n"
        writer.transport.abort()
        attempt = await opened.attempt()
        assert attempt.allowed
        assert other in attempt.reason


async def test_warn_mode_lets_pass_and_says_what_the_list_lacks():
    async with (
        listening(echo) as port,
        door(mode="warn", admit=[f"127.0.0.1:{port}"]) as opened,
    ):
        async with opened.tunnel(f"{NAME}:{port}") as (answer, reader, writer):
            assert answer.startswith(b"HTTP/1.1 200 ")
            writer.write(b"ping")
            assert await reader.readexactly(4) == b"ping"
        attempt = await opened.attempt()
        assert (attempt.allowed, attempt.listed) == (True, False)
        assert attempt.flag == f"--allow-host {NAME}:{port}"
        assert attempt.reason == "not on the list"
