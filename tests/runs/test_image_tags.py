"""What an image is called: the base image's id counts, on an engine that has it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from runs import images
from runs.console import Silent
from runs.engines.base import BuildSpec, EngineError, EngineFacts, ImageFacts
from runs.plan import Image, from_recipe
from tests.runs.fake_engine import FakeEngine

BASE = "docker.io/library/node:22-slim"


class Store(FakeEngine):
    """It has images by tag, and a build pulls the base that a Containerfile names."""

    def __init__(self, **tags: str) -> None:
        super().__init__()
        self.tags: dict[str, str] = tags
        self.builds: list[BuildSpec] = []
        self.upstream = ""  # the id of the base image that a pull would bring

    async def image(self, tag: str) -> ImageFacts | None:
        found = self.tags.get(tag)
        return ImageFacts(found, ("pi",), {}, {}, "", 1, "") if found else None

    async def build(self, spec: BuildSpec, on_line: Callable[[str], None]) -> None:
        self.builds.append(spec)
        if self.upstream and (spec.pull or not self.tags.get(BASE)):
            self.tags[BASE] = self.upstream
        self.tags[spec.tag] = f"built on {self.tags.get(BASE)}"

    async def remove_image(self, image: str) -> bool:
        return self.tags.pop(image, None) is not None


@pytest.fixture
def pi(state: Path) -> Image:
    state.mkdir()
    return from_recipe("pi")[1]


def ensured(store: Store, image: Image, **how: bool) -> ImageFacts:
    return asyncio.run(images.ensure(store, image, Silent(), **how))


def test_an_engine_that_does_not_tell_its_base_leaves_the_tag_as_it_is(pi: Image):
    store = Store()
    assert ensured(store, pi).tag == pi.tag
    assert ensured(store, pi).tag == pi.tag
    assert [spec.tag for spec in store.builds] == [pi.tag]


def test_another_base_is_another_tag_and_the_same_one_the_same(pi: Image):
    first, second = Store(**{BASE: "sha256:1"}), Store(**{BASE: "sha256:2"})
    tags = [ensured(store, pi).tag for store in (first, second, first)]
    assert tags[0] == tags[2]
    assert len({pi.tag, *tags}) == 3
    assert len(first.builds) == 1, "it is there the second time"


def test_docker_and_podman_say_one_id_in_two_ways_and_find_one_tag(pi: Image):
    docker, podman = Store(**{"node:22-slim": "sha256:1"}), Store(**{BASE: "1"})
    assert ensured(docker, pi).tag == ensured(podman, pi).tag != pi.tag


def test_a_base_that_the_build_brings_is_in_the_tag_at_once(pi: Image):
    store = Store()
    store.upstream = "sha256:1"
    facts = ensured(store, pi)
    assert facts.tag == asyncio.run(images.tag_on(store, pi)) != pi.tag
    assert [spec.tag for spec in store.builds] == [pi.tag, facts.tag]
    assert not store.builds[1].no_cache
    assert pi.tag not in store.tags, "one image has one name"
    assert ensured(store, pi).tag == facts.tag
    assert len(store.builds) == 2


def test_a_pull_that_brings_a_newer_base_is_another_tag(pi: Image):
    store = Store(**{BASE: "sha256:1"})
    before = ensured(store, pi).tag
    store.upstream = "sha256:2"
    after = ensured(store, pi, rebuild=True, no_cache=False, pull=True).tag
    assert after != before
    assert store.tags[before] == "built on sha256:1", "what older runs had is not replaced"
    assert store.tags[after] == "built on sha256:2"


@pytest.mark.parametrize(
    ("how", "no_cache"),
    [
        ({"rebuild": True}, True),
        ({"rebuild": True, "no_cache": False}, False),
        ({"rebuild": True, "no_cache": True}, True),
    ],
)
def test_a_rebuild_says_whether_what_is_kept_counts(pi: Image, how, no_cache):
    store = Store(**{BASE: "sha256:1"})
    ensured(store, pi)
    ensured(store, pi, **how)
    assert [spec.no_cache for spec in store.builds] == [False, no_cache]


def test_a_persons_own_tag_is_never_changed(state: Path):
    state.mkdir()
    store = Store(**{"mine:1": "sha256:9", BASE: "sha256:1"})
    assert ensured(store, Image("mine:1")).tag == "mine:1"
    with pytest.raises(EngineError, match="there is no image other:1"):
        ensured(store, Image("other:1"))


class Elsewhere(Store):
    """Its machine is not this one, as with a daemon behind a network address."""

    architecture = ""

    async def ready(self) -> EngineFacts:
        return EngineFacts("1", "fake", False, "Linux", architecture=self.architecture)


@pytest.mark.parametrize(
    ("machine", "built"), [("aarch64", True), ("arm64", True), ("x86_64", False)]
)
def test_k9_the_engine_says_what_it_builds_for(state: Path, tmp_path: Path, machine, built):
    state.mkdir()
    artifacts = {"arm64": {"url": "https://x.invalid/", "sha256": "0" * 64}}
    tool = {"name": "tool", "type": "binary", "artifacts": artifacts}
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"name": "mine", "inherits": "pi", "sections": [tool]}))
    store = Elsewhere()
    store.architecture = machine
    image = from_recipe(str(path))[1]
    if built:
        assert ensured(store, image).tag == image.tag
        return
    with pytest.raises(EngineError) as caught:
        ensured(store, image)
    assert str(caught.value) == (
        f"{path}: $.sections[0].artifacts: nothing for amd64; there is arm64"
    )
    assert store.builds == []
