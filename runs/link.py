"""The link: the small container whose network namespace the agent joins, and its probe's word."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from runs import seal
from runs.box import NOBODY, Box
from runs.engines.base import (
    LABEL_ROLE,
    ContainerSpec,
    Engine,
    EngineError,
    Mount,
)
from runs.own_host import OwnHost

PORT = 8080
SOCKET = "/run/relay.sock"
EGRESS_PORT = 3128  # where the link program forwards the egress door
EGRESS_SOCKET = "/run/egress.sock"
ANSWER_S = 20.0
ANSWER_MAX = 256 * 1024
# 500 connections through socat took 85 MiB; at 64 pids 200 connections stalled
MEMORY, PIDS = "192m", 600


@dataclass(slots=True)
class Link:
    """A running link. Its process is only the pipe its output comes through."""

    container: str
    process: asyncio.subprocess.Process
    out: asyncio.StreamReader
    err: asyncio.StreamReader

    async def let_go(self) -> None:
        """End the client whose pipe this is; the container does not notice."""
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        await self.process.wait()


def uid_gid() -> tuple[int, int]:
    """Who the link runs as: us, but never uid 0."""
    return (os.geteuid(), os.getegid()) if os.geteuid() else (NOBODY, NOBODY)


def questions(mode: str, *, host: OwnHost, limit_s: int, door: bool = False) -> str:
    """The probe's argument. It reads /proc, which can take some ms: call it in a thread."""
    return seal.questions(
        mode=mode,
        socket_path=SOCKET,
        egress_path=EGRESS_SOCKET if door else None,
        port=PORT,
        limit_s=limit_s,
        host=host,
        neighbours=neighbours(),
    )


def spec(
    *,
    image: str,
    questions: str,
    network: str,
    box: Box,
    labels: Mapping[str, str],
    door: bool = False,
) -> ContainerSpec:
    """The link's container: no network (sealed) or the run's own (key-safe), nothing but a socket.

    Only the socket's file is mounted, so its directory can stay closed to everybody. It runs under
    the engine's usual OCI runtime whatever the agent runs under: gVisor opens no socket of the
    host, and its own /proc tells the probe nothing that could be compared with the agent's.
    """
    uid, gid = uid_gid()
    sockets = [Mount(str(box.relay_socket), SOCKET, read_only=False)]
    if door:
        sockets.append(Mount(str(box.egress_socket), EGRESS_SOCKET, read_only=False))
    return ContainerSpec(
        image=image,
        argv=(questions,),
        labels={**labels, LABEL_ROLE: "link"},
        user=f"{uid}:{gid}",
        mounts=(*sockets, *box.network_files()),
        network=network,
        memory=MEMORY,
        pids=PIDS,
        cpus=1,
        read_only_root=True,
    )


def hand_over(socket_file: Path) -> None:
    """Let the link connect to the relay's socket when it does not run as us."""
    uid, gid = uid_gid()
    if uid != os.geteuid():
        os.chown(socket_file, uid, gid)


def neighbours() -> list[list[object]]:
    """Addresses of containers this host has lately talked to on a container bridge, from /proc."""
    try:
        lines = Path("/proc/net/arp").read_text().splitlines()[1:]
    except OSError:
        return []
    bridges = ("docker", "br-", "podman", "cni")
    rows = [line.split() for line in lines]
    return [[row[0], 80] for row in rows if len(row) >= 6 and row[5].startswith(bridges)][:4]


async def start(engine: Engine, container: str) -> Link:
    process = await engine.start_attached(container)
    out, err = pipes(process)
    return Link(container, process, out, err)


def pipes(
    process: asyncio.subprocess.Process,
) -> tuple[asyncio.StreamReader, asyncio.StreamReader]:
    """Both output pipes of an attached container. Raises EngineError for an engine without them."""
    if process.stdout is None or process.stderr is None:
        raise EngineError("the engine gave no output to read")
    return process.stdout, process.stderr


async def answer(link: Link) -> dict[str, object]:
    """The probe's one line of JSON. Raises EngineError or seal.ProbeFailed."""
    try:
        async with asyncio.timeout(ANSWER_S):
            data = bytearray()
            while b"\n" not in data and len(data) < ANSWER_MAX:
                piece = await link.out.read(65536)
                if not piece:
                    raise EngineError(await _why_silent(link))
                data += piece
    except TimeoutError:
        raise seal.ProbeFailed(f"the link's probe said nothing within {ANSWER_S:.0f} s") from None
    return seal.read_probe(bytes(data).partition(b"\n")[0])


async def _why_silent(link: Link) -> str:
    said = (await link.err.read(4000)).decode("utf-8", "replace").strip().splitlines()
    return f"the link did not start: {said[-1] if said else 'it said nothing'}"


async def watch(link: Link) -> None:
    """Return when the link's output ends; drains it, so that it can never block."""
    await asyncio.gather(_drain(link.out), _drain(link.err))


async def _drain(stream: asyncio.StreamReader) -> None:
    while await stream.read(65536):
        continue
