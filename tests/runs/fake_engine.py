"""An engine that keeps its containers in a list, and fails when it is told to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from runs.engines.base import (
    BuildSpec,
    ContainerRow,
    ContainerSpec,
    ContainerState,
    Engine,
    EngineError,
    EngineFacts,
    ImageFacts,
)


class FakeEngine(Engine):
    name = "fake"
    cli = "fake"

    def __init__(self) -> None:
        self.rows: dict[str, ContainerRow] = {}
        self.nets: dict[str, dict[str, str]] = {}
        self.images: dict[str, dict[str, str]] = {}  # labels by id
        self.failing: set[str] = set()  # names of methods that raise
        self.deaf: set[str] = set()  # containers that stay whatever is asked
        self.inside: dict[str, str] = {}  # whose namespaces a container joined
        self.calls: list[str] = []
        self.creation: asyncio.Event | None = None  # what `create` waits for

    def _asked(self, what: str) -> None:
        self.calls.append(what)
        if what in self.failing:
            raise EngineError(f"the daemon does not answer ({what})")

    def add(self, container: str, **labels: str) -> str:
        marks = {f"sanduk.{name}": value for name, value in labels.items()}
        self.rows[container] = ContainerRow(container, "image", "running", marks)
        return container

    async def ready(self) -> EngineFacts:
        self._asked("ready")
        return EngineFacts("1", "fake", False, "Linux")

    async def require_local(
        self, *, directory: Path | None = None, labels: Mapping[str, str] | None = None
    ) -> None:
        self._asked("require_local")

    async def image(self, tag: str) -> ImageFacts | None:
        return None

    async def build(self, spec: BuildSpec, on_line: Callable[[str], None]) -> None:
        self._asked("build")

    async def remove_image(self, image: str) -> bool:
        self._asked("remove_image")
        return True

    async def remove_images(self, labels: Mapping[str, str]) -> int:
        self._asked("remove_images")
        going = [each for each, marks in self.images.items() if labels.items() <= marks.items()]
        for image in going:
            del self.images[image]
        return len(going)

    async def create(self, spec: ContainerSpec) -> str:
        self._asked("create")
        if self.creation is not None:
            await self.creation.wait()
        container = f"{len(self.rows):064d}"
        self.rows[container] = ContainerRow(container, spec.image, "created", dict(spec.labels))
        return container

    async def start_attached(self, container: str) -> asyncio.subprocess.Process:
        raise EngineError("a fake starts nothing")

    async def reattach(self, container: str) -> asyncio.subprocess.Process:
        raise EngineError("a fake starts nothing")

    async def inspect(self, container: str) -> ContainerState | None:
        return None

    async def stop(self, container: str, *, grace_s: int) -> None:
        self._asked("stop")

    async def remove(self, containers: Sequence[str]) -> None:
        self._asked("remove")
        left = [row for row in self.rows if row not in containers]
        if any(inner in left and outer in containers for inner, outer in self.inside.items()):
            raise EngineError("it has dependent containers which must be removed before it")
        for container in containers:
            if container not in self.deaf:
                self.rows.pop(container, None)

    async def containers(self, labels: Mapping[str, str]) -> list[ContainerRow]:
        self._asked("containers")
        return [row for row in self.rows.values() if labels.items() <= row.labels.items()]

    async def create_network(self, name: str, labels: Mapping[str, str], *, internal: bool) -> str:
        self._asked("create_network")
        self.nets[name] = dict(labels)
        return name

    async def networks(self, labels: Mapping[str, str]) -> list[str]:
        self._asked("networks")
        return [name for name, marks in self.nets.items() if labels.items() <= marks.items()]

    async def remove_network(self, network: str) -> None:
        self._asked("remove_network")
        self.nets.pop(network, None)

    def removal_script(self, labels: Mapping[str, str]) -> str:
        return "true"
