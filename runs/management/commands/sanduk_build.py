"""`sanduk build`: an agent's image, before a run needs it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

import recipes
from runs import browser, images
from runs.agents import get_agent
from runs.agents.base import AgentRefusal
from runs.console import Terminal
from runs.engines import get_engine
from runs.engines.base import Engine, ImageFacts
from runs.locality import explained
from runs.management.run_flags import add_browser_flags
from runs.management.terminal import SandukCommand, add_engine_flags, add_json_flag
from runs.plan import DEFAULT_AGENT, Image, from_containerfile, from_recipe
from runs.refusal import Refusal


class Command(SandukCommand):
    help = "Build the image of an agent or a recipe, unless it is there."
    examples = (
        "build --agent pi",
        "build -r claude-docs",
        "build --agent codex --kit toolchain",
        "build --agent codex --with-browser",
        "build --agent codex --dry-run",
        "build --agent codex --pull --no-cache",
    )

    def add_arguments(self, parser: CommandParser) -> None:
        add = parser.add_argument
        add("--agent", default="", metavar="NAME", help="the agent (codex, or the recipe's)")
        add("-r", "--recipe", default="", metavar="NAME|PATH", help="the recipe (the agent's own)")
        add(
            "--kit",
            action="append",
            default=[],
            metavar="NAME|PATH",
            help="add a kit to the recipe, whatever its hash is now; repeatable",
        )
        add_browser_flags(parser, "--with-browser", "--browser")
        add("--containerfile", default="", metavar="PATH", help="build this file and its directory")
        add("-i", "--image", default="", metavar="TAG", help="what --containerfile's is called")
        add(
            "--force",
            "--rebuild",
            action="store_true",
            help="build even if it is there, from what the engine kept of earlier builds",
        )
        add("--no-cache", action="store_true", help="build anew, from nothing kept")
        add("--pull", action="store_true", help="build on the newest base image there is")
        add("--dry-run", action="store_true", help="print what would be built")
        add_engine_flags(parser)
        add_json_flag(parser)

    def act(self, **options: Any) -> int:
        try:
            recipe, image = chosen(options)
        except (AgentRefusal, recipes.RecipeError) as exc:
            raise Refusal(str(exc)) from None
        for sentence in image.doubts:
            self.say(sentence)
        if options["dry_run"]:
            return self._describe(recipe, image, as_json=options["json"])
        for kit in image.kits:
            self.say(f"kit {kit}, which nothing pins")
        engine = get_engine(options["runtime"] or settings.SANDUK_RUNTIME or None)
        console = Terminal(quiet=options["quiet"])
        building = build(engine, image, console, options)
        facts = asyncio.run(explained(engine, building))
        if options["json"]:
            told = {"image": facts.tag, "id": facts.id, "size_bytes": facts.size_bytes}
            self.print_json(told)
        else:
            self.print(f"{facts.tag}  {facts.size_bytes // 10**6} MB")
        return 0

    def _describe(self, recipe: recipes.Recipe | None, image: Image, *, as_json: bool) -> int:
        """Without asking an engine: the tag is the one of a base image that is not known yet."""
        context = image.context
        if context is None or recipe is None:
            if image.containerfile is None:
                raise Refusal("there is nothing to build")
            text, files, resolved = image.containerfile.read_text("utf-8", "replace"), [], None
        else:
            text, files = context.containerfile, sorted(context.files)
            resolved = recipes.recipe_as_data(recipe)
            if missing := [context.lacking[arch] for arch in sorted(context.lacking)]:
                self.say(missing[0])
        if as_json:
            told = {"image": image.tag, "recipe": resolved, "context_files": files}
            self.print_json({**told, "containerfile": text})
            return 0
        self.print(f"# image: {image.tag}")
        if resolved is not None:
            self.print(json.dumps(resolved, indent=2))
        for path in files:
            self.print(f"# build context: {path}")
        self.print(text)
        return 0


def chosen(options: dict[str, Any]) -> tuple[recipes.Recipe | None, Image]:
    """What to build; no recipe for a Containerfile of a person's own.

    Raises:
        Refusal: the flags exclude each other, or name nothing to build.
        AgentRefusal, recipes.RecipeError: as `from_recipe` does.
    """
    if options["containerfile"]:
        if options["recipe"] or options["kit"] or options["agent"]:
            raise Refusal("--containerfile excludes --agent, --recipe and --kit")
        browser.refuse_in("--containerfile", wanted=options["browser"])
        return None, from_containerfile(options["containerfile"], options["image"])
    if options["image"]:
        raise Refusal("-i names what --containerfile builds; a recipe's image has its own name")
    agent = options["agent"] or settings.SANDUK_AGENT or DEFAULT_AGENT
    spec = options["recipe"] or get_agent(agent).recipe
    kits = browser.kits(spec, options["kit"], wanted=options["browser"])
    recipe, image = from_recipe(spec, kits)
    if options["agent"] and options["recipe"] and options["agent"] != recipe.agent:
        raise Refusal(
            f"recipe {recipe.name} is for agent {recipe.agent}, not {options['agent']}; "
            "leave --agent out"
        )
    return recipe, image


async def build(
    engine: Engine, image: Image, console: Terminal, options: dict[str, Any]
) -> ImageFacts:
    rebuild = options["force"] or options["no_cache"] or options["pull"]
    return await images.ensure(
        engine,
        image,
        console,
        rebuild=rebuild,
        no_cache=options["no_cache"],
        pull=options["pull"],
    )
