"""The shortcut over Docker's socket: a plain answer is used, all else goes to the client."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from runs.engines.api import SocketApi, Unanswered, local_socket
from runs.engines.base import EngineError
from runs.engines.docker import Docker

pytestmark = pytest.mark.anyio
OK = b"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n"
RUNNING = {"Id": "abc", "State": {"Status": "running", "Pid": 7}, "Config": {"Labels": None}}


@contextlib.asynccontextmanager
async def daemon(folder: Path, *answers: bytes) -> AsyncIterator[list[str]]:
    """A socket that gives these answers in turn; yields the request lines it saw."""
    asked: list[str] = []
    left = list(answers)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.readuntil(b"\r\n\r\n")
        asked.append(request.split(b"\r\n")[0].decode())
        writer.write(left.pop(0) if left else b"")
        await writer.drain()
        writer.close()

    server = await asyncio.start_unix_server(serve, folder / "docker.sock")
    async with server:
        yield asked


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory whose docker.sock is the daemon's; the client always fails."""
    client = tmp_path / "docker"
    client.write_text("#!/bin/sh\necho 'the client was asked' >&2\nexit 1\n")
    client.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/docker.sock")
    return tmp_path


async def test_a_container_is_read_from_the_socket(here: Path):
    async with daemon(here, OK + json.dumps(RUNNING).encode()) as asked:
        state = await Docker().inspect("abc")

    assert state is not None
    assert (state.status, state.pid, state.exit_code) == ("running", 7, None)
    assert asked == ["GET /containers/abc/json HTTP/1.0"]


async def test_a_container_that_is_not_there_is_none(here: Path):
    async with daemon(here, b"HTTP/1.0 404 Not Found\r\n\r\n{}"):
        assert await Docker().inspect("abc") is None


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"nonsense",
        b"HTTP/1.0 500 Trouble\r\n\r\n{}",
        b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        b"HTTP/1.0 two OK\r\n\r\n{}",
    ],
)
async def test_whatever_is_no_plain_answer_goes_to_the_client(here: Path, answer: bytes):
    async with daemon(here, answer):
        with pytest.raises(EngineError, match="the client was asked"):
            await Docker().inspect("abc")


async def test_no_socket_goes_to_the_client(here: Path):
    with pytest.raises(EngineError, match="the client was asked"):
        await Docker().containers({"sanduk.run": "u1"})


async def test_a_cut_answer_is_an_error_and_no_empty_list(here: Path):
    async with daemon(here, OK + b'[{"Id": "a'):
        with pytest.raises(EngineError, match="cannot be read"):
            await Docker().containers({"sanduk.run": "u1"})


async def test_only_rows_with_every_label_are_listed(here: Path):
    rows = [
        {"Id": "a", "Labels": {"sanduk.run": "u1"}, "State": "running", "Names": ["/n"]},
        {"Id": "b", "Labels": {"sanduk.run": "u2"}},
        {"Id": "c", "Labels": None},
    ]
    async with daemon(here, OK + json.dumps(rows).encode()):
        found = await Docker().containers({"sanduk.run": "u1"})

    assert [(row.id, row.name, row.status) for row in found] == [("a", "n", "running")]


async def test_what_the_socket_did_not_remove_is_left_to_the_client(here: Path):
    async with daemon(here, b"HTTP/1.0 500 Busy\r\n\r\n{}") as asked:
        with pytest.raises(EngineError, match="the client was asked"):
            await Docker().remove(["abc"])

    assert asked == ["DELETE /containers/abc?force=true&v=true HTTP/1.0"]


@pytest.mark.parametrize("status", [b"204 No Content", b"404 Not Found", b"409 In Progress"])
async def test_a_removal_that_was_done_needs_no_client(here: Path, status: bytes):
    async with daemon(here, b"HTTP/1.0 " + status + b"\r\n\r\n"):
        await Docker().remove(["abc"])


async def test_a_name_cannot_leave_its_place_in_the_path(here: Path):
    async with daemon(here, b"HTTP/1.0 404 Not Found\r\n\r\n") as asked:
        await SocketApi(str(here / "docker.sock")).container("../images/x?force=1 HTTP/1.1\r\nX:")

    assert asked == [
        "GET /containers/..%2Fimages%2Fx%3Fforce%3D1%20HTTP%2F1.1%0D%0AX%3A/json HTTP/1.0"
    ]


async def test_a_silent_socket_is_given_up(here: Path):
    with pytest.raises(Unanswered):
        await SocketApi(str(here / "nothing.sock")).container("abc")


@pytest.mark.parametrize(
    ("host", "context", "config", "socket"),
    [
        ("unix:///x.sock", "", "", "/x.sock"),
        ("tcp://box:2375", "", "", None),
        ("ssh://box", "", "", None),
        ("", "colima", "", None),
        ("", "", '{"currentContext": "colima"}', None),
        ("", "", '{"currentContext": "default"}', "/var/run/docker.sock"),
        ("", "", "{}", "/var/run/docker.sock"),
        ("", "", "nonsense", None),
        ("", "", "[]", None),
    ],
)
def test_the_socket_is_known_only_where_the_client_would_use_it(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    host: str,
    context: str,
    config: str,
    socket: str | None,
):
    monkeypatch.setenv("DOCKER_HOST", host)
    monkeypatch.setenv("DOCKER_CONTEXT", context)
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    if config:
        (tmp_path / "config.json").write_text(config)

    assert local_socket() == socket
