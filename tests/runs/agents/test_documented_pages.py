"""What people are told of the agents known from documents is what the code does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from recipes import load
from relay import get_provider, provider_names
from runs.agents import agent_names, get_agent
from runs.agents.base import AgentRefusal, Request
from runs.management.commands import sanduk_list

PAGE = (Path(__file__).parents[3] / "docs" / "agents.md").read_text("utf-8")
DOCUMENTED = [name for name in agent_names() if get_agent(name).from_documents]
WIRE = {
    "Chat Completions": "openai-chat",
    "Messages": "anthropic-messages",
    "Responses": "openai-responses",
}


def row(name: str) -> list[str]:
    [line] = [line for line in PAGE.splitlines() if line.startswith(f"| {name} ")]
    return [part.strip() for part in line.strip("|").split("|")]


def test_these_are_hax_minima_and_prime():
    assert DOCUMENTED == ["hax", "minima", "prime"]


@pytest.mark.parametrize("name", DOCUMENTED)
def test_the_page_tells_version_protocols_flags_and_places(name):
    agent = get_agent(name)
    first, speaks, _, model, honours, instructions, skills = row(name)
    own = agent.honours - {"key_env", "base_url_env"}  # these every agent honours
    flags = {f"`--{field.replace('_', '-')}`" for field in own} or {"none"}

    pins = [placed.section for placed in load(name).sections if placed.section.name == name]
    assert f"-{first.split()[1]}-" in pins[0].artifacts["amd64"].url
    assert tuple(WIRE[word] for word in speaks.split(", ")) == agent.protocols
    assert set(honours.split(", ")) == flags
    assert (model == "needed") is agent.needs_model
    assert instructions == f"`{agent.instructions_file}`"
    assert skills == (f"`{agent.skills_dir}`" if agent.skills_dir else "not known")


@pytest.mark.parametrize("provider", provider_names())
@pytest.mark.parametrize("name", DOCUMENTED)
def test_the_page_tells_which_providers_serve_them(name, provider):
    assert row(name)[2] == "every provider but gemini"
    served = True
    try:
        get_agent(name).check(Request(model="m"), get_provider(provider))
    except AgentRefusal:
        served = False

    assert served is (provider != "gemini")


def test_the_efforts_of_hax_are_told():
    *first, last = get_agent("hax").efforts

    assert f"`--effort` of hax takes {', '.join(first)} and {last}" in PAGE.replace("\n", " ")


def test_list_agents_says_that_they_were_not_run_here(capsys):
    command = sanduk_list.Command()
    command.act(what="agents", json=False)
    told = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    command.act(what="agents", json=True)
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}

    assert set(told) == set(rows) > set(DOCUMENTED)
    for name, line in told.items():
        documented = name in DOCUMENTED
        assert line.endswith("from documents, not run here") is documented
        assert rows[name]["from_documents"] is documented
        assert "True" not in line
        assert "False" not in line
