"""hax, minima and prime in whole runs, by stand-ins that do what the documents of each say.

The program alone is a stand-in: the recipe is the shipped one with its download replaced, and so
are the handler, the wrapper, the seal and the relay.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runs.agents import get_agent
from tests.engine.engine_fixtures import told
from tests.engine.running import Installation, installed

pytestmark = pytest.mark.engine
STAND_IN = Path(__file__).with_name("documented_agent.py")
PROGRAMS = {"hax": "hax", "minima": "minima", "prime": "prime-agent"}


@pytest.fixture(scope="module")
def place(docker_ready: Path) -> Iterator[Installation]:
    with installed("docker", like=docker_ready) as made:
        yield made
        for name in PROGRAMS:
            for image in told(
                "docker", "image", "ls", "--quiet", f"sanduk-stand-in-{name}"
            ).stdout.split():
                told("docker", "image", "rm", "--force", image)


def recipe(place: Installation, agent: str) -> str:
    """The shipped recipe, with a copied program in the place of the downloaded one."""
    (place.ground / "program").write_bytes(STAND_IN.read_bytes())
    packages = ["ca-certificates", "curl", "python3"]  # as the scripted agent's: built once
    program: dict[str, Any] = {"name": agent, "type": "copy", "from": "program", "mode": "0755"}
    sections = [
        {"name": "base", "type": "apt", "install": packages},
        program | {"to": f"/usr/local/bin/{PROGRAMS[agent]}"},
    ]
    path = place.ground / f"stand-in-{agent}.json"
    path.write_text(json.dumps({"name": path.stem, "inherits": agent, "sections": sections}))
    return str(path)


def run(place: Installation, agent: str, task: str) -> dict[str, Any]:
    done = place.sanduk(
        "run", "--runtime", "docker", "--agent", agent, "--recipe", recipe(place, agent),
        "--provider", "rehearsal", "--workdir", str(place.ground / f"work-{agent}"), "--json",
        "--no-report-instruction", "--", task, limit_s=200,
    )  # fmt: skip
    found: dict[str, Any] = json.loads(done.out)
    return found | {"exit": done.code}


@pytest.mark.parametrize("agent", PROGRAMS)
def test_it_works_sealed_with_the_run_token_and_is_read(place: Installation, agent: str):
    ended = run(place, agent, "-- say hello")

    assert (ended["exit"], ended["outcome"]) == (0, "succeeded"), ended
    assert ended["calls"]["completed"] == 1
    assert ended["calls"]["refused"] == 0
    assert ended["seal"].startswith("sealed: nothing answers but the relay")
    assert ended["final_text"]
    assert ended["report"]["text"] == ended["final_text"]
    shown = place.show(ended["run"])
    [call] = [event for event in shown["trace"] if event["kind"] == "tool"]
    assert call["text"].startswith("write")
    assert get_agent(agent).from_documents


@pytest.mark.parametrize("agent", PROGRAMS)
def test_what_it_reports_as_failed_fails_the_run_in_its_own_words(place: Installation, agent: str):
    ended = run(place, agent, "-fail please")

    assert ended["outcome"] == "failed", ended
    assert ended["exit"] == 1
    assert "told to fail" in json.dumps(ended)
