"""The egress door, on loopback: stand-ins behind names that only the test resolves."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import socket
import ssl
import sys
import tempfile
import time
import zipfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from relay.destinations import egress_rules
from relay.egress import EgressLimits, serving_egress
from relay.sockets import bind_unix, connected_unix
from relay.tunnel import MAX_HEAD_BYTES
from tests.relay.certificates import make_certificate, server_context
from tests.relay.stand import free_port, listening, plain

pytestmark = pytest.mark.anyio
NAME = "files.vendor.test"
PROVIDER = "api.vendor.test"


@dataclasses.dataclass
class Door:
    path: Path
    attempts: list
    looked_up: list
    filed: asyncio.Event

    async def say(self, data: bytes) -> tuple[bytes, asyncio.StreamReader, asyncio.StreamWriter]:
        """Send a request head; the answer's head and the connection."""
        reader, writer = await asyncio.open_unix_connection(sock=connected_unix(self.path))
        writer.write(data)
        try:
            async with asyncio.timeout(5):
                return await reader.readuntil(b"\r\n\r\n"), reader, writer
        except asyncio.IncompleteReadError as error:
            return error.partial, reader, writer

    @contextlib.asynccontextmanager
    async def tunnel(self, authority: str, version: str = "1.1"):
        head = f"CONNECT {authority} HTTP/{version}\r\nhost: {authority}\r\n\r\n"
        answer, reader, writer = await self.say(head.encode("latin-1"))
        try:
            yield answer, reader, writer
        finally:
            writer.transport.abort()
            await asyncio.sleep(0)

    async def refusal(self, authority: str) -> str:
        async with self.tunnel(authority) as (answer, _, _):
            return answer.decode()

    async def tls(self, authority: str, name: str, trusted: Path):
        """A TLS connection inside a tunnel."""
        sock = connected_unix(self.path)
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(sock, f"CONNECT {authority} HTTP/1.1\r\n\r\n".encode())
        answer = await loop.sock_recv(sock, 4096)
        assert answer.startswith(b"HTTP/1.1 200 "), answer
        context = ssl.create_default_context(cafile=str(trusted / "cert.pem"))
        return await asyncio.open_connection(sock=sock, ssl=context, server_hostname=name)

    async def attempt(self, number: int = 1):
        async with asyncio.timeout(5):
            while len(self.attempts) < number:
                self.filed.clear()
                await self.filed.wait()
        return self.attempts[number - 1]


@contextlib.asynccontextmanager
async def door(*allow, names=None, mode="refuse", admit=(), provider=PROVIDER, listener=None, **kw):
    """An open door. `names` maps names to addresses; all others do not resolve."""
    known = {NAME: ["127.0.0.1"], **(names or {})}
    looked_up, attempts, filed = [], [], asyncio.Event()

    async def resolve(host, port):
        looked_up.append(host)
        if host not in known:
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        return known[host]

    def file(attempt):
        attempts.append(attempt)
        filed.set()
        if listener is not None:
            listener(attempt)

    rules = egress_rules(allow, mode=mode, provider_host=provider, admit=admit)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "egress.sock"
        async with serving_egress(
            rules, bind_unix(path), file, limits=EgressLimits(**kw), resolve=resolve
        ):
            yield Door(path, attempts, looked_up, filed)


async def echo(reader, writer):
    while piece := await reader.read(65536):
        writer.write(piece)
        await writer.drain()


async def greet(reader, writer):
    """A TLS server's application: one line, answered."""
    line = await reader.readline()
    writer.write(b"you said " + line)
    await writer.drain()
    await reader.read()


@contextlib.asynccontextmanager
async def echo_door(handler=echo, **options):
    """An open door with one listed host, whose port is that of `handler`."""
    async with (
        listening(handler) as port,
        door(f"{NAME}:{port}", admit=[f"127.0.0.1:{port}"], **options) as opened,
    ):
        yield opened, port


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    return make_certificate(tmp_path_factory.mktemp("tls"), NAME, PROVIDER)


# -- what passes ---------------------------------------------------------------------------------
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
            inner_reader, inner_writer = await asyncio.open_unix_connection(str(opened.path))
            try:
                await asyncio.gather(copy(reader, inner_writer), copy(inner_reader, writer))
            finally:
                inner_writer.transport.abort()

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


async def copy(reader, writer):
    with contextlib.suppress(ConnectionError):
        while piece := await reader.read(65536):
            writer.write(piece)
            await writer.drain()
    writer.close()


# -- what does not -------------------------------------------------------------------------------
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
    async with listening(echo) as port:
        answers = [["127.0.0.1"], ["10.0.0.1"]]
        looked_up = []

        async def changing(host, port):
            looked_up.append(host)
            return answers[min(len(looked_up), 2) - 1]

        rules = egress_rules([f"{NAME}:{port}"], admit=[f"127.0.0.1:{port}"])
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "egress.sock"
            attempts = []
            async with serving_egress(rules, bind_unix(path), attempts.append, resolve=changing):
                opened = Door(path, attempts, [], asyncio.Event())
                async with opened.tunnel(f"{NAME}:{port}") as (answer, _, _):
                    assert answer.startswith(b"HTTP/1.1 200 ")
            assert looked_up == [NAME]
            assert attempts[0].address == "127.0.0.1"


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


# -- what fails ----------------------------------------------------------------------------------
async def test_a_name_that_does_not_resolve_is_a_failure_not_a_refusal():
    async with door("nowhere.vendor.test") as opened:
        answer = await opened.refusal("nowhere.vendor.test:443")
        assert answer.startswith("HTTP/1.1 502 ")
        attempt = await opened.attempt()
        assert (attempt.allowed, attempt.reason) == (True, "the name does not resolve")


async def test_a_host_where_nobody_listens_is_a_failure():
    port = free_port()
    async with door(f"{NAME}:{port}", admit=[f"127.0.0.1:{port}"]) as opened:
        assert (await opened.refusal(f"{NAME}:{port}")).startswith("HTTP/1.1 502 ")
        assert "refused" in (await opened.attempt()).reason


async def test_the_next_address_is_tried_when_one_does_not_answer():
    async with listening(echo) as port:
        names = {NAME: ["127.0.0.2", "127.0.0.1"]}
        admit = [f"127.0.0.1:{port}", f"127.0.0.2:{port}"]
        async with door(f"{NAME}:{port}", names=names, admit=admit) as opened:
            async with opened.tunnel(f"{NAME}:{port}") as (answer, _, _):
                assert answer.startswith(b"HTTP/1.1 200 ")
            assert (await opened.attempt()).address == "127.0.0.1"


async def test_a_look_up_that_hangs_is_left():
    async def hang(host, port):
        await asyncio.sleep(60)

    rules = egress_rules([NAME])
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "egress.sock"
        limits = EgressLimits(connect_timeout_s=0.1)
        attempts = []
        async with serving_egress(
            rules, bind_unix(path), attempts.append, limits=limits, resolve=hang
        ):
            opened = Door(path, attempts, [], asyncio.Event())
            assert (await opened.refusal(f"{NAME}:443")).startswith("HTTP/1.1 502 ")
        assert attempts[0].reason == "the name did not resolve within 0.1 s"


async def test_a_tunnel_in_which_nothing_moves_is_ended():
    async with echo_door(idle_timeout_s=0.15) as (opened, port):
        async with opened.tunnel(f"{NAME}:{port}") as (_, reader, writer):
            for _ in range(5):  # what moves is not idle, however long it lasts
                writer.write(b"ping")
                assert await reader.readexactly(4) == b"ping"
                await asyncio.sleep(0.06)
            assert await reader.read() == b""
        assert "nothing moved" in (await opened.attempt()).reason


async def test_a_reset_by_the_host_ends_the_tunnel():
    async def reset(reader, writer):
        writer.write(b"half")
        await writer.drain()
        linger = b"\x01\x00\x00\x00\x00\x00\x00\x00"
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)

    async with echo_door(reset) as (opened, port):
        async with opened.tunnel(f"{NAME}:{port}") as (_, reader, writer):
            writer.write(b"x")
            with contextlib.suppress(ConnectionError):
                async with asyncio.timeout(5):
                    await reader.read()
        assert (await opened.attempt()).ended_at is not None


async def test_a_client_that_vanishes_closes_the_way_out():
    gone = asyncio.Event()

    async def watch(reader, writer):
        await reader.read()
        gone.set()

    async with echo_door(watch) as (opened, port):
        async with opened.tunnel(f"{NAME}:{port}") as (_, _, writer):
            writer.write(b"x")
        async with asyncio.timeout(5):
            await gone.wait()
        await opened.attempt()


# -- hostile requests ----------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", 405),
        (b"POST http://files.vendor.test/ HTTP/1.1\r\n\r\n", 405),
        (b"CONNECT files.vendor.test HTTP/1.1\r\n\r\n", 400),
        (b"CONNECT files.vendor.test: HTTP/1.1\r\n\r\n", 400),
        (b"CONNECT files.vendor.test:443 HTTP/2.0\r\n\r\n", 400),
        (b"CONNECT  files.vendor.test:443 HTTP/1.1\r\n\r\n", 400),
        (b"connect files.vendor.test:443 HTTP/1.1\r\n\r\n", 400),
        (b"CONNECT http://files.vendor.test:443/ HTTP/1.1\r\n\r\n", 400),
        (b"CONNECT me@files.vendor.test:443 HTTP/1.1\r\n\r\n", 400),
        (b"CONNECT files.vendor.test:443/x HTTP/1.1\r\n\r\n", 400),
        (b"CONNECT files.vendor.test%00.evil:443 HTTP/1.1\r\n\r\n", 400),
        (b"CONNECT files.vendor.test:443#x HTTP/1.1\r\n\r\n", 400),
        (b"CONNECT files.vendor.test:0443443 HTTP/1.1\r\n\r\n", 400),
        (b"CONNECT files.vendor.test:443 HTTP/1.1\r\nx\r\n\r\n", 400),
        (b"CONNECT files.vendor.test:443 HTTP/1.1\r\na: 1\r\n b: 2\r\n\r\n", 400),
        (b"CONNECT files.vendor.test:443 HTTP/1.1\r\na : 1\r\n\r\n", 400),
        (b"CONNECT files.vendor.test:443 HTTP/1.1\r\na: \x00\r\n\r\n", 400),
        (b"CONNECT files.vendor.test:443 HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n", 400),
        (b"CONNECT files.vendor.test:443 HTTP/1.1\nhost: x\r\n\r\n", 400),
        (b"\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\r\n\r\n", 400),
        (b"CONNECT x:1 HTTP/1.1\r\nx: " + b"x" * (MAX_HEAD_BYTES + 100), 431),
    ],
)
async def test_whatever_is_no_plain_connect_is_refused_and_recorded(head, status):
    async with door(NAME) as opened:
        answer, _, writer = await opened.say(head)
        writer.transport.abort()
        assert answer.startswith(b"HTTP/1.1 %d " % status), answer
        attempt = await opened.attempt()
        assert not attempt.allowed
        assert attempt.reason
        assert opened.looked_up == []


async def test_plain_http_through_the_proxy_variable_is_recorded_by_its_host():
    async with door(NAME) as opened:
        answer, _, writer = await opened.say(b"GET http://Files.vendor.test/x HTTP/1.1\r\n\r\n")
        writer.transport.abort()
        assert b"allow: CONNECT\r\n" in answer
        attempt = await opened.attempt()
        assert (attempt.host, attempt.port) == (NAME, 80)


async def test_a_host_header_is_not_the_host():
    async with door(NAME) as opened:
        head = f"CONNECT other.vendor.test:443 HTTP/1.1\r\nhost: {NAME}:443\r\n\r\n"
        answer, _, writer = await opened.say(head.encode())
        writer.transport.abort()
        assert answer.startswith(b"HTTP/1.1 403 ")


async def test_a_head_that_trickles_is_ended():
    async with door(NAME, head_time_s=0.1) as opened:
        answer, _, writer = await opened.say(b"CONNECT files")
        writer.transport.abort()
        assert answer.startswith(b"HTTP/1.1 408 ")


async def test_a_tls_greeting_that_trickles_is_ended():
    async with echo_door(head_time_s=0.1) as (opened, port):
        async with opened.tunnel(f"{NAME}:{port}") as (_, reader, writer):
            writer.write(b"\x16\x03\x01\x02\x00\x01")
            async with asyncio.timeout(5):
                assert await reader.read() == b""
        attempt = await opened.attempt()
        assert (attempt.bytes_out, attempt.bytes_in) == (0, 0)
        assert "greeting" in attempt.reason


async def test_tls_that_does_not_begin_with_its_greeting_is_ended():
    async with echo_door() as (opened, port):
        async with opened.tunnel(f"{NAME}:{port}") as (_, reader, writer):
            writer.write(b"\x15\x03\x01\x00\x02\x01\x00")
            async with asyncio.timeout(5):
                assert await reader.read() == b""
        assert (await opened.attempt()).bytes_in == 0


async def test_a_connection_without_a_word_is_no_attempt():
    async with door(NAME) as opened:
        _, writer = await asyncio.open_unix_connection(sock=connected_unix(opened.path))
        writer.transport.abort()
        await asyncio.sleep(0.05)
        assert opened.attempts == []


async def test_too_many_tunnels_are_told_so_and_room_is_made_again():
    async with echo_door(max_tunnels=2) as (opened, port):
        async with contextlib.AsyncExitStack() as stack:
            for _ in range(2):
                await stack.enter_async_context(opened.tunnel(f"{NAME}:{port}"))
            assert (await opened.refusal(f"{NAME}:{port}")).startswith("HTTP/1.1 503 ")
        await opened.attempt(3)
        async with opened.tunnel(f"{NAME}:{port}") as (answer, _, _):
            assert answer.startswith(b"HTTP/1.1 200 ")


async def test_closing_the_door_ends_every_tunnel_at_once_and_records_it():
    async with echo_door() as (opened, port):
        readers = []
        for _ in range(10):
            head = f"CONNECT {NAME}:{port} HTTP/1.1\r\n\r\n"
            _, reader, writer = await opened.say(head.encode())
            writer.write(b"x")
            readers.append((reader, writer))
        started = time.monotonic()
    assert time.monotonic() - started < 1
    assert [a.reason for a in opened.attempts] == ["the run ended"] * 10
    for _, writer in readers:
        writer.transport.abort()
    await asyncio.sleep(0)


async def test_closing_the_door_does_not_wait_for_a_look_up(monkeypatch):
    monkeypatch.setattr("relay.egress.socket.getaddrinfo", lambda *_, **__: time.sleep(1.5) or [])
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "egress.sock"
        async with serving_egress(egress_rules([NAME]), bind_unix(path), lambda _: None):
            _, writer = await asyncio.open_unix_connection(sock=connected_unix(path))
            writer.write(f"CONNECT {NAME}:443 HTTP/1.1\r\n\r\n".encode())
            await asyncio.sleep(0.1)
            started = time.monotonic()
        assert time.monotonic() - started < 0.5
        writer.transport.abort()
        await asyncio.sleep(0)


async def test_a_listener_that_fails_closes_no_door(caplog):
    def fail(attempt):
        raise RuntimeError("listener")

    async with door(NAME, listener=fail) as opened:
        for _ in range(2):
            assert (await opened.refusal("other.test:443")).startswith("HTTP/1.1 403 ")
        await opened.attempt(2)
    assert "attempt 1" in caplog.text


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    pieces=st.lists(
        st.one_of(
            st.binary(max_size=200),
            st.sampled_from(
                [
                    b"CONNECT ",
                    b"files.vendor.test:443",
                    b" HTTP/1.1",
                    b"\r\n",
                    b"\r\n\r\n",
                    b"host: ",
                ]
            ),
        ),
        max_size=8,
    )
)
def test_hostile_bytes_never_open_or_break_the_door(pieces):
    async def scenario():
        async with door(PROVIDER + "x", head_time_s=0.05) as opened:
            _, writer = await asyncio.open_unix_connection(sock=connected_unix(opened.path))
            for piece in pieces:
                writer.write(piece)
            writer.write_eof()
            await asyncio.sleep(0)
            assert (await opened.refusal("other.test:443")).startswith("HTTP/1.1 403 ")
            writer.transport.abort()
            await asyncio.sleep(0)
            assert opened.looked_up == []
            assert not any(attempt.allowed for attempt in opened.attempts)

    asyncio.run(scenario())
