"""A recipe of a person's own in a sealed run: its kit's tool works, and the agent is told of it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from runs.agents import get_agent
from tests.engine.running import Installation, told

pytestmark = pytest.mark.engine
MARK = "whenever the word zyzzyva stands in a file"
SAID = "Answer in sentences of at most eleven words."
SKILL = f"---\nname: zyzzyva\ndescription: Read this {MARK}.\n---\n\n# zyzzyva\n"


def recipe_of(agent: str, ground: Path) -> Path:
    """The agent's own recipe with a kit by path, and instructions."""
    kit = ground / "kits" / "words"
    (kit / "skills" / "zyzzyva").mkdir(parents=True)
    (kit / "skills" / "zyzzyva" / "SKILL.md").write_text(SKILL)
    files = {"SKILL.md": hashlib.sha256(SKILL.encode()).hexdigest()}
    (kit / "kit.json").write_text(
        json.dumps({"name": "words", "skills": [{"path": "skills/zyzzyva", "files": files}]})
    )
    pin = {
        "path": "kits/words",
        "sha256": hashlib.sha256((kit / "kit.json").read_bytes()).hexdigest(),
    }
    recipe = {"name": "my-agent", "inherits": agent, "kits": [pin]}
    if get_agent(agent).instructions_file:
        recipe["instructions"] = {"text": SAID}
    path = ground / "my-agent.json"
    path.write_text(json.dumps(recipe))
    return path


@pytest.mark.usefixtures("agent_images")
@pytest.mark.parametrize("agent", ["claude", "codex", "gemini", "hermes", "opencode", "pi"])
def test_an_agent_is_told_of_its_skill_and_its_instructions(docker: Installation, agent: str):
    path = recipe_of(agent, docker.ground)
    done = docker.sanduk(
        "run", "-r", str(path), "--runtime", "docker", "--provider", "rehearsal", "--log-bodies",
        "--workdir", str(docker.work), "--", "look at every file here",
        limit_s=280,
    )  # fmt: skip
    try:
        assert done.code == 0, done
        bodies = docker.home / "runs" / docker.row["uid"] / "bodies"
        sent = "".join(each.read_text() for each in bodies.glob("[0-9]*[0-9].json"))
        assert MARK in sent, "the skill's description"
        assert (SAID in sent) == bool(get_agent(agent).instructions_file)
        shown = docker.sanduk("build", "-r", str(path), "--runtime", "docker", "--json")
        assert json.loads(shown.out)["image"] == docker.row["image"], "what the run had"
    finally:
        told("docker", "image", "rm", "--force", docker.row["image"])
