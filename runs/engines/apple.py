"""Apple's `container`, one virtual machine per container. Written from facts, NOT RUN by us.

What is known: its verbs and options are docker's in part, its JSON is its own, it has neither
label filters nor exit codes in `inspect`, and a unix socket of the Mac cannot be mounted. Hence
only runs without a relay; a third kernel-level boundary makes up for the missing pids limit.
"""

from __future__ import annotations

import re
import shlex
import shutil
from asyncio.subprocess import Process
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, TypeVar

import msgspec

from runs.engines import process
from runs.engines.arguments import label_arguments
from runs.engines.base import (
    LABEL_INSTALL,
    LABEL_ROLE,
    LABEL_RUN,
    BuildSpec,
    ContainerRow,
    ContainerSpec,
    ContainerState,
    Engine,
    EngineError,
    EngineFacts,
    EngineUnavailable,
    ImageFacts,
    Mount,
)
from runs.engines.building import build_arguments, run_build
from runs.engines.failures import failure, is_missing, not_installed
from runs.engines.process import Completed, cause, printable

READY_S = 10.0
OLDEST = (1, 2, 0)
SERVICE_S = 300.0  # its first start fetches a kernel
QUICK_S = 60.0  # a container's virtual machine boots in seconds
T = TypeVar("T")


class _ImageReference(msgspec.Struct):
    reference: str = ""


class _Configuration(msgspec.Struct):
    id: str = ""
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    image: _ImageReference = msgspec.field(default_factory=_ImageReference)


class _Container(msgspec.Struct):
    configuration: _Configuration
    status: str = ""


class _Network(msgspec.Struct):
    id: str = ""
    config: _Configuration = msgspec.field(default_factory=_Configuration)


class _OciConfig(msgspec.Struct, rename="pascal"):
    user: str = ""
    env: list[str] | None = None
    entrypoint: list[str] | None = None
    labels: dict[str, str] | None = None


class _Oci(msgspec.Struct):
    config: _OciConfig | None = None
    created: str = ""


class _Variant(msgspec.Struct):
    config: _Oci = msgspec.field(default_factory=_Oci)
    size: int = 0


class _Index(msgspec.Struct):
    digest: str = ""


class _Image(msgspec.Struct):
    name: str = ""
    index: _Index = msgspec.field(default_factory=_Index)
    variants: list[_Variant] = msgspec.field(default_factory=list)


class Apple(Engine):
    name: ClassVar[str] = "apple"
    cli: ClassVar[str] = "container"
    shares_sockets: ClassVar[bool] = False
    max_parallel_starts: ClassVar[int] = 2  # each is a virtual machine

    def __init__(self) -> None:
        self._attached: dict[str, Process] = {}

    async def call(self, *words: str, timeout_s: float = QUICK_S) -> Completed:
        return await process.run((self.cli, *words), timeout_s=timeout_s)

    # -- the engine itself ------------------------------------------------------------------
    async def ready(self) -> EngineFacts:
        if shutil.which(self.cli) is None:
            raise EngineUnavailable(not_installed(self.cli, "Apple's container"))
        done = await self.call("system", "status", timeout_s=READY_S)
        # it says "not running" with exit status 0
        if done.code != 0 or not re.search(r"(?<!not )\brunning\b", done.text):
            raise EngineUnavailable("Apple's container does not run: `container system start`")
        asked = await self.call("--version", timeout_s=READY_S)
        version = _checked_version(asked.text)
        return EngineFacts(
            version=version,
            identity="apple",
            rootless=True,
            operating_system="macOS",
            missing_limits=("swap", "pids"),
        )

    async def require_local(
        self, *, directory: Path | None = None, labels: Mapping[str, str] | None = None
    ) -> None:
        raise EngineUnavailable(
            "Apple's container is a virtual machine: no socket of this Mac can be mounted in it,"
            " which relayed runs need; use `--mode open`, or docker or podman on Linux"
        )

    async def start_service(self) -> None:
        done = await self.call("system", "start", timeout_s=SERVICE_S)
        if done.code != 0:
            raise failure("Apple's container did not start", done)
        await self.ready()

    async def stop_service(self) -> None:
        done = await self.call("system", "stop", timeout_s=SERVICE_S)
        if done.code != 0:
            raise failure("Apple's container did not stop", done)

    # -- images -----------------------------------------------------------------------------
    async def image(self, tag: str) -> ImageFacts | None:
        done = await self.call("image", "inspect", tag)
        if done.code != 0:
            if _is_missing(done):
                return None
            raise failure(f"cannot look up the image {printable(tag)}", done)
        # Exact names only: the listing has names that merely end with the tag.
        named = {tag, f"docker.io/library/{tag}", f"localhost/{tag}"}
        return next(
            (_facts(each) for each in self._decoded(done, list[_Image]) if each.name in named),
            None,
        )

    async def build(self, spec: BuildSpec, on_line: Callable[[str], None]) -> None:
        if spec.pull:
            raise EngineError("Apple's container cannot be told to pull base images again")
        command = (self.cli, "build", *build_arguments(spec), spec.context)
        await run_build(command, spec.tag, on_line)

    # -- containers -------------------------------------------------------------------------
    async def create(self, spec: ContainerSpec) -> str:
        """As for every engine, but: no pids limit, no seccomp profile, and the image's own user.

        The Mac's user owns what is written to a mount, whoever wrote it; so the image's user
        works, as long as it is not root.
        """
        if spec.oci_runtime:
            raise EngineError("Apple's container has no OCI runtimes to choose from")
        facts = await self.image(spec.image)
        if facts is None:
            raise EngineError(f"the image {printable(spec.image)} is not there: run `sanduk build`")
        if facts.user.partition(":")[0] in ("", "0", "root"):
            raise EngineError(f"the image {printable(spec.image)} runs as root, which is refused")
        # This engine's id is the name.
        done = await self.call("create", "--name", _name(spec.labels), *_words(spec))
        if done.code != 0:
            raise failure("the engine refused the container", done, image=spec.image)
        return _name(spec.labels)

    async def start_attached(self, container: str) -> Process:
        started = await process.start((self.cli, "start", "--attach", container))
        self._attached[container] = started
        return started

    async def start_interactive(self, container: str, *, tty: bool) -> Process:
        words = ("start", "--attach", "--interactive", container)
        started = await process.start_here((self.cli, *words), tty=tty)
        self._attached[container] = started
        return started

    async def reattach(self, container: str) -> Process:
        return await process.start((self.cli, "logs", "--follow", "-n", "0", container))

    async def inspect(self, container: str) -> ContainerState | None:
        """The exit code is that of the attached command: this engine tells it nowhere else."""
        done = await self.call("inspect", container)
        if done.code != 0 and not _is_missing(done):
            raise failure("cannot inspect a container", done)
        found = self._decoded(done, list[_Container]) if done.code == 0 else []
        if not found:
            return None
        running, ended = found[0].status == "running", found[0].status in ("stopped", "exited")
        attached = self._attached.get(container)
        if ended and attached is None:  # made, and never started by us
            return ContainerState(container, "created", None, False, "", None, started=False)
        return ContainerState(
            id=container,
            status="running" if running else "exited" if ended else "other",
            exit_code=attached.returncode if ended and attached is not None else None,
            oom_killed=False,
            error="",
            pid=None,
        )

    async def stop(self, container: str, *, grace_s: int) -> None:
        done = await self.call(
            "stop", "--time", str(grace_s), container, timeout_s=grace_s + QUICK_S
        )
        if done.code != 0 and not _is_missing(done):
            state = await self.inspect(container)
            if state is not None and state.status == "running":
                raise failure("the engine could not stop a container", done)

    async def remove(self, containers: Sequence[str]) -> None:
        for container in containers:
            done = await self.call("delete", "--force", container)
            if done.code != 0 and not _is_missing(done):
                raise failure("the engine could not remove a container", done)
            self._attached.pop(container, None)

    async def containers(self, labels: Mapping[str, str]) -> list[ContainerRow]:
        if not labels:
            raise EngineError("containers are only ever looked up by label, and none was given")
        done = await self.call("list", "--all", "--format", "json")
        if done.code != 0:
            raise failure("cannot list containers", done)
        rows = [
            ContainerRow(
                id=each.configuration.id,
                image=each.configuration.image.reference,
                status=each.status,
                labels=each.configuration.labels,
                name=each.configuration.id,
            )
            for each in self._decoded(done, list[_Container])
        ]
        return [row for row in rows if labels.items() <= row.labels.items()]

    # -- networks ---------------------------------------------------------------------------
    async def create_network(self, name: str, labels: Mapping[str, str], *, internal: bool) -> str:
        words = [*label_arguments(labels), *(["--internal"] if internal else [])]
        done = await self.call("network", "create", *words, name)
        if done.code != 0:
            raise failure(f"cannot create the network {printable(name)}", done)
        return name

    async def networks(self, labels: Mapping[str, str]) -> list[str]:
        done = await self.call("network", "list", "--format", "json")
        if done.code != 0:
            raise failure("cannot list networks", done)
        found = self._decoded(done, list[_Network])
        return [each.id for each in found if labels.items() <= each.config.labels.items()]

    async def remove_network(self, network: str) -> None:
        done = await self.call("network", "delete", network)
        if done.code != 0 and not _is_missing(done):
            raise failure("the engine could not remove a network", done)

    # -- when we are gone -------------------------------------------------------------------
    def removal_script(self, labels: Mapping[str, str]) -> str:
        """By name, which `create` derives from the labels: the listing has no label filter."""
        prefix = shlex.quote(f"^{re.escape(_prefix(labels))}-")
        return (
            f"for n in 1 2 3 4 5; do for c in $(container list --all --quiet | grep {prefix});"
            ' do container delete --force "$c"; done; sleep 0.5; done >/dev/null 2>&1'
        )

    def _decoded(self, done: Completed, kind: type[T]) -> T:
        try:
            return msgspec.json.decode(done.stdout, type=kind)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as exc:
            raise EngineError(f"container answered what cannot be read: {exc}") from None


def _checked_version(text: str) -> str:
    """The version in what `--version` says. Raises EngineUnavailable for one that is too old."""
    found = re.search(r"\b(\d{1,6})\.(\d{1,6})\.(\d{1,6})\b", text)
    if found is None:
        raise EngineUnavailable(
            f"Apple's container does not tell its version but {printable(text, 80)!r}"
        )
    if tuple(int(part) for part in found.groups()) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise EngineUnavailable(
            f"Apple's container {found[0]} is too old: {oldest} or newer is needed; "
            "install its newest package and run `container system start`"
        )
    return found[0]


def _words(spec: ContainerSpec) -> list[str]:
    words = [*label_arguments(spec.labels), "--cap-drop", "ALL", "--init"]
    words += ["--cpus", str(max(1, int(spec.cpus))), "--memory", spec.memory]
    if spec.network != "default":
        words += ["--network", spec.network]
    words += ["--interactive"] if spec.interactive else []
    words += ["--tty"] if spec.tty else []
    words += ["--read-only"] if spec.read_only_root else []
    for target in spec.tmpfs:
        words += ["--tmpfs", target.partition(":")[0]]  # it takes no options
    for mount in spec.mounts:
        words += ["--mount", _mount(mount)]
    words += ["--workdir", spec.workdir] if spec.workdir else []
    for name, value in spec.env.items():
        words += ["--env", f"{name}={value}"]
    words += ["--entrypoint", spec.entrypoint] if spec.entrypoint is not None else []
    return [*words, spec.image, *spec.argv]


def _mount(mount: Mount) -> str:
    if any(c in mount.source + mount.target for c in ",\n"):
        raise EngineError(
            f"this engine cannot mount a path with a comma: {printable(mount.source)}"
        )
    end = ",readonly" if mount.read_only else ""
    return f"type=bind,source={mount.source},target={mount.target}{end}"


def _prefix(labels: Mapping[str, str]) -> str:
    parts = ["sanduk", labels[LABEL_INSTALL], labels[LABEL_RUN]]
    return "-".join(re.sub(r"[^A-Za-z0-9]", "", part) for part in parts)


def _name(labels: Mapping[str, str]) -> str:
    return f"{_prefix(labels)}-{labels.get(LABEL_ROLE, 'agent')}"


def _is_missing(done: Completed) -> bool:
    return is_missing(done.stderr) or "not found" in cause(done.stderr).lower()


def _facts(found: _Image) -> ImageFacts:
    variant = found.variants[0] if found.variants else _Variant()
    config = variant.config.config or _OciConfig()
    return ImageFacts(
        id=found.index.digest,
        entrypoint=tuple(config.entrypoint or ()),
        labels=config.labels or {},
        env={name: value for name, _, value in (e.partition("=") for e in config.env or ())},
        user=config.user,
        size_bytes=variant.size,
        created=variant.config.created,
    )
