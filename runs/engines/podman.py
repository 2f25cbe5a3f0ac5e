"""Podman, rootful and rootless. Tried with 4.3.1 on runc; flags chosen exist since 4.3.

Rootless, the link keeps the caller's user id (`--userns keep-id`) and the agent's container joins
the link's user namespace, so that both own the caller's files.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from asyncio.subprocess import Process
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import msgspec

from runs.engines import process
from runs.engines.arguments import has_no_way_out
from runs.engines.base import (
    ContainerSpec,
    ContainerState,
    EngineError,
    EngineFacts,
    EngineUnavailable,
)
from runs.engines.cli import DETACH_NEVER, CliEngine
from runs.engines.failures import (
    boot_id,
    failure,
    not_installed,
    podman_down,
    without_missing,
)
from runs.engines.process import Completed

# Every command waits for the lock of the image store, which another one holds while it copies a
# whole image (vfs, or a new user mapping): 20 s for 500 MB where it was measured.
PATIENCE_S = 180.0
CREATE_S = 600.0


class _Version(msgspec.Struct):
    version: str = msgspec.field(name="Version", default="")


class _Security(msgspec.Struct):
    rootless: bool = False


class _Distribution(msgspec.Struct):
    distribution: str = ""
    version: str = ""


class _Host(msgspec.Struct, rename="camel"):
    service_is_remote: bool = False
    arch: str = ""
    cgroup_version: str = ""
    cgroup_controllers: list[str] | None = None
    security: _Security = msgspec.field(default_factory=_Security)
    distribution: _Distribution = msgspec.field(default_factory=_Distribution)


class _Store(msgspec.Struct, rename="camel"):
    graph_root: str = ""


class PodmanInfo(msgspec.Struct):
    """The fields of `podman info` we read; podman-info(1)."""

    host: _Host
    version: _Version
    store: _Store = msgspec.field(default_factory=_Store)


class Podman(CliEngine):
    name: ClassVar[str] = "podman"
    cli: ClassVar[str] = "podman"
    quick_s: ClassVar[float] = PATIENCE_S
    create_s: ClassVar[float] = CREATE_S
    creation_patience_s: ClassVar[float] = 90.0

    def __init__(self) -> None:
        self._creating = asyncio.Lock()
        self._noted_in: dict[str, Path] = {}  # where conmon notes "out of memory", by container

    # -- the engine itself ------------------------------------------------------------------
    async def ready(self) -> EngineFacts:
        if shutil.which(self.cli) is None:
            raise EngineUnavailable(not_installed(self.cli, "Podman"))
        info = await self.info()
        host = info.host
        return EngineFacts(
            version=info.version.version,
            identity=f"podman:{info.store.graph_root}:{os.geteuid()}:{boot_id()}",
            rootless=host.security.rootless,
            operating_system=f"{host.distribution.distribution} {host.distribution.version}",
            missing_limits=_missing_limits(host),
            architecture=host.arch,
        )

    async def require_local(
        self, *, directory: Path | None = None, labels: Mapping[str, str] | None = None
    ) -> None:
        # A local podman is no daemon: its containers are made by a child of this very process.
        info = await self.info()
        if info.host.service_is_remote:
            raise EngineUnavailable(
                "podman here only speaks to a remote service or a virtual machine; relayed runs"
                " need it on this machine's own kernel (unset CONTAINER_HOST), or `--mode open`"
            )

    async def stop_service(self) -> None:
        raise EngineError("Podman is no service: there is nothing to stop")

    async def info(self) -> PodmanInfo:
        try:
            done = await self.call("info", "--format", "json")
        except EngineUnavailable:
            raise
        except EngineError as exc:
            raise EngineUnavailable(f"Podman: {exc}") from None
        if done.code != 0:
            raise EngineUnavailable(podman_down(done.stderr))
        return self._decoded(done, PodmanInfo)

    def is_rootless(self) -> bool:
        return os.geteuid() != 0

    # -- what differs from docker -------------------------------------------------------------
    def create_words(self, spec: ContainerSpec) -> list[str]:
        words = ["--runtime", spec.oci_runtime] if spec.oci_runtime else []
        words += ["create", "--log-driver", "k8s-file", "--log-opt", "max-size=10mb"]
        if self.is_rootless():
            joined = spec.share_userns_of
            words += ["--userns", f"container:{joined}" if joined else "keep-id"]
        # Its own tmpfs on /run, /tmp and /var/tmp are not what the caller ordered.
        words += ["--read-only-tmpfs=false"] if spec.read_only_root else []
        # Podman would hand the host's proxies, perhaps with a password, to the container.
        words += ["--http-proxy=false"] if has_no_way_out(spec) else []
        return words

    def tag_names(self, tag: str) -> tuple[str, ...]:
        return (tag, f"localhost/{tag}", f"docker.io/library/{tag}")

    def given_name(self, tag: str) -> str:
        return tag.removeprefix("localhost/")

    def build_words(self) -> list[str]:
        return ["build", "--format", "docker"]

    def network_words(self) -> list[str]:
        # One run has one network with one link in it: what must be kept apart is networks.
        return ["--disable-dns", "--opt", "isolate=true"]

    async def network_id(self, name: str, done: Completed) -> str:
        found = await self.call("network", "inspect", "--format", "{{.ID}}", "--", name)
        if found.code != 0:
            raise failure("cannot inspect a new network", found)
        return self.full_id(found)

    async def create(self, spec: ContainerSpec) -> str:
        async with self._creating:
            return await super().create(spec)

    async def start_attached(self, container: str) -> Process:
        argv = (self.cli, "start", "--attach", "--sig-proxy=false", container)
        return await process.start(argv, cwd=await self._place_of(container))

    async def start_interactive(self, container: str, *, tty: bool) -> Process:
        words = ("start", "--attach", "--interactive", "--sig-proxy=false", *DETACH_NEVER)
        place = await self._place_of(container)
        return await process.start_here((self.cli, *words, container), tty=tty, cwd=place)

    async def _place_of(self, container: str) -> str:
        """The working directory in which a container is to be started."""
        # Not beside a creation: the start would wait for the store, and its caller's patience end.
        async with self._creating:
            found = await self.call("inspect", "--format", "{{.StaticDir}}", "--", container)
        if found.code != 0:
            raise failure("cannot start a container", found)
        place = await asyncio.to_thread(_enterable, Path(found.text))
        self._noted_in[container] = place
        return str(place)

    async def inspect(self, container: str) -> ContainerState | None:
        state = await super().inspect(container)
        place = self._noted_in.get(container)
        if state is None or state.status != "exited" or place is None:
            return state
        noted = await asyncio.to_thread(os.path.lexists, place / "oom")
        return replace(state, oom_killed=state.oom_killed or noted)

    async def remove(self, containers: Sequence[str]) -> None:
        # One at a time: given several of which one is missing, 4.3 removes none, and says nothing.
        # In two rounds: a link cannot go before the agent that lives in its namespaces.
        left = list(containers)
        for last in (False, True):
            dependents = []
            for container in left:
                self._noted_in.pop(container, None)
                done = await self.call(*self.remove_words(), "--", container)
                told = without_missing(done.stderr)
                if done.code != 0 and told.strip():
                    if last or "has dependent containers" not in told:
                        raise failure("the engine could not remove a container", done)
                    dependents.append(container)
            left = dependents

    def remove_words(self) -> list[str]:
        return ["rm", "--force", "--volumes", "--time", "0"]  # else each waits 10 s for its TERM


def _enterable(static: Path) -> Path:
    """The working directory for `podman start`, removed with the container.

    conmon 2.1.6 notes "out of memory" by a file in its working directory, where podman looks for
    it only if that is the container's own. Rootless, with users mapped, that one belongs to
    another user id; the one above it is still ours.
    """
    for place in (static, static.parent):
        if os.access(place, os.X_OK):
            return place
    return Path("/")


def _missing_limits(host: _Host) -> tuple[str, ...]:
    """On cgroups v1 a rootless podman ignores limits; on v2 it has what was delegated to it."""
    usable = set(host.cgroup_controllers or ())
    if host.security.rootless and host.cgroup_version == "v1":
        usable = set()
    needed = {"memory": "memory", "swap": "memory", "cpu": "cpu", "pids": "pids"}
    return tuple(name for name, controller in needed.items() if controller not in usable)
