"""Is the daemon on this machine? A relayed run needs a unix socket of ours inside a container.

A daemon in a virtual machine answers on a local socket, and may even show our files: so its
kernel is compared, and it has to show a fresh file and a fresh socket back through a mount.
Reading through a mount needs no program in the container, hence no image of ours.
"""

from __future__ import annotations

import asyncio
import io
import os
import secrets
import shutil
import socket
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from runs.engines.arguments import label_arguments, mount_argument
from runs.engines.base import LABEL_ROLE, EngineError, EngineUnavailable, Mount
from runs.engines.process import Completed, cause, printable

_PROBE_S = 5.0  # each; the whole probe took 0.25 s where it was measured
_FIX = (
    "relayed runs need a Docker daemon on this machine's own kernel"
    " (`docker context use default`, DOCKER_HOST unset), or `--mode open`"
)
# Where daemons in virtual machines put their socket, from their own documentation.
_MACHINES = {
    "/.docker/desktop/": "Docker Desktop",
    "/.docker/run/": "Docker Desktop",
    "/.colima/": "Colima",
    "/colima/": "Colima",
    "/.lima/": "Lima",
    "/.rd/": "Rancher Desktop",
    "/.orbstack/": "OrbStack",
}


class Caller(Protocol):
    async def call(self, *words: str, timeout_s: float = ...) -> Completed: ...


def endpoint_is_elsewhere(endpoint: str) -> str:
    """Why the daemon at `endpoint` cannot be a local one; empty if it may be."""
    scheme, _, path = endpoint.partition("://")
    if scheme != "unix":
        return f"the Docker daemon is remote ({printable(endpoint)}): {_FIX}"
    for part, machine in _MACHINES.items():
        if part in path:
            return f"the Docker daemon is in a virtual machine ({machine}): {_FIX}"
    return ""


def kernel_is_another(operating_system: str, kernel: str, endpoint: str) -> str:
    """Why the daemon's kernel is not this one; empty if nothing speaks against it."""
    if operating_system == "Docker Desktop" or kernel != os.uname().release:
        name = "Docker Desktop" if operating_system == "Docker Desktop" else f"kernel {kernel}"
        return (
            f"the Docker daemon at {printable(endpoint)} is in a virtual machine"
            f" ({printable(name)}): {_FIX}"
        )
    return ""


async def probe_mount(
    engine: Caller, endpoint: str, directory: Path | None, labels: Mapping[str, str]
) -> None:
    """Have the daemon show a fresh file and socket of `directory` through a mount.

    Raises EngineUnavailable if it sees none or others, EngineError if it could not be asked.
    """
    folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="probe-", dir=directory))
    # The path of a socket is limited to 108 bytes: it is bound relative to its directory.
    listener = socket.socket(socket.AF_UNIX)
    try:
        nonce = secrets.token_hex(16)
        (folder / "file").write_text(nonce)
        _bind_in(folder, listener)
        marked = {**labels, LABEL_ROLE: "probe"}
        await _probe(engine, folder, nonce, endpoint, marked)
    finally:
        listener.close()
        await asyncio.to_thread(shutil.rmtree, folder, True)


def _bind_in(folder: Path, listener: socket.socket) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        listener.bind(f"/proc/self/fd/{descriptor}/socket")
        listener.listen(1)
    finally:
        os.close(descriptor)


async def _probe(
    engine: Caller, folder: Path, nonce: str, endpoint: str, labels: Mapping[str, str]
) -> None:
    tar = folder / "image.tar"
    with tarfile.open(tar, "w") as image:
        entry = tarfile.TarInfo("probe")
        entry.type = tarfile.DIRTYPE
        image.addfile(entry)
    marks = " ".join(f'{name}="{value}"' for name, value in labels.items())
    made = await engine.call("import", "--change", f"LABEL {marks}", str(tar), timeout_s=_PROBE_S)
    if made.code != 0:
        raise EngineError(f"cannot make the probe image: {cause(made.stderr)}")
    try:
        await _probe_with(engine, made.text, folder, nonce, endpoint, labels)
    finally:
        await engine.call("image", "rm", "--force", made.text)


async def _probe_with(
    engine: Caller,
    image: str,
    folder: Path,
    nonce: str,
    endpoint: str,
    labels: Mapping[str, str],
) -> None:
    mount = mount_argument(Mount(str(folder), "/probe"))
    marked = label_arguments(labels)
    words = ("create", *marked, "--network", "none", "--mount", mount, image, "/none")
    made = await engine.call(*words, timeout_s=_PROBE_S)
    if made.code != 0:
        if "does not exist" in made.stderr:
            raise _elsewhere(endpoint)
        raise EngineError(f"cannot make the probe container: {cause(made.stderr)}")
    try:
        seen = await engine.call("cp", f"{made.text}:/probe/file", "-", timeout_s=_PROBE_S)
        # A socket is copied as an empty archive; what is missing is an error.
        sock = await engine.call("cp", f"{made.text}:/probe/socket", "-", timeout_s=_PROBE_S)
        if _only_file(seen.stdout) != nonce.encode() or sock.code != 0 or _names(sock.stdout):
            raise _elsewhere(endpoint)
    finally:
        await engine.call("rm", "--force", "--volumes", made.text)


def _elsewhere(endpoint: str) -> EngineUnavailable:
    return EngineUnavailable(
        f"the Docker daemon at {printable(endpoint)} does not see this machine's files and"
        f" sockets: it is remote, in a virtual machine, or confined; {_FIX}"
    )


def _only_file(archive: bytes) -> bytes:
    try:
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            entry = tar.next()
            data = tar.extractfile(entry) if entry is not None else None
            return data.read(1024) if data is not None else b""
    except tarfile.TarError:
        return b""


def _names(archive: bytes) -> list[str]:
    try:
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            return tar.getnames()
    except tarfile.TarError:
        return []
