"""Images: is it there, and if not, build it once, however many ask."""

from __future__ import annotations

import asyncio
import fcntl
import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from django.conf import settings

from runs.console import Console
from runs.engines.base import LABEL_INSTALL, LABEL_ROLE, Engine, EngineError, ImageFacts
from runs.installation import install_id
from runs.plan import Image


async def ensure(
    engine: Engine, image: Image, console: Console, *, rebuild: bool = False, pull: bool = False
) -> ImageFacts:
    """The image's facts, after building it where that is needed.

    Raises EngineError: it cannot be built (with the build's last lines), or it is a tag of the
    person's own that is not there.
    """
    buildable = image.context is not None or image.containerfile is not None
    if not (rebuild and buildable):
        facts = await engine.image(image.tag)
        if facts is not None:
            return facts
        if not buildable:
            raise EngineError(f"there is no image {image.tag} on this engine; build or pull it")
    async with _one_builder(image.tag, console):
        facts = None if rebuild else await engine.image(image.tag)
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
        await engine.build(
            context,
            image.tag,
            labels=labels,
            build_args={},
            on_line=on_line,
            no_cache=no_cache,
            pull=pull,
            file=str(image.containerfile) if image.containerfile else None,
        )


@asynccontextmanager
async def _one_builder(tag: str, console: Console) -> AsyncIterator[None]:
    """Hold the lock of this tag. The kernel lets it go when its holder dies."""
    directory = settings.SANDUK_HOME / "locks"
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    name = "".join(c if c.isalnum() or c in "-." else "_" for c in tag)[:120]
    descriptor = os.open(directory / f"build-{name}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        waited = False
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if not waited:
                    console.progress(f"waiting for another process that builds {tag}")
                    waited = True
                await asyncio.sleep(0.3)
        yield
    finally:
        os.close(descriptor)
