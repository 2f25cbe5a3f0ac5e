"""docs/agents.md says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from recipes import load
from recipes.schema import Npm, Pip
from relay import get_provider, provider_names
from runs.agents import get_agent
from runs.agents.base import Agent, Request

ROOT = Path(__file__).parents[3]
README = (ROOT / "README.md").read_text("utf-8")
PAGE = (ROOT / "docs" / "agents.md").read_text("utf-8")
EXAMPLE = ROOT / "tests" / "example_package"
FLAGS = ("max_turns", "allowed_tools", "permission_mode", "bare")
AGENTS = ("claude", "codex", "pi", "opencode", "gemini", "hermes")
WIRE = {
    "anthropic-messages": "Messages",
    "gemini": "Gemini",
    "openai-chat": "Chat Completions",
    "openai-responses": "Responses",
}


def cell(row: str, name: str) -> str:
    """What the first table says of an agent."""
    [line] = [line for line in PAGE.splitlines() if line.startswith(f"| {row} |")]
    return [part.strip() for part in line.strip("|").split("|")][1 + AGENTS.index(name)]


@pytest.mark.parametrize("name", AGENTS)
def test_the_efforts_are_those_it_takes(name):
    words, _, _ = cell("`--effort`", name).partition(";")

    assert words == (", ".join(get_agent(name).efforts) or "refused")


@pytest.mark.parametrize("name", AGENTS)
def test_its_protocols_and_providers_are_those_it_has(name):
    agent = get_agent(name)
    strange = [
        each
        for each in provider_names()
        if not set(get_provider(each).protocols) & set(agent.protocols)
    ]
    others = [each for each in provider_names() if each not in strange]

    assert cell("speaks", name) == ", ".join(WIRE[protocol] for protocol in agent.protocols)
    assert cell("works with", name) in (
        f"every provider but {', '.join(strange)}",
        ", ".join(others),
    )


@pytest.mark.parametrize("provider", provider_names())
def test_the_readme_names_the_agents_of_each_provider(provider):
    [line] = [line for line in README.splitlines() if line.startswith(f"| {provider} |")]
    agents, _, _ = line.strip("|").split("|")[2].partition(";")
    served = set(get_provider(provider).protocols)

    assert agents.strip().split(", ") == [
        name for name in sorted(AGENTS) if served & set(get_agent(name).protocols)
    ]


@pytest.mark.parametrize("name", AGENTS)
def test_the_version_is_the_one_its_image_has(name):
    [line] = [line for line in PAGE.splitlines() if line.startswith("| | claude")]
    version = line.strip("|").split("|")[1 + AGENTS.index(name)].split()[1]
    pins = [
        spec
        for placed in load(get_agent(name).recipe).sections
        if isinstance(placed.section, Npm | Pip)
        for spec in placed.section.install
    ]

    assert pins[0].endswith((f"@{version}", f"=={version}"))


@pytest.mark.parametrize("name", AGENTS)
@pytest.mark.parametrize("flag", FLAGS)
def test_a_flag_is_called_refused_where_it_is(name, flag):
    said = cell(f"`--{flag.replace('_', '-')}`", name)

    assert (said != "refused") is (flag in get_agent(name).honours)


@pytest.mark.parametrize("name", AGENTS)
def test_the_places_in_its_home_are_right(name):
    agent = get_agent(name)

    instructions = agent.instructions_file

    assert cell("skills, in its home", name) == f"`{agent.skills_dir}`"
    assert cell("instructions, in its home", name) == (
        f"`{instructions}`" if instructions else "none"
    )


def test_the_example_package_is_shown_whole():
    shown = re.findall(r"^`([^`\n]+)`:\n\n```[a-z]+\n(.*?)```\n", PAGE, re.DOTALL | re.MULTILINE)
    files = [each for each in EXAMPLE.rglob("*") if each.is_file() and each.suffix != ".pyc"]

    found = {str(each.relative_to(EXAMPLE)): each.read_text("utf-8") for each in files}

    assert dict(shown) == found


def test_every_attribute_of_a_handler_is_explained():
    said = set(re.findall(r"`([a-z_]+)`", PAGE))

    assert {name for name in Agent.__annotations__ if not name.startswith("_")} <= said
    assert {name for name in Request.__slots__ if name != "model"} <= said
