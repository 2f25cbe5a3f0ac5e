"""What `--kit` and a recipe's kits may not be asked for: refused before anything is built."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from relay import Ledger
from runs.console import Silent
from runs.order import Order
from runs.plan import Plan, make_plan
from runs.refusal import Refusal
from runs.starting import Starting

SKILL = "---\nname: s\ndescription: when\n---\n"


@pytest.fixture
def kit(tmp_path: Path):
    """kit(**keys): a kit's directory with one skill; returns the path for --kit."""

    def write(**keys: Any) -> str:
        home = tmp_path / "kits" / "k"
        (home / "skills" / "s").mkdir(parents=True)
        (home / "skills" / "s" / "SKILL.md").write_text(SKILL)
        skill = {
            "path": "skills/s",
            "files": {"SKILL.md": hashlib.sha256(SKILL.encode()).hexdigest()},
        }
        (home / "kit.json").write_text(json.dumps({"name": "k", "skills": [skill], **keys}))
        return str(home)

    return write


@pytest.fixture
def planned(state: Path, tmp_path: Path):
    def plan(**fields: Any) -> Plan:
        given = {
            "task": "x",
            "agent": "claude",
            "provider": "rehearsal",
            "workdir": str(tmp_path / "w"),
        }
        return make_plan(Order(**{**given, **fields}))

    return plan


def refusal(planned, **fields: Any) -> str:
    with pytest.raises(Refusal) as caught:
        planned(**fields)
    return str(caught.value)


def test_a_kit_is_added_to_the_agents_own_recipe(planned, kit):
    image = planned(kits=(kit(),)).image
    assert image.context is not None
    assert ".claude/skills node" in image.context.containerfile
    assert len(image.kits) == 1
    assert image.kits[0].startswith("k@")
    assert image.tag != planned().image.tag


@pytest.mark.parametrize("agent", ["codex", "gemini", "hermes", "opencode", "pi"])
def test_skills_go_where_each_agent_reads_them(planned, kit, agent):
    plan = planned(agent=agent, kits=(kit(),), model="m")
    assert f" {plan.agent.skills_dir} " in plan.image.context.containerfile


def test_a_kit_that_needs_the_network_is_refused_where_there_is_none(planned, kit):
    spec = kit(egress=True)
    assert refusal(planned, kits=(spec,)) == (
        "kit k needs the network, which sealed runs do not have; use --mode key-safe, or leave "
        "the kit out"
    )
    assert planned(kits=(spec,), mode="key-safe").image.kits


@pytest.mark.parametrize(
    ("fields", "flag"),
    [({"allowed_tools": "Read"}, "--allowed-tools"), ({"bare": True}, "--bare")],
)
def test_a_kit_of_hooks_is_refused_with_flags_that_leave_hooks_out(planned, kit, fields, flag):
    spec = kit(hook=True)
    assert f"kit k works by hooks, which {flag} would leave out" in refusal(
        planned, kits=(spec,), **fields
    )
    assert planned(kits=(spec,)).image.kits


def test_instructions_of_a_recipe_are_refused_with_bare(planned, tmp_path):
    path = tmp_path / "mine.json"
    path.write_text(
        json.dumps({"name": "mine", "inherits": "claude", "instructions": {"text": "Be brief."}})
    )
    assert "--bare leaves out the instructions that recipe mine gives" in refusal(
        planned, agent="", recipe=str(path), bare=True
    )
    text = planned(agent="", recipe=str(path)).image.context.containerfile
    assert "/usr/local/share/sanduk/instructions.md .claude/CLAUDE.md" in text


def test_instructions_for_an_agent_that_reads_none_are_refused(planned, tmp_path):
    path = tmp_path / "mine.json"
    path.write_text(
        json.dumps({"name": "mine", "inherits": "hermes", "instructions": {"text": "Be brief."}})
    )
    said = refusal(planned, agent="", recipe=str(path))
    assert said.endswith("$.instructions: hermes reads no instructions file")


@pytest.mark.parametrize("field", ["image", "containerfile"])
def test_a_kit_and_an_image_of_ones_own_exclude_each_other(planned, kit, field):
    assert "--kit and --image or --containerfile exclude each other" in refusal(
        planned, kits=(kit(),), **{field: "x"}
    )


def test_a_kit_for_another_agent_is_refused(planned, kit):
    assert "kit k suits pi, not claude" in refusal(planned, kits=(kit(agents={"pi": {}}),))


@pytest.mark.anyio
async def test_a_run_tells_of_a_kits_agents_that_are_none(planned, kit, monkeypatch):
    """In its trace too, so that a run of the web or of a schedule says it."""
    plan = planned(kits=(kit(agents={"claude": {}, "clod": {}}),))
    steps: list[str] = []
    starting = Starting(plan, mock.Mock(), Ledger(), Silent(), steps.append, mock.Mock())
    monkeypatch.setattr(starting, "_made", mock.AsyncMock(return_value="made"))

    assert await starting.container() == "made"
    [told] = [step for step in steps if "clod" in step]
    assert "kit.json: $.agents.clod: there is no agent clod here; known are claude," in told
