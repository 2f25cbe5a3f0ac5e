"""Images: is it there, and if not, build it once, however many ask."""

from __future__ import annotations

import tempfile
from pathlib import Path

from runs import locks
from runs.console import Console
from runs.engines.base import (
    LABEL_INSTALL,
    LABEL_ROLE,
    BuildFailed,
    BuildSpec,
    Engine,
    EngineError,
    ImageFacts,
)
from runs.installation import install_id
from runs.plan import Image


async def ensure(
    engine: Engine, image: Image, console: Console, *, rebuild: bool = False, pull: bool = False
) -> ImageFacts:
    """The image's facts, after building it where that is needed.

    Raises EngineError: it cannot be built (the build's last lines are shown), or it is a tag of
    the person's own that is not there.
    """
    buildable = image.context is not None or image.containerfile is not None
    # only the engine knows whether a person's own files have changed: it is always asked to build
    stale = image.containerfile is not None
    if not (stale or (rebuild and buildable)):
        facts = await engine.image(image.tag)
        if facts is not None:
            return facts
        if not buildable:
            raise EngineError(f"there is no image {image.tag} on this engine; build or pull it")
    waiting = f"waiting for another process that builds {image.tag}"
    async with locks.held(f"build-{image.tag}", lambda: console.progress(waiting)):
        facts = None if rebuild or stale else await engine.image(image.tag)
        if facts is None:
            await _build(engine, image, console, no_cache=rebuild, pull=pull)
            facts = await engine.image(image.tag)
    if facts is None:
        raise EngineError(f"{image.tag} was built, but the engine does not list it")
    return facts


async def _build(
    engine: Engine, image: Image, console: Console, *, no_cache: bool, pull: bool
) -> None:
    console.progress(f"building {image.tag} (the first time takes a while)")
    labels = {LABEL_INSTALL: install_id(), LABEL_ROLE: "image"}

    def on_line(line: str) -> None:
        if line.startswith(("Step ", "STEP ", "#")):
            console.progress(f"  {line[:150]}")

    with tempfile.TemporaryDirectory(prefix="sanduk-build-") as scratch:
        context = scratch
        if image.context is not None:
            image.context.write(Path(scratch))
        elif image.containerfile is not None:
            context = str(image.containerfile.parent)
        try:
            spec = BuildSpec(
                context=context,
                tag=image.tag,
                labels=labels,
                no_cache=no_cache,
                pull=pull,
                file=str(image.containerfile or ""),
            )
            await engine.build(spec, on_line)
        except BuildFailed as exc:
            for line in exc.lines:
                console.warn(f"  {line}")
            raise
