"""The contract between sanduk and a container engine, and what all engines share.

Only this package starts an engine's command. Containers are found by label and addressed by id,
never by name. An engine that cannot be asked raises EngineError: nothing is ever concluded from
an answer that did not come.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal

LABEL_INSTALL = "sanduk.install"  # id of the installation that made it
LABEL_RUN = "sanduk.run"  # uid of the run it belongs to
LABEL_ROLE = "sanduk.role"  # agent | shell | link | network | image
Status = Literal["created", "running", "exited", "other"]


class EngineError(Exception):
    """The engine did not do what was asked, or could not be asked; the text names the fix."""


class BuildFailed(EngineError):
    """An image could not be built: the text is one line, `lines` are the last the build said."""

    def __init__(self, text: str, lines: Sequence[str]) -> None:
        super().__init__(text)
        self.lines = tuple(lines)


class EngineUnavailable(EngineError):
    """No engine, or none that may be used: nothing was started."""


@dataclass(frozen=True, slots=True)
class Mount:
    source: str
    target: str
    read_only: bool = True


@dataclass(frozen=True, slots=True)
class ContainerSpec:
    """One container, in the words of no engine. Every one is hardened: see `Engine.create`."""

    image: str
    argv: tuple[str, ...]
    labels: Mapping[str, str]
    entrypoint: str | None = None
    user: str = ""  # "uid:gid" in numbers, needed; uid 0 is refused
    extra_groups: tuple[int, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)  # nothing secret: `inspect` shows it
    mounts: tuple[Mount, ...] = ()
    workdir: str = ""
    network: str = "none"  # none | container:<id> | the name of a network | default
    memory: str = "4g"  # swap is set to the same: no swap
    cpus: float = 4
    pids: int = 1024
    read_only_root: bool = False
    tmpfs: tuple[str, ...] = ()
    oci_runtime: str | None = None
    share_userns_of: str | None = None  # id of the link, where the engine maps users (rootless)
    interactive: bool = False  # somebody's standard input goes in
    tty: bool = False  # a terminal of its own, for `interactive` ones


@dataclass(frozen=True, slots=True)
class BuildSpec:
    """What an image is made of, and what it is called."""

    context: str  # a directory
    tag: str
    labels: Mapping[str, str]
    build_args: Mapping[str, str] = field(default_factory=dict)
    no_cache: bool = False
    pull: bool = False  # look for newer base images
    file: str = ""  # default: the context's Containerfile

    @property
    def containerfile(self) -> str:
        return self.file or str(Path(self.context, "Containerfile"))


@dataclass(frozen=True, slots=True)
class ContainerState:
    """What `inspect` says: the only source of how a container ended."""

    id: str
    status: Status
    exit_code: int | None  # None while it has not ended
    oom_killed: bool
    error: str
    pid: int | None  # of its first process on this host, while running
    started: bool = True  # False: its command never ran, whatever the exit code says


@dataclass(frozen=True, slots=True)
class ContainerRow:
    id: str
    image: str
    status: str
    labels: Mapping[str, str]
    name: str = ""


@dataclass(frozen=True, slots=True)
class ImageFacts:
    id: str
    entrypoint: tuple[str, ...]
    labels: Mapping[str, str]
    env: Mapping[str, str]
    user: str
    size_bytes: int
    created: str
    tag: str = ""  # by which `runs.images` found it


@dataclass(frozen=True, slots=True)
class ImageRow:
    """One image as the engine lists it."""

    id: str
    tags: tuple[str, ...]  # as we gave them; none: another build took its tag
    labels: Mapping[str, str]
    size_bytes: int
    created: str  # a date and time in ISO 8601, as the engine says it


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """What is known of the engine itself."""

    version: str
    identity: str  # changes when it is another daemon or store
    rootless: bool
    operating_system: str
    oci_runtimes: tuple[str, ...] = ()  # what `--oci-runtime` may name; empty: not told
    missing_limits: tuple[str, ...] = ()  # of memory, swap, cpu, pids: those it cannot enforce
    architecture: str = ""  # of the machine it builds and runs on; empty: not told


class Engine(ABC):
    """A container engine. `docs/engines.md` shows that another one is one class."""

    name: ClassVar[str]
    cli: ClassVar[str]
    shares_sockets: ClassVar[bool] = True  # a unix socket of this host can be mounted
    max_parallel_starts: ClassVar[int] = 4
    creation_patience_s: ClassVar[float] = 10.0  # a creation under way is waited for at the end

    # -- the engine itself ------------------------------------------------------------------
    @abstractmethod
    async def ready(self) -> EngineFacts:
        """Ask the engine who it is. Raises EngineUnavailable with the one command that helps.

        That covers an engine on which no run of any mode can work: Docker from a snap, and a
        Docker daemon that maps users (files of the workdir's owner would not be writable).
        """

    @abstractmethod
    async def require_local(
        self, *, directory: Path | None = None, labels: Mapping[str, str] | None = None
    ) -> None:
        """Raise EngineUnavailable when a relayed run cannot work on this daemon.

        It is remote or in a virtual machine: found by its endpoint, its kernel, and a probe file
        and a probe socket in `directory` (where the relay's sockets will be; default: the
        temporary directory) through a mount, within two seconds, needing no image of ours. It may
        be called before `ready`, which can wait long for a remote daemon. What a probe makes
        carries `labels`, so that one broken off can be found. That a socket there
        also *answers* is proved by the link's own probe, at the start of every run.
        """

    async def start_service(self) -> None:
        """Start what this engine needs, where that is a command of the engine's own.

        Elsewhere it must run already. Raises EngineError, naming the command that starts it.
        """
        await self.ready()

    async def stop_service(self) -> None:
        """Stop it again, for everybody on this machine.

        Raises EngineError where that is not the engine's own to do, naming what does it.
        """
        raise EngineError(f"sanduk did not start {self.name} and does not stop it")

    # -- images -----------------------------------------------------------------------------
    @abstractmethod
    async def image(self, tag: str) -> ImageFacts | None: ...

    @abstractmethod
    async def build(self, spec: BuildSpec, on_line: Callable[[str], None]) -> None:
        """Build an image; `on_line` is given what the build prints. Raises BuildFailed."""

    async def list_images(self, labels: Mapping[str, str]) -> list[ImageRow]:
        """All images that carry every one of these labels. Raises EngineError."""
        raise EngineError(f"sanduk knows no way to list the images of engine {self.name}")

    async def remove_image(self, image: str) -> bool:
        """Remove one by its tag or id, never by force; False: a container still needs it.

        One already gone is no error.
        """
        raise EngineError(f"sanduk knows no way to remove an image from engine {self.name}")

    async def remove_images(self, labels: Mapping[str, str]) -> int:
        """Remove the images that carry every one of these labels; returns how many there were.

        Only probes leave images that must be found so, and not every engine's probe makes one.
        """
        return 0

    # -- containers -------------------------------------------------------------------------
    @abstractmethod
    async def create(self, spec: ContainerSpec) -> str:
        """Create a container and return its id.

        All capabilities dropped, no-new-privileges, init, pids, memory, swap and cpu limits,
        log size cap, ipv6 off, our seccomp profile, `--mount` and never `-v`, labels on it. Never
        pulls an image. Raises EngineError, naming `sanduk build` when the image is missing.
        """

    @abstractmethod
    async def start_attached(self, container: str) -> asyncio.subprocess.Process:
        """Start it with its output on the returned process's stdout and stderr (both pipes).

        The process is only a pipe: its exit code and its death say nothing about the container.
        It runs in a session of its own. End it with `kill()`: a TERM is passed to the container.
        """

    async def start_interactive(self, container: str, *, tty: bool) -> asyncio.subprocess.Process:
        """Start an `interactive` one with this process's own standard streams.

        With `tty` the client shares our terminal, its process group included: it makes the
        terminal raw, hands sizes on, and gives the terminal back when the container has ended.
        Raises EngineError when it cannot start, or the engine has nothing of the kind.
        """
        raise EngineError(f"sanduk knows no way to open a shell with engine {self.name}")

    @abstractmethod
    async def reattach(self, container: str) -> asyncio.subprocess.Process:
        """Follow the output of a container that already runs, from now on: nothing is repeated.

        What it printed while nobody was attached is gone from this stream.
        """

    @abstractmethod
    async def inspect(self, container: str) -> ContainerState | None:
        """None when there is no such container."""

    @abstractmethod
    async def stop(self, container: str, *, grace_s: int) -> None:
        """TERM, wait, KILL. Unknown or stopped containers are no error."""

    @abstractmethod
    async def remove(self, containers: Sequence[str]) -> None:
        """Kill and remove them; those already gone are no error."""

    @abstractmethod
    async def containers(self, labels: Mapping[str, str]) -> list[ContainerRow]:
        """All that carry every one of these labels, whatever their state.

        Raises EngineError when the engine cannot be asked; an empty list means there are none.
        """

    # -- networks (key-safe, and engines with a gateway link) ---------------------------------
    @abstractmethod
    async def create_network(self, name: str, labels: Mapping[str, str], *, internal: bool) -> str:
        """Create a network without traffic between its containers, return its id."""

    @abstractmethod
    async def networks(self, labels: Mapping[str, str]) -> list[str]:
        """Ids of the networks that carry these labels."""

    @abstractmethod
    async def remove_network(self, network: str) -> None:
        """Remove it; one already gone is no error."""

    # -- when we are gone ---------------------------------------------------------------------
    @abstractmethod
    def removal_script(self, labels: Mapping[str, str]) -> str:
        """A line of POSIX shell that removes all containers and networks with these labels.

        The undertaker runs it when the executor died; it has no Python and asks nobody.
        """
