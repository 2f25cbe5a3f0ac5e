"""`sanduk images` and `images prune`, with images that are built for it."""

from __future__ import annotations

import contextlib
import json
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.engine.engine_fixtures import told
from tests.engine.running import DONE, WAIT, Installation

pytestmark = pytest.mark.engine


class Shelf:
    """An installation whose recipe is a file of its own, called as the installation is."""

    def __init__(self, place: Installation) -> None:
        self.place = place
        self.name = f"shelf-{secrets.token_hex(4)}"
        self.path = place.ground / f"{self.name}.json"

    def write(self, word: str) -> Shelf:
        self.path.write_text(
            json.dumps(
                {
                    "name": self.name,
                    "agent": "scripted-offline",
                    "from": "docker.io/library/debian:trixie-slim",
                    "user": "agent",
                    "home": "/home/agent",
                    "sections": [{"name": "word", "type": "run", "lines": [f"echo {word} >/word"]}],
                    "entrypoint": ["sh"],
                }
            )
        )
        return self

    def build(self) -> str:
        """Build it; the image's tag."""
        done = self.place.sanduk("build", "-q", "-r", str(self.path), *self.engine, limit_s=250)
        assert done.code == 0, done
        return done.out.split()[0]

    @property
    def engine(self) -> tuple[str, str]:
        return ("--runtime", self.place.engine)

    def run(self, *flags: str, script: str = DONE) -> list[str]:
        named = ("--provider", "rehearsal", "--recipe", str(self.path), *flags)
        return self.place.words(script, *named)

    def images(self, *words: str) -> list[dict[str, Any]]:
        """Of this recipe: podman may have had to build a link, too."""
        done = self.place.sanduk("images", *words, "--json", *self.engine)
        assert done.code == 0, done
        found: list[dict[str, Any]] = json.loads(done.out)
        return [each for each in found if each["recipe"] == self.name]

    def states(self) -> dict[str, str]:
        return {each["image"]: each["state"] for each in self.images()}

    def is_there(self, tag: str) -> bool:
        return told(self.place.cli, "image", "inspect", tag).returncode == 0


@contextlib.contextmanager
def shelf_of(place: Installation) -> Iterator[Shelf]:
    yield Shelf(place).write("one")
    mark = (place.home / "install-id").read_text()  # images of failed tests, too
    words = ["image", "ls", "--quiet", "--filter", f"label=sanduk.install={mark}"]
    left = told(place.cli, *words).stdout.split()
    if left:
        told(place.cli, "image", "rm", "--force", *dict.fromkeys(left))


@pytest.fixture
def shelf(docker: Installation) -> Iterator[Shelf]:
    with shelf_of(docker) as made:
        yield made


@pytest.fixture
def each_shelf(installation: Installation) -> Iterator[Shelf]:
    """One on each engine."""
    with shelf_of(installation) as made:
        yield made


def test_an_image_is_listed_with_its_recipe_its_size_and_its_runs(each_shelf: Shelf):
    tag = each_shelf.build()
    (before,) = each_shelf.images()
    done = each_shelf.place.sanduk(*each_shelf.run("-q"))
    (after,) = each_shelf.images()
    table = each_shelf.place.sanduk("images", *each_shelf.engine).out.splitlines()

    assert (before["image"], before["recipe"], before["runs"]) == (tag, each_shelf.name, [])
    assert before["size_bytes"] > 10_000_000
    assert before["unused_since"] == before["built_at"]
    assert done.code == 0, done
    assert after["runs"] == [each_shelf.place.row["uid"]]
    assert after["unused_since"] > before["unused_since"]
    assert after["state"] == "current"
    assert table[0].split()[:2] == ["IMAGE", "RECIPE"]
    assert any(line.startswith(tag) for line in table)


def test_what_a_changed_recipe_left_is_pruned_and_the_current_image_stays(shelf: Shelf):
    old = shelf.build()
    assert shelf.place.sanduk(*shelf.run("-q")).code == 0
    new = shelf.write("two").build()

    assert shelf.states() == {old: "superseded", new: "current"}
    asked = shelf.place.sanduk("images", "prune", *shelf.engine, stdin=b"n\n")
    assert (asked.code, shelf.is_there(old)) == (0, True), asked
    assert old in asked.out
    assert "Remove these 1 image(s)?" in asked.err
    done = shelf.place.sanduk("images", "prune", *shelf.engine, stdin=b"y\n")

    assert done.code == 0, done
    assert "1 image(s) removed" in done.err
    assert (shelf.is_there(old), shelf.is_there(new)) == (False, True)


def test_images_of_a_deleted_recipe_are_found_and_pruned(shelf: Shelf):
    tag = shelf.build()
    assert shelf.place.sanduk(*shelf.run("-q")).code == 0
    shelf.path.unlink()

    assert shelf.states() == {tag: "no recipe"}
    (gone,) = shelf.images("prune", "--yes")
    assert (gone["image"], gone["became"]) == (tag, "removed")
    assert not shelf.is_there(tag)
    assert shelf.images() == []


def test_after_a_prune_it_is_built_again(shelf: Shelf):
    tag = shelf.build()
    shelf.images("prune", "--recipe", shelf.name, "--yes")
    assert not shelf.is_there(tag)

    done = shelf.place.sanduk(*shelf.run("-q"), limit_s=250)

    assert done.code == 0, done
    assert shelf.is_there(tag)


def test_what_a_live_run_uses_is_never_pruned(shelf: Shelf):
    tag = shelf.build()
    going = shelf.place.start(*shelf.run(script=WAIT)).until("ready")
    (listed,) = shelf.images()

    pruned = shelf.images("prune", "--recipe", shelf.name, "--yes")
    shelf.place.sanduk("stop", shelf.place.row["uid"])
    going.end()

    assert (listed["in_use"], listed["unused_since"]) == (True, None)
    assert pruned == []
    assert shelf.is_there(tag)


def test_what_a_kept_container_needs_stays_and_is_told(each_shelf: Shelf):
    tag = each_shelf.build()
    assert each_shelf.place.sanduk(*each_shelf.run("-q", "--keep")).code == 0

    (spared,) = each_shelf.images("prune", "--recipe", each_shelf.name, "--yes")
    each_shelf.place.sanduk("clean", *each_shelf.engine)

    assert spared["became"] == "a container or another image needs it"
    assert each_shelf.is_there(tag)


def test_only_what_was_unused_long_enough_goes(shelf: Shelf, tmp_path: Path):
    tag = shelf.build()
    clock = shelf.place.ground / "clock"
    clock.write_text(str(29 * 86400))
    steer = {"SANDUK_CLOCK_FILE": str(clock)}
    words = ["images", "prune", "--unused-for", "30d", "--yes", "--recipe", shelf.name]
    words += shelf.engine

    early = shelf.place.sanduk(*words, **steer)
    clock.write_text(str(31 * 86400))
    assert shelf.is_there(tag), early
    late = shelf.place.sanduk(*words, **steer)

    assert "nothing to remove" in early.err
    assert "1 image(s) removed" in late.err
    assert not shelf.is_there(tag)


def test_an_image_somebody_made_from_one_of_ours_is_his_own(shelf: Shelf):
    tag = shelf.build()
    own = f"own-{shelf.name}:1"
    (shelf.place.ground / "Containerfile").write_text(f"FROM {tag}\nENV OWN=1\n")
    file = str(shelf.place.ground / "Containerfile")
    built = told(shelf.place.cli, "build", "-q", "-t", own, "-f", file, str(shelf.place.ground))
    assert built.returncode == 0, built.stderr
    shelf.path.unlink()

    (found,) = shelf.images()
    shelf.images("prune", "--yes")

    assert found["image"] == tag
    assert shelf.is_there(own)


def test_clean_leaves_images_alone(each_shelf: Shelf):
    """podman's filters once made it take every image of the installation for a probe's."""
    tag = each_shelf.build()
    done = each_shelf.place.sanduk("clean", *each_shelf.engine)

    assert done.code == 0, done
    assert each_shelf.is_there(tag)


def test_without_an_answer_nothing_is_removed(shelf: Shelf):
    tag = shelf.build()
    words = ("images", "prune", "--recipe", shelf.name, *shelf.engine)

    done = shelf.place.sanduk(*words)
    as_json = shelf.place.sanduk(*words, "--json")

    assert (done.code, as_json.code) == (2, 2)
    assert "nobody answered; --yes removes without asking" in done.err
    assert "give --yes" in as_json.err
    assert shelf.is_there(tag)
