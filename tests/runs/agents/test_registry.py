"""Which agents there are, and what becomes of a broken offer."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from importlib import metadata

import pytest

from runs.agents import agent_names, get_agent, plugin_problems
from runs.agents.base import Agent, AgentRefusal, Launch
from runs.agents.claude import Claude
from runs.agents.codex import Codex
from runs.agents.pi import Pi
from runs.agents.registry import BUILT_IN

HERE = __name__
Offer = Callable[..., None]


class Own(Claude):
    name = "own"


class Rival(Codex):
    name = "own"


class Nameless(Agent):
    def launch(self, request, provider, *, task, root, credential):
        return Launch(())


class Explodes(Claude):
    name = "explodes"

    def __init__(self) -> None:
        raise RuntimeError("boom")


class NoAgent:
    pass


@pytest.fixture
def offer(monkeypatch: pytest.MonkeyPatch) -> Offer:
    """Offers agents by entry point, instead of those that are really installed."""
    points: list[metadata.EntryPoint] = []
    monkeypatch.setattr(metadata, "entry_points", lambda *, group: metadata.EntryPoints(points))

    def add(name: str, value: str) -> None:
        points.append(metadata.EntryPoint(name, value, "sanduk.agents"))

    return add


@pytest.mark.parametrize(("name", "kind"), [("claude", Claude), ("codex", Codex), ("pi", Pi)])
def test_a_built_in_agent_is_found_by_its_name(name, kind):
    agent = get_agent(name)

    assert type(agent) is kind
    assert agent.name == name


def test_an_offered_agent_is_found_and_listed(offer: Offer):
    offer("own", f"{HERE}:Own")

    assert isinstance(get_agent("own"), Own)
    assert agent_names() == (*BUILT_IN, "own")
    assert plugin_problems() == ()


def test_an_unknown_agent_is_refused_with_those_there_are(offer: Offer):
    offer("own", f"{HERE}:Own")

    with pytest.raises(AgentRefusal, match=f"'gpt'; there are {', '.join(BUILT_IN)}, own"):
        get_agent("gpt")


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("broken", "no.such.module:Agent", "ModuleNotFoundError"),
        ("broken", f"{HERE}:Missing", "AttributeError"),
        ("broken", HERE, "cannot be loaded"),
        ("broken", f"{HERE}:NoAgent", "no subclass"),
        ("broken", f"{HERE}:Nameless", "lacks name, recipe, protocols, reader"),
        ("explodes", f"{HERE}:Explodes", "RuntimeError: boom"),
        ("other", f"{HERE}:Own", "calls itself own"),
    ],
)
def test_a_broken_offer_is_named_and_left_out(offer: Offer, name, value, words):
    offer(name, value)
    offer("own", f"{HERE}:Own")

    assert agent_names() == (*BUILT_IN, "own")
    [problem] = plugin_problems()
    assert words in problem
    with pytest.raises(AgentRefusal, match=words):
        get_agent(name)


def test_no_offer_takes_a_built_in_name(offer: Offer):
    offer("claude", f"{HERE}:Own")

    assert type(get_agent("claude")) is Claude
    assert agent_names() == tuple(BUILT_IN)
    [problem] = plugin_problems()
    assert "offers claude, which is built in" in problem


def test_a_name_offered_twice_goes_to_the_first_and_is_told(offer: Offer):
    offer("own", f"{HERE}:Rival")
    offer("own", f"{HERE}:Own")

    assert agent_names() == (*BUILT_IN, "own")
    assert isinstance(get_agent("own"), Own)
    assert plugin_problems() == ("a package offers own a second time; left out",)


def test_a_broken_offer_leaves_the_name_to_another(offer: Offer):
    offer("own", f"{HERE}:Missing")
    offer("own", f"{HERE}:Rival")

    assert agent_names() == (*BUILT_IN, "own")
    assert isinstance(get_agent("own"), Rival)


def test_an_unpackaged_agent_is_loaded_by_module_and_class():
    assert isinstance(get_agent(f"{HERE}:Own"), Own)


@pytest.mark.parametrize("path", ["no.such:Agent", f"{HERE}:NoAgent", ":", "a:", ":b", "..:x"])
def test_a_path_that_leads_to_no_agent_is_refused(path):
    with pytest.raises(AgentRefusal, match="agent"):
        get_agent(path)


def test_a_built_in_agent_asks_no_other_package():
    code = (
        "import sys; from runs.agents import get_agent; get_agent('claude');"
        "sys.exit('importlib.metadata' in sys.modules)"
    )

    done = subprocess.run([sys.executable, "-c", code], check=False, timeout=60)

    assert done.returncode == 0
