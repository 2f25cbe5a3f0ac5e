"""Which agents there are: the built-in ones, then what other packages offer.

A package offers one by an entry point of the group `sanduk.agents`, named as the agent is. One
that cannot be loaded is named and left out; none can take a built-in's name. `module:Class` loads
one that no package offers: it imports that module, so it is for people at a terminal only.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import TYPE_CHECKING

from runs.agents.base import Agent, AgentRefusal

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "sanduk.agents"
NO_AGENT = {"command": "runs.agents.command:Command"}  # found by its name, and listed nowhere
BUILT_IN = {
    "claude": "runs.agents.claude:Claude",
    "codex": "runs.agents.codex:Codex",
    "gemini": "runs.agents.gemini:Gemini",
    "hax": "runs.agents.hax:Hax",
    "hermes": "runs.agents.hermes:Hermes",
    "minima": "runs.agents.minima:Minima",
    "opencode": "runs.agents.opencode:Opencode",
    "pi": "runs.agents.pi:Pi",
    "prime": "runs.agents.prime:Prime",
}


def get_agent(name: str) -> Agent:
    """The agent of that name, or of `module:Class`.

    Raises:
        AgentRefusal: there is none, or it cannot be loaded; the text says which there are.
    """
    if name in BUILT_IN or name in NO_AGENT:
        return _load({**BUILT_IN, **NO_AGENT}[name])
    if ":" in name:
        return _load(name)
    found = _offered(name)
    if not found:
        raise AgentRefusal(f"no agent is called {name!r}; there are {', '.join(agent_names())}")
    refusals: list[AgentRefusal] = []
    for point in found:
        try:
            return _from_entry_point(point)
        except AgentRefusal as refusal:
            refusals.append(refusal)
    raise refusals[0]


def agent_names(*, for_tests: bool = False) -> tuple[str, ...]:
    """Every agent that can be loaded: the built-in ones first, then the others by name.

    Args:
        for_tests: with those that tests bring, which nobody is offered.
    """
    found = (name for name, agent in _plugins()[0].items() if for_tests or not agent.for_tests)
    return (*BUILT_IN, *found)


def plugin_problems() -> tuple[str, ...]:
    """One sentence for each offered agent that was left out."""
    return _plugins()[1]


def _plugins() -> tuple[dict[str, Agent], tuple[str, ...]]:
    agents: dict[str, Agent] = {}
    problems: list[str] = []
    for point in _offered():
        if point.name in BUILT_IN:
            problems.append(f"{_source(point)} offers {point.name}, which is built in; left out")
        elif point.name in agents:
            problems.append(f"{_source(point)} offers {point.name} a second time; left out")
        else:
            try:
                agents[point.name] = _from_entry_point(point)
            except AgentRefusal as refusal:
                problems.append(str(refusal))
    return agents, tuple(problems)


def _offered(name: str | None = None) -> list[EntryPoint]:
    from importlib.metadata import entry_points  # 20 ms that a built-in agent does not need

    every = entry_points(group=GROUP)
    points: Iterable[EntryPoint] = every if name is None else every.select(name=name)
    # A path that stands twice on sys.path gives the same offer twice.
    return sorted(set(points), key=lambda point: (point.name, _source(point), point.value))


def _from_entry_point(point: EntryPoint) -> Agent:
    agent = _load(point.value, source=_source(point))
    if agent.name != point.name:
        raise AgentRefusal(
            f"{_source(point)} offers {point.name}, but its class calls itself {agent.name}"
        )
    return agent


def _source(point: EntryPoint) -> str:
    return point.dist.name if point.dist else "a package"


def _load(path: str, *, source: str = "") -> Agent:
    module_name, _, class_name = path.partition(":")
    where = f"{path} of {source}" if source else path
    try:
        found = getattr(importlib.import_module(module_name), class_name)
    except (Exception, SystemExit) as error:  # somebody else's module may raise anything
        raise AgentRefusal(f"agent {where} cannot be loaded: {_reason(error)}") from error
    if not (isinstance(found, type) and issubclass(found, Agent)):
        raise AgentRefusal(f"agent {where} is no subclass of runs.agents.base.Agent")
    missing = [name for name in ("name", "recipe", "protocols") if not hasattr(found, name)]
    missing += sorted(found.__abstractmethods__)
    if missing:
        raise AgentRefusal(f"agent {where} lacks {', '.join(missing)}")
    try:
        return found()
    except (Exception, SystemExit) as error:
        raise AgentRefusal(f"agent {where} cannot be made: {_reason(error)}") from error


def _reason(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
