"""Images: is it there, and if not, build it once, however many ask."""

from __future__ import annotations

import contextlib
import dataclasses
import tempfile
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

import recipes
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


async def tag_on(engine: Engine, image: Image) -> str:
    """What an image is called on this engine: the base image's id, where it has one, counts too.

    Raises EngineError.
    """
    if image.context is None:
        return image.tag
    # docker calls what it pulled by the short name, podman by the whole one
    for name in dict.fromkeys((image.base, image.base.removeprefix("docker.io/library/"))):
        base = await engine.image(name) if name else None
        if base is not None:
            return recipes.image_tag(image.context, {}, base.id.removeprefix("sha256:"))
    return image.tag


LABEL_RECIPE_FILE = "sanduk.recipe-file"  # where the recipe was, if that was no catalogue


async def ensure(
    engine: Engine,
    image: Image,
    console: Console,
    *,
    rebuild: bool = False,
    no_cache: bool | None = None,
    pull: bool = False,
) -> ImageFacts:
    """The image's facts and its tag, after building it where that is needed.

    Args:
        rebuild: build it even if it is there.
        no_cache: use nothing of earlier builds; as `rebuild` when None.
        pull: look for a newer base image when building.

    Raises EngineError: it cannot be built (the build's last lines are shown), or it is a tag of
    the person's own that is not there.
    """
    buildable = image.context is not None or image.containerfile is not None
    # only the engine knows whether a person's own files have changed: it is always asked to build
    stale = image.containerfile is not None
    if not (stale or (rebuild and buildable)):
        facts = await _found(engine, image)
        if facts is not None:
            return facts
        if not buildable:
            raise EngineError(f"there is no image {image.tag} on this engine; build or pull it")
    waiting = f"waiting for another process that builds {image.tag}"
    async with locks.held(f"build-{image.tag}", lambda: console.progress(waiting)):
        facts = None if rebuild or stale else await _found(engine, image)
        if facts is None:
            await _refuse_missing_downloads(engine, image)
            anew = rebuild if no_cache is None else no_cache
            await _build_as_called(engine, image, console, no_cache=anew, pull=pull)
            facts = await _found(engine, image)
    if facts is None:
        raise EngineError(f"{image.tag} was built, but the engine does not list it")
    return facts


async def _refuse_missing_downloads(engine: Engine, image: Image) -> None:
    """Raise EngineError when there is no download for the machine that the engine builds on."""
    if image.context is None or not image.context.lacking:
        return
    machine = (await engine.ready()).architecture
    built_for = recipes.architecture(machine) or recipes.host_architecture()
    if built_for is not None and built_for in image.context.lacking:
        raise EngineError(image.context.lacking[built_for])


async def _found(engine: Engine, image: Image) -> ImageFacts | None:
    tag = await tag_on(engine, image)
    facts = await engine.image(tag)
    return None if facts is None else dataclasses.replace(facts, tag=tag)


async def _build_as_called(
    engine: Engine, image: Image, console: Console, *, no_cache: bool, pull: bool
) -> None:
    """Build it, and call it by the base image it really was built on."""
    # which one a pull brings is not known before: the tag that names none is right till then
    tag = image.tag if pull else await tag_on(engine, image)
    console.progress(f"building {tag} (the first time takes a while)")
    await _build(engine, image, tag, console, no_cache=no_cache, pull=pull)
    called = await tag_on(engine, image)
    if called == tag:
        return
    console.progress(f"its base image is there now: it is called {called}")
    await _build(engine, image, called, console, no_cache=False, pull=False)  # all of it is kept
    with contextlib.suppress(EngineError):  # one name too many does no harm
        await engine.remove_image(tag)


@contextlib.asynccontextmanager
async def kept(tags: Iterable[str]) -> AsyncIterator[None]:
    """No `images prune` takes these away for the length of the block.

    Once containers of theirs are made, the engine itself keeps them.
    """
    async with contextlib.AsyncExitStack() as stack:
        for tag in dict.fromkeys(tags):
            await stack.enter_async_context(locks.held(keeping(tag), shared=True))
        yield


def keeping(tag: str) -> str:
    """The name of the lock on an image, and on all others of its recipe: a tag may yet change."""
    return f"image-{tag.rpartition(':')[0]}"


async def _build(
    engine: Engine, image: Image, tag: str, console: Console, *, no_cache: bool, pull: bool
) -> None:
    labels = {LABEL_INSTALL: install_id(), LABEL_ROLE: "image"}
    if image.recipe_file:
        labels[LABEL_RECIPE_FILE] = image.recipe_file

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
                tag=tag,
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
