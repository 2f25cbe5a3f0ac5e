"""`sanduk build` on a real engine: once, again, anew, and what is shown when it fails."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.engine.running import Done, Installation, told

pytestmark = pytest.mark.engine


class Builds:
    """Recipes in the installation's ground, and the images that were made of them."""

    def __init__(self, installation: Installation) -> None:
        self.installation = installation
        self.made: set[str] = set()

    def recipe(self, **keys: Any) -> Path:
        path = self.installation.ground / "small.json"
        base = {
            "name": "small", "agent": "pi", "from": "docker.io/library/debian:trixie-slim",
            "user": "agent", "home": "/home/agent", "entrypoint": ["sh"],
        }  # fmt: skip
        path.write_text(json.dumps({**base, **keys}))
        return path

    def sanduk(self, *words: str) -> Done:
        return self.installation.sanduk("build", "--runtime", "docker", *words)

    def built(self, *words: str) -> dict[str, Any]:
        done = self.sanduk("--json", *words)
        assert done.code == 0, done
        found: dict[str, Any] = json.loads(done.out)
        self.made.add(found["image"])
        return found


@pytest.fixture
def builds(docker: Installation) -> Iterator[Builds]:
    made = Builds(docker)
    yield made
    for tag in made.made:
        told("docker", "image", "rm", "--force", tag)


def test_an_image_is_built_once_again_and_anew(builds: Builds):
    lines = ["cat /proc/sys/kernel/random/uuid >/opt/which"]
    path = str(builds.recipe(sections=[{"name": "w", "type": "run", "lines": lines}]))
    first = builds.built("-r", path)
    twice = builds.sanduk("-r", path)
    again, anew = builds.built("-r", path, "--force"), builds.built("-r", path, "--no-cache")

    assert first["image"] == again["image"] == anew["image"]
    assert "Step" not in twice.err, "it is there"
    assert again["id"] == first["id"], "every step was kept"
    assert anew["id"] != first["id"], "no step was kept"


def test_the_tag_of_a_dry_run_is_the_one_without_a_base(builds: Builds):
    path = str(builds.recipe())
    real = builds.built("-r", path)["image"]
    dry = json.loads(builds.sanduk("-r", path, "--dry-run", "--json").out)["image"]

    assert dry != real
    assert dry.partition(":")[0] == real.partition(":")[0] == "sanduk-small"


def test_a_kit_that_nothing_pins_is_told_with_its_hash(builds: Builds):
    kit = builds.installation.ground / "kits" / "k"
    kit.mkdir(parents=True)
    (kit / "kit.json").write_text('{"name": "k", "env": {"K": "1"}}')
    done = builds.sanduk("-r", str(builds.recipe()), "--kit", str(kit))
    builds.made.add(done.out.split()[0])

    [line] = [line for line in done.err.splitlines() if "which nothing pins" in line]
    digest = line.split("k@")[1].split(",")[0]
    label = '{{index .Config.Labels "sanduk.kits"}}'
    labels = told("docker", "image", "inspect", "--format", label, done.out.split()[0])
    assert labels.stdout.strip() == f"k@{digest}"


def test_a_build_that_fails_shows_its_last_lines(builds: Builds):
    lines = ["echo about-to-fail", "exit 7"]
    path = str(builds.recipe(sections=[{"name": "f", "type": "run", "lines": lines}]))
    done = builds.sanduk("-q", "-r", path)

    assert done.code == 2
    assert done.out == ""
    assert "about-to-fail" in done.err
    assert "7" in done.err.splitlines()[-1]


def test_a_containerfile_of_ones_own_is_built_and_called_as_asked(builds: Builds):
    file = builds.installation.ground / "Containerfile"
    file.write_text('FROM debian:trixie-slim\nENTRYPOINT ["sh"]\n')
    tag = f"sanduk-test-own:{builds.installation.ground.name.lower().replace('_', '-')}"
    assert builds.built("--containerfile", str(file), "-i", tag)["image"] == tag
