"""A package of somebody else's: agent, recipe and kit, installed by pip and run.

docs/agents.md shows it whole; these tests do with it what the page says.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.engine.engine_fixtures import told
from tests.engine.running import Installation, installed

PACKAGE = Path(__file__).parents[1] / "example_package"
BROKEN = {
    "missing": "[sanduk.agents]\nmissing = no_such_module_at_all:Agent\n",
    "thief": "[sanduk.agents]\npi = sanduk_courier:Courier\n",
    "odd": "[sanduk.kits]\nodd = sanduk_courier:Courier\n",
}


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pip put the package: a directory beside whatever sanduk lies in."""
    directory = tmp_path_factory.mktemp("packages")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    command += ["--no-build-isolation", "--target", str(directory), str(PACKAGE)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return directory


@pytest.fixture
def place(target: Path, tmp_path: Path) -> Iterator[Installation]:
    """An installation that has the package, and needs no engine yet."""
    with installed("docker") as made:
        made.environment["PYTHONPATH"] = str(target)
        yield made


def listed(place: Installation, what: str) -> dict[str, dict[str, Any]]:
    done = place.sanduk("list", what, "--json")
    assert done.code == 0, done
    return {row["name"]: row for row in json.loads(done.out)}


def offer(place: Installation, name: str) -> None:
    """One more package beside it, of which there is nothing but what it offers."""
    about = place.ground / "more" / f"{name}-1.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    (about / "entry_points.txt").write_text(BROKEN[name])
    place.environment["PYTHONPATH"] += f":{place.ground / 'more'}"


def test_agent_recipe_and_kit_are_listed_beside_the_shipped_ones(place: Installation):
    assert listed(place, "agents")["courier"]["recipe"] == "courier"
    assert listed(place, "recipes")["courier"]["agent"] == "courier"
    assert "plain-words" in listed(place, "kits")


def test_a_broken_package_is_named_and_the_others_work(place: Installation):
    offer(place, "missing")

    rows = json.loads(place.sanduk("list", "agents", "--json").out)

    told_of = [row["protocols"] for row in rows if "missing" in row["protocols"]]
    assert told_of == [
        "agent no_such_module_at_all:Agent of missing cannot be loaded: ModuleNotFoundError: "
        "No module named 'no_such_module_at_all'"
    ]
    assert {"pi", "courier"} <= {row["name"] for row in rows}


def test_a_built_in_name_cannot_be_taken(place: Installation):
    offer(place, "thief")

    rows = json.loads(place.sanduk("list", "agents", "--json").out)

    assert "thief offers pi, which is built in; left out" in [row["protocols"] for row in rows]
    (pi,) = [row for row in rows if row["name"] == "pi"]
    assert pi["recipe"] == "pi"


def test_a_kit_that_is_no_path_is_named(place: Installation):
    offer(place, "odd")

    assert "is ABCMeta, not a path" in json.dumps(listed(place, "kits"))


def test_its_refusals_come_before_anything_is_built(place: Installation):
    words = ("run", "--agent", "courier", "--dry-run", "-w", str(place.work))

    turns = place.sanduk(*words, "--provider", "rehearsal", "--max-turns", "3", "x")
    model = place.sanduk(*words, "--provider", "openai-compat", "--base-url", "x", "x")
    other = place.sanduk(*words, "--provider", "anthropic", "x", ANTHROPIC_API_KEY="k")

    assert (turns.code, other.code, model.code) == (2, 2, 2)
    assert "courier has no equivalent of --max-turns; leave it out" in turns.err
    assert "courier speaks openai-chat; provider anthropic serves" in other.err


@pytest.mark.engine
def test_it_works_sealed_with_its_own_kit(docker: Installation, target: Path):
    docker.environment["PYTHONPATH"] = str(target)
    words = ["--runtime", "docker", "--agent", "courier", "--kit", "plain-words"]
    try:
        done = docker.sanduk(
            "run", *words, "--provider", "rehearsal", "-w", str(docker.work), "--json",
            "look around", limit_s=250,
        )  # fmt: skip
        inside = docker.sanduk(
            "shell", *words, "-q", "--no-network", "-w", str(docker.work),
            stdin=b"cat ~/.courier/skills/plain-words/SKILL.md; echo $PLAIN_WORDS\n",
        )  # fmt: skip
    finally:
        images = told("docker", "image", "ls", "-q", "sanduk-courier").stdout.split()
        if images:
            told("docker", "image", "rm", "--force", *images)

    found = json.loads(done.out)
    assert (done.code, found["outcome"]) == (0, "succeeded"), done
    assert found["seal"] == "sealed: nothing answers but the relay"
    assert found["calls"]["completed"] == 1
    assert (found["tally"]["input_tokens"], found["tally"]["output_tokens"]) == (400, 44)
    assert found["report"]["text"].strip() == found["final_text"]
    assert inside.out.endswith("Say first what was found.\n1\n")
    docker.nothing_left()


@pytest.mark.engine
def test_a_call_that_the_relay_refuses_fails_the_run_in_its_words(
    docker: Installation, target: Path
):
    docker.environment["PYTHONPATH"] = str(target)

    done = docker.sanduk(
        "run", "--runtime", "docker", "--agent", "courier", "--provider", "rehearsal",
        "--allow-model", "another", "--model", "rehearsal", "-w", str(docker.work), "-q", "x",
        limit_s=250,
    )  # fmt: skip

    assert done.code == 1, done
    assert "rehearsal" in docker.row["reason"]
    assert "problem: HTTP 4" in " ".join(docker.events())
