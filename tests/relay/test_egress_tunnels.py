"""What passes the egress door: tunnels to listed hosts, whole and unmixed."""

from __future__ import annotations

import asyncio
import os
import sys
import zipfile

import pytest

from tests.relay.certificates import server_context
from tests.relay.egress_door import NAME, door, echo_door, greet
from tests.relay.stand import joined, listening, plain

pytestmark = pytest.mark.anyio


async def test_a_listed_host_is_reached_by_tls_and_recorded(certificate):
    async with (
        listening(greet, ssl=server_context(certificate)) as port,
        door(f"{NAME}:{port}", admit=[f"127.0.0.1:{port}"]) as opened,
    ):
        reader, writer = await opened.tls(f"{NAME}:{port}", NAME, certificate)
        writer.write(b"hello\n")
        assert await reader.readline() == b"you said hello\n"
        writer.transport.abort()
        attempt = await opened.attempt()
        assert (attempt.host, attempt.port, attempt.address) == (NAME, port, "127.0.0.1")
        assert (attempt.allowed, attempt.listed, attempt.flag) == (True, True, "")
        assert attempt.bytes_out > 200
        assert attempt.bytes_in > 500
        assert 0 < attempt.duration_s < 5
        assert attempt.ended_at >= attempt.started_at


@pytest.mark.parametrize("version", ["1.0", "1.1"])
async def test_both_versions_of_http_may_ask(version):
    async with (
        echo_door() as (opened, port),
        opened.tunnel(f"{NAME}:{port}", version) as (answer, reader, writer),
    ):
        assert answer == b"HTTP/1.1 200 Connection established\r\n\r\n"
        writer.write(b"ping")
        assert await reader.readexactly(4) == b"ping"


async def test_a_name_has_one_spelling():
    async with (
        echo_door() as (opened, port),
        opened.tunnel(f"FILES.vendor.TEST.:{port}") as (answer, _, _),
    ):
        assert answer.startswith(b"HTTP/1.1 200 ")


async def test_bytes_sent_with_the_request_go_into_the_tunnel():
    async with echo_door() as (opened, port):
        head = f"CONNECT {NAME}:{port} HTTP/1.1\r\n\r\nearly"
        answer, reader, writer = await opened.say(head.encode())
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert await reader.readexactly(5) == b"early"
        writer.transport.abort()


async def test_a_server_that_speaks_first_is_heard():
    async def banner(reader, writer):
        writer.write(b"SSH-2.0-there\r\n")
        await reader.read()

    async with (
        echo_door(banner) as (opened, port),
        opened.tunnel(f"{NAME}:{port}") as (_, reader, _),
    ):
        assert await reader.readline() == b"SSH-2.0-there\r\n"


async def test_a_side_that_has_said_everything_still_hears_the_rest():
    """A half-close passes each way, and what is in flight arrives whole."""
    said = []

    async def late(reader, writer):
        said.append(await reader.read())
        writer.write(b"x" * 3_000_000)
        await writer.drain()
        writer.write_eof()

    async with echo_door(late) as (opened, port):
        async with opened.tunnel(f"{NAME}:{port}") as (_, reader, writer):
            writer.write(b"all I have")
            writer.write_eof()
            async with asyncio.timeout(10):
                assert len(await reader.read()) == 3_000_000
        assert said == [b"all I have"]
        attempt = await opened.attempt()
        assert (attempt.bytes_out, attempt.bytes_in, attempt.reason) == (10, 3_000_000, "")


@pytest.mark.parametrize("size", range(150_000, 350_001, 25_000))
async def test_what_a_host_said_last_arrives_however_late_it_is_read(size):
    """Of one of these sizes a part is still with the door when the host has ended."""

    async def speak(reader, writer):
        writer.write(b"x" * size)
        await writer.drain()
        writer.write_eof()
        await reader.read()

    async with (
        echo_door(speak) as (opened, port),
        opened.tunnel(f"{NAME}:{port}") as (_, reader, writer),
    ):
        reader._transport.pause_reading()
        writer.write_eof()
        await asyncio.sleep(0.1)
        reader._transport.resume_reading()
        async with asyncio.timeout(5):
            assert len(await reader.read()) == size


async def test_a_slow_reader_holds_the_sender_back():
    async def flood(reader, writer):
        while True:
            writer.write(b"x" * 65536)
            await writer.drain()

    async with echo_door(flood) as (opened, port):
        async with opened.tunnel(f"{NAME}:{port}"):
            await asyncio.sleep(0.3)
        attempt = await opened.attempt()
        assert 0 < attempt.bytes_in < 16 * 1024 * 1024


async def test_many_tunnels_at_once_do_not_mix():
    async with echo_door() as (opened, port):

        async def one(number: int) -> None:
            async with opened.tunnel(f"{NAME}:{port}") as (_, reader, writer):
                message = os.urandom(200_000)
                writer.write(message)
                assert await reader.readexactly(len(message)) == message, number

        await asyncio.gather(*(one(number) for number in range(20)))
        assert {a.sequence for a in opened.attempts} == set(range(1, len(opened.attempts) + 1))


async def test_pip_downloads_through_the_door_and_nowhere_else(certificate, tmp_path):
    """A real client of package indexes, told of the door by the usual variables."""
    wheel = "thing-1.0-py3-none-any.whl"
    with zipfile.ZipFile(tmp_path / wheel, "w") as file:
        file.writestr("thing.py", "")
        file.writestr(
            "thing-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: thing\nVersion: 1.0\n"
        )
        file.writestr("thing-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        file.writestr("thing-1.0.dist-info/RECORD", "")
    page = f'<a href="/{wheel}">{wheel}</a>'.encode()

    async def index(reader, writer):
        while head := await reader.readuntil(b"\r\n\r\n"):
            path = head.split(b" ")[1]
            found = (tmp_path / wheel).read_bytes() if path.endswith(b".whl") else page
            writer.write(plain(found, "content-type: text/html"))
            await writer.drain()

    async with (
        listening(index, ssl=server_context(certificate)) as port,
        door(f"{NAME}:{port}", admit=[f"127.0.0.1:{port}"]) as opened,
    ):

        async def link(reader, writer):
            """What stands between a container's loopback and the door."""
            inner = await asyncio.open_unix_connection(str(opened.path))
            await joined(reader, writer, *inner)

        async with listening(link) as linked:

            async def pip(host: str) -> tuple[int, str]:
                arguments = f"-m pip download --no-deps --retries 0 --isolated --no-cache-dir \
                    --index-url https://{host}:{port}/simple --cert {certificate}/cert.pem \
                    --dest {tmp_path}/got thing"
                process = await asyncio.create_subprocess_exec(
                    sys.executable,
                    *arguments.split(),
                    env={"HTTPS_PROXY": f"http://127.0.0.1:{linked}", "PATH": os.environ["PATH"]},
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.STDOUT,
                )
                async with asyncio.timeout(60):
                    out, _ = await process.communicate()
                return process.returncode, out.decode()

            code, said = await pip(NAME)
            assert code == 0, said
            assert (tmp_path / "got" / wheel).exists()
            code, _ = await pip("other.vendor.test")
            assert code != 0
    assert {(a.host, a.allowed) for a in opened.attempts} == {
        (NAME, True),
        ("other.vendor.test", False),
    }
