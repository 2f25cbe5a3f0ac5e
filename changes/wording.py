"""What an agent is told beside the task itself."""

from __future__ import annotations

import json
from collections.abc import Sequence

from changes import skills
from runs.agents.base import Agent
from runs.mounts import BOX

_GROUND = (
    "You are in the top directory of a git repository: a clone made for this task alone. What the "
    "files here hold when you end is compared with the base commit and shown to a person, who "
    "decides about it. There is no remote and nothing to push to. Make the smallest change that "
    "does the task, and run the tests if that is possible here."
)
_COMMITS = (
    "Commit your work with git in steps that each make sense alone, each with a message that says "
    "why: your commits are kept as a series, in one line from the base commit, which you leave as "
    "it is. What you take away again in a later commit stays in the history, so never commit a "
    "secret."
)
_EXAMPLE = {
    "summary": "what you did and why",
    "files_changed": ["src/a.py"],
    "tests_run": 3,
    "tests_passed": 3,
    "risks": ["what the reviewer should look at"],
    "followups": ["what is left to do"],
}
_RESULTS = (
    "At the end write .sanduk/results.json, a JSON object of this form; only summary must be in "
    f"it: {json.dumps(_EXAMPLE)}"
)


def first(task: str, agent: Agent, skill_names: Sequence[str], *, keeps: bool = False) -> str:
    """The whole text of a first attempt.

    Args:
        keeps: the agent's own commits land.
    """
    how = _COMMITS if keeps else ""
    return _joined(task, _GROUND, how, _RESULTS, skills.TOLD, _skills(agent, skill_names))


def revision(
    task: str, asked: str, agent: Agent, skill_names: Sequence[str], *, keeps: bool = False
) -> str:
    """The same for another attempt.

    Args:
        task: what is to be different.
        asked: what the attempt before it was asked for.
        keeps: the agent's own commits land.
    """
    before = (
        "This revises earlier work, which the files here hold already. That was asked for with:\n\n"
        f"{asked.strip()}"
    )
    how = _COMMITS if keeps else ""
    return _joined(task, before, _GROUND, how, _RESULTS, skills.TOLD, _skills(agent, skill_names))


def _skills(agent: Agent, names: Sequence[str]) -> str:
    if not names:
        return ""
    where = f"~/{agent.skills_dir}" if agent.skills_dir else f"{BOX}/skills"
    listed = ", ".join(names)
    return (
        f"Skills for this repository, which its people approved, are in {where}/NAME/SKILL.md; "
        f"read the ones that fit the task: {listed}."
    )


def _joined(*parts: str) -> str:
    return "\n\n".join(part.strip() for part in parts if part.strip()) + "\n"
