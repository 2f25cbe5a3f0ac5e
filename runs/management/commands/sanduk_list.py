"""`sanduk list`: what there is to choose from."""

from __future__ import annotations

import shutil
import sys
from typing import Any

from django.core.management.base import CommandParser

import recipes
from recipes.catalog import seen_once
from runs import agents, engines, providers
from runs.agents.base import AgentRefusal
from runs.engines.base import EngineError
from runs.management.terminal import SandukCommand, add_json_flag
from runs.visible import visible

Rows = list[dict[str, Any]]


class Command(SandukCommand):
    help = "List agents, providers, runtimes, recipes or kits."
    keeps_state = False
    examples = ("list agents", "list providers --json", "list kits")

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "what",
            metavar="agents|providers|runtimes|recipes|kits",
            choices=("agents", "providers", "runtimes", "recipes", "kits"),
            help="what to list",
        )
        add_json_flag(parser)

    def act(self, **options: Any) -> int:
        listed = {
            "agents": _agents,
            "providers": _providers,
            "runtimes": _runtimes,
            "recipes": _recipes,
            "kits": _kits,
        }[options["what"]]
        with seen_once():
            rows = listed()
        if options["json"]:
            self.print_json(rows)
            return 0
        # A yes or no is for programs: people have it in words, in another column.
        columns = (
            [name for name, value in rows[0].items() if type(value) is not bool] if rows else []
        )
        widths = {c: max(len(c), *(len(str(row[c])) for row in rows)) for c in columns}
        if rows and sys.stdout.isatty():
            self.print("  ".join(c.upper().ljust(widths[c]) for c in columns).rstrip())
        for row in rows:
            self.print("  ".join(str(row[c]).ljust(widths[c]) for c in columns).rstrip())
        return 0


def _agents() -> Rows:
    rows = []
    for name in agents.agent_names():
        try:
            agent = agents.get_agent(name)
        except AgentRefusal as exc:
            rows.append(_unusable(name, f"cannot be used: {exc}"))
            continue
        rows.append(
            {
                "name": name,
                "recipe": agent.recipe,
                "protocols": ", ".join(agent.protocols),
                "from_documents": agent.from_documents,
                "note": "from documents, not run here" if agent.from_documents else "",
            }
        )
    return rows + [_unusable("!", problem) for problem in agents.plugin_problems()]


def _unusable(name: str, why: str) -> dict[str, Any]:
    return {"name": name, "recipe": "", "protocols": why, "from_documents": False, "note": ""}


def _providers() -> Rows:
    rows = []
    known, problem = providers.usable()
    for name, p in known.items():
        port = f":{p.port}" if p.port else ""
        where = "inside sanduk" if name == "rehearsal" else f"{p.scheme}://{p.host}{port}{p.prefix}"
        key = p.key_env if p.needs_key else f"{p.key_env or ''} (no key needed)".strip()
        rows.append({"name": name, "where": where, "key": key, "model": p.default_model or "-"})
    if problem:
        rows.append({"name": "!", "where": problem, "key": "", "model": ""})
    return rows


def _runtimes() -> Rows:
    chosen = engines.get_engine(None).name
    rows = []
    for name in engines.engine_names():
        try:
            cli = engines.get_engine(name).cli
        except EngineError as exc:
            rows.append({"name": name, "cli": "", "state": str(exc), "default": ""})
            continue
        state = "installed" if shutil.which(cli) else "not installed"
        default = "default" if name == chosen and state == "installed" else ""
        rows.append({"name": name, "cli": cli, "state": state, "default": default})
    return rows


def _recipes() -> Rows:
    rows = []
    for name in recipes.recipe_names():
        try:
            recipe = recipes.load(name)
        except recipes.RecipeError as exc:
            problem = visible(f"cannot be used: {exc}")
            rows.append({"name": name, "agent": "", "kits": "", "description": problem})
            continue
        rows.append(
            {
                "name": name,
                "agent": recipe.agent,
                "kits": ", ".join(kit.name for kit in recipe.kits),
                "description": visible(recipe.description),
            }
        )
    for problem in (*recipes.misnamed("recipe"), *recipes.package_problems("recipe")):
        rows.append({"name": "!", "agent": "", "kits": "", "description": visible(problem)})
    return rows


def _kits() -> Rows:
    """Each kit with what to look at before it is used: its marks."""
    rows: Rows = []
    for name in recipes.kit_names():
        try:
            kit = recipes.load_kit(name)
        except recipes.RecipeError as exc:
            rows.append(_unusable_kit(name, f"cannot be used: {exc}"))
            continue
        rows.append(
            {
                "name": name,
                "sha256": kit.sha256,
                "tools": ", ".join(tool.section.name for tool in kit.tools),
                "skills": ", ".join(skill.name for skill in kit.skills),
                "marks": "; ".join(kit.marks),
                "description": visible(kit.description),
            }
        )
    problems = (*recipes.misnamed("kit"), *recipes.package_problems("kit"))
    return rows + [_unusable_kit("!", problem) for problem in problems]


def _unusable_kit(name: str, why: str) -> dict[str, Any]:
    empty = {"sha256": "", "tools": "", "skills": "", "marks": ""}
    return {"name": name, **empty, "description": visible(why)}
