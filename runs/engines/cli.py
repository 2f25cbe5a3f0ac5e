"""What docker and podman have in common: the same verbs, and JSON of the same shape."""

from __future__ import annotations

import asyncio
import os
import shlex
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

import msgspec

from runs.engines import process
from runs.engines.arguments import create_arguments, label_arguments, label_filters
from runs.engines.base import (
    BuildSpec,
    ContainerRow,
    ContainerSpec,
    ContainerState,
    Engine,
    EngineError,
    ImageFacts,
    ImageRow,
    Status,
)
from runs.engines.building import build_arguments, run_build
from runs.engines.failures import failure, is_missing, without_missing
from runs.engines.process import Completed, printable

QUICK_S = 30.0  # a command that only asks or deletes; a loaded disk can take seconds
CREATE_S = 120.0
_STATUS: Mapping[str, Status] = {
    "created": "created",
    "configured": "created",
    "initialized": "created",
    "running": "running",
    "exited": "exited",
    "stopped": "exited",  # podman: ended, its mounts not yet taken down
    "dead": "exited",
}
# a shell's own Ctrl-P would otherwise wait for a second key
DETACH_NEVER = ("--detach-keys", "ctrl-^,ctrl-^,ctrl-_,ctrl-_")
# docker: a container's, running or not, and an image's made of it; podman: a container's
_IN_USE = ("is using its referenced image", "image is being used", "dependent child images",
           "image is in use by", "image used by")  # fmt: skip
T = TypeVar("T")


class _State(msgspec.Struct, rename="pascal"):
    status: str = ""
    exit_code: int = 0
    oom_killed: bool = msgspec.field(name="OOMKilled", default=False)
    error: str = ""
    pid: int = 0


class _Config(msgspec.Struct, rename="pascal"):
    labels: dict[str, str] | None = None
    image: str = ""


class _Container(msgspec.Struct, rename="pascal"):
    id: str
    name: str = ""
    state: _State = msgspec.field(default_factory=_State)
    config: _Config = msgspec.field(default_factory=_Config)


class _ImageConfig(msgspec.Struct, rename="pascal"):
    entrypoint: list[str] | None = None
    env: list[str] | None = None
    labels: dict[str, str] | None = None
    user: str = ""


class _Image(msgspec.Struct, rename="pascal"):
    id: str
    repo_tags: list[str] | None = None
    config: _ImageConfig | None = None
    size: int = 0
    created: str = ""


class CliEngine(Engine):
    """An engine driven by a command line tool that speaks docker's language."""

    quick_s: ClassVar[float] = QUICK_S
    create_s: ClassVar[float] = CREATE_S

    async def call(self, *words: str, timeout_s: float | None = None) -> Completed:
        """Run one command of the tool, for at most `timeout_s` seconds (None: `quick_s`)."""
        return await process.run((self.cli, *words), timeout_s=timeout_s or self.quick_s)

    # -- what the engines do differently ------------------------------------------------------
    @abstractmethod
    def create_words(self, spec: ContainerSpec) -> list[str]:
        """`create` with the options that only this engine has or needs."""

    @abstractmethod
    def network_words(self) -> list[str]:
        """The options of `network create` that keep traffic between containers off."""

    def tag_names(self, tag: str) -> tuple[str, ...]:
        """The names under which the engine lists the image `tag`."""
        return (tag,)

    # -- images -----------------------------------------------------------------------------
    async def image(self, tag: str) -> ImageFacts | None:
        done = await self.call("image", "inspect", tag)
        if done.code != 0:
            if is_missing(done.stderr):
                return None
            raise failure(f"cannot look up the image {printable(tag)}", done)
        return self.image_in(done.stdout, tag)

    def image_in(self, listed: bytes, tag: str) -> ImageFacts | None:
        """The one of these inspected images, a JSON list, that really is called `tag`."""
        for found in decoded(listed, list[_Image], self.cli):
            if self._is_called(found, tag):
                return _image_facts(found)
        return None

    def _is_called(self, found: _Image, tag: str) -> bool:
        """An engine may find a name's relative; an id has no names to compare."""
        names = self.tag_names(tag if ":" in tag.rpartition("/")[2] else f"{tag}:latest")
        return found.id.removeprefix("sha256:").startswith(tag.removeprefix("sha256:")) or any(
            name in (found.repo_tags or ()) for name in names
        )

    async def build(self, spec: BuildSpec, on_line: Callable[[str], None]) -> None:
        words = [*self.build_words(), "--force-rm", *build_arguments(spec)]
        words += ["--pull"] if spec.pull else []
        command = (self.cli, *words, spec.context)
        await run_build(command, spec.tag, on_line, env=self.build_environment())
        if await self.image(spec.tag) is None:
            raise EngineError(
                f"{self.cli} built {printable(spec.tag)} but does not have it: the builder in use"
                " keeps images to itself (`docker buildx use default`)"
            )

    def build_words(self) -> list[str]:
        return ["build"]

    def build_environment(self) -> Mapping[str, str]:
        return {}

    async def list_images(self, labels: Mapping[str, str]) -> list[ImageRow]:
        for pause_s in (0.3, 1, 3, None):
            done = await self.call("image", "ls", "--quiet", "--no-trunc", *label_filters(labels))
            if done.code != 0:
                raise failure("cannot list images", done)
            found = dict.fromkeys(done.text.split())
            if not found:
                return []
            done = await self.call("image", "inspect", *found)
            if done.code == 0:
                break
            # one that is just being removed fails in any words, and soon is not listed any more
            if pause_s is None:
                raise failure("cannot inspect images", done)
            await asyncio.sleep(pause_s)
        rows = [self._image_row(each) for each in self._decoded(done, list[_Image])]
        # podman's filters name images with any of the labels
        return [row for row in rows if labels.items() <= row.labels.items()]

    def _image_row(self, found: _Image) -> ImageRow:
        facts = _image_facts(found)
        tags = tuple(self.given_name(tag) for tag in found.repo_tags or ())
        return ImageRow(facts.id, tags, facts.labels, facts.size_bytes, facts.created)

    def given_name(self, tag: str) -> str:
        """The name that we gave an image which the engine calls `tag`."""
        return tag

    async def remove_image(self, image: str) -> bool:
        done = await self.call("image", "rm", image)
        if done.code == 0 or is_missing(done.stderr):
            return True
        if any(words in done.stderr for words in _IN_USE):
            return False
        raise failure(f"the engine could not remove the image {printable(image)}", done)

    async def remove_images(self, labels: Mapping[str, str]) -> int:
        found = await self.list_images(labels)
        for image in found:
            done = await self.call("image", "rm", "--force", image.id)
            if done.code != 0 and not is_missing(done.stderr):
                raise failure("the engine could not remove an image", done)
        return len(found)

    # -- containers -------------------------------------------------------------------------
    async def create(self, spec: ContainerSpec) -> str:
        words = create_arguments(
            spec,
            ipv6_in_kernel=os.access("/proc/sys/net/ipv6", os.F_OK),
            selinux=os.access("/sys/fs/selinux/enforce", os.F_OK),
            processors=os.cpu_count() or 1,
        )
        done = await self.call(
            *self.create_words(spec), *words, "--", spec.image, *spec.argv, timeout_s=self.create_s
        )
        if done.code != 0:
            raise failure("the engine refused the container", done, image=spec.image)
        return self.full_id(done)

    def full_id(self, done: Completed) -> str:
        found = done.text.splitlines()[-1:] or [""]
        if len(found[0]) != 64 or not found[0].isalnum():
            raise EngineError(f"{self.cli} answered no id but {printable(done.text)!r}")
        return found[0]

    async def start_attached(self, container: str) -> asyncio.subprocess.Process:
        return await process.start((self.cli, "start", "--attach", container))

    async def start_interactive(self, container: str, *, tty: bool) -> asyncio.subprocess.Process:
        argv = (self.cli, "start", "--attach", "--interactive", *DETACH_NEVER, container)
        return await process.start_here(argv, tty=tty)

    async def reattach(self, container: str) -> asyncio.subprocess.Process:
        # `logs --follow --since 0s` was tried: it repeats a second of output and, under a size
        # cap, drops lines; attaching repeats and loses nothing from here on.
        return await process.start(
            (self.cli, "attach", "--no-stdin", "--sig-proxy=false", container)
        )

    async def inspect(self, container: str) -> ContainerState | None:
        found = await self._inspected([container])
        return _state(found[0]) if found else None

    async def _inspected(self, ids: Sequence[str]) -> list[_Container]:
        done = await self.call("inspect", "--type", "container", "--", *ids)
        if done.code != 0 and not is_missing(done.stderr):
            raise failure("cannot inspect a container", done)
        return self._decoded(done, list[_Container]) if done.stdout.strip() else []

    async def stop(self, container: str, *, grace_s: int) -> None:
        done = await self.call(
            "stop", "-t", str(grace_s), "--", container, timeout_s=grace_s + self.quick_s
        )
        if done.code != 0 and not is_missing(done.stderr):
            state = await self.inspect(container)
            if state is not None and state.status not in ("exited", "created"):
                raise failure("the engine could not stop a container", done)

    async def remove(self, containers: Sequence[str]) -> None:
        if not containers:
            return
        done = await self.call(*self.remove_words(), "--", *containers)
        told = [line for line in without_missing(done.stderr).splitlines() if line.strip()]
        # Two removals of one container meet: the other one does the work.
        if done.code != 0 and any("already in progress" not in line for line in told):
            raise failure("the engine could not remove a container", done)

    def remove_words(self) -> list[str]:
        return ["rm", "--force", "--volumes"]

    async def containers(self, labels: Mapping[str, str]) -> list[ContainerRow]:
        ids = await self._listed(labels)
        # `ps` joins labels with commas, which a value may hold as well; `inspect` does not.
        while ids:
            rows, trouble = [], None
            try:
                rows = [_row(each) for each in await self._inspected(ids)]
            except EngineError as exc:
                trouble = exc
            if set(ids) <= {row.id for row in rows}:
                return [row for row in rows if labels.items() <= row.labels.items()]
            # One that is just being removed can fail in any words, and take the others' answer
            # along: ask again while they get fewer.
            before, ids = ids, await self._listed(labels)
            if not set(ids) < set(before):
                raise trouble or EngineError(f"{self.cli} lists a container that it cannot inspect")
        return []

    async def _listed(self, labels: Mapping[str, str]) -> list[str]:
        done = await self.call("ps", "--all", "--quiet", "--no-trunc", *label_filters(labels))
        if done.code != 0:
            raise failure("cannot list containers", done)
        return done.text.split()

    # -- networks ---------------------------------------------------------------------------
    async def create_network(self, name: str, labels: Mapping[str, str], *, internal: bool) -> str:
        words = ["--driver", "bridge", *label_arguments(labels), *self.network_words()]
        words += ["--internal"] if internal else []
        done = await self.call("network", "create", *words, "--", name)
        if done.code != 0:
            raise failure(f"cannot create the network {printable(name)}", done)
        return await self.network_id(name, done)

    async def network_id(self, name: str, done: Completed) -> str:
        return self.full_id(done)

    async def networks(self, labels: Mapping[str, str]) -> list[str]:
        done = await self.call(
            "network", "ls", "--no-trunc", "--format", "{{.ID}}", *label_filters(labels)
        )
        if done.code != 0:
            raise failure("cannot list networks", done)
        return done.text.split()

    async def remove_network(self, network: str) -> None:
        done = await self.call("network", "rm", "--", network)
        if done.code != 0 and not is_missing(done.stderr):
            raise failure("the engine could not remove a network", done)

    # -- when we are gone -------------------------------------------------------------------
    def removal_script(self, labels: Mapping[str, str]) -> str:
        cli = shlex.quote(self.cli)
        rm = shlex.join(self.remove_words())
        chosen = shlex.join(label_filters(labels))
        # Five rounds over two seconds: a create under way when we died appears after the first.
        return (
            f"for n in 1 2 3 4 5; do for c in $({cli} ps -aq --no-trunc {chosen});"
            f" do {cli} {rm} $c & done; wait; for w in $({cli} network ls -q {chosen});"
            f" do {cli} network rm $w; done; sleep 0.5; done >/dev/null 2>&1"
        )

    def state_in(self, inspected: bytes) -> ContainerState:
        """How one inspected container, a JSON object, stands."""
        return _state(decoded(inspected, _Container, self.cli))

    def _decoded(self, done: Completed, kind: type[T]) -> T:
        return decoded(done.stdout, kind, self.cli)


def decoded(data: bytes, kind: type[T], cli: str) -> T:
    """An engine's JSON as `kind`. Raises EngineError when it is nothing of the sort."""
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as exc:
        raise EngineError(f"{cli} answered what cannot be read: {printable(str(exc))}") from None


def _state(found: _Container) -> ContainerState:
    status = _STATUS.get(found.state.status.lower(), "other")
    started = status != "created"
    if status == "created" and found.state.exit_code != 0:
        status = "exited"  # it was started and its command could not be: it has ended
    return ContainerState(
        id=found.id,
        status=status,
        exit_code=found.state.exit_code if status == "exited" else None,
        oom_killed=found.state.oom_killed,
        error=printable(found.state.error),
        pid=found.state.pid if status == "running" and found.state.pid > 0 else None,
        started=started,
    )


def _row(found: _Container) -> ContainerRow:
    return ContainerRow(
        id=found.id,
        image=found.config.image,
        status=found.state.status,
        labels=found.config.labels or {},
        name=found.name.removeprefix("/"),
    )


def _image_facts(found: _Image) -> ImageFacts:
    config = found.config or _ImageConfig()
    pairs: list[tuple[str, str, Any]] = [each.partition("=") for each in config.env or ()]
    return ImageFacts(
        id=found.id,
        entrypoint=tuple(config.entrypoint or ()),
        labels=config.labels or {},
        env={name: value for name, _, value in pairs},
        user=config.user,
        size_bytes=found.size,
        created=found.created,
    )
