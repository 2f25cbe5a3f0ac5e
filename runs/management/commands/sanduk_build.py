"""`sanduk build`: an agent's image, before a run needs it."""

from __future__ import annotations

import asyncio
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

import recipes
from runs import images
from runs.agents import get_agent
from runs.agents.base import AgentRefusal
from runs.console import Terminal
from runs.engines import get_engine
from runs.locality import explained
from runs.management.terminal import SandukCommand, add_engine_flags, add_json_flag
from runs.plan import DEFAULT_AGENT, from_recipe
from runs.refusal import Refusal


class Command(SandukCommand):
    help = "Build the image of an agent or a recipe, unless it is there."
    examples = ("build --agent pi", "build -r link", "build --agent codex --dry-run")

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--agent", default="", metavar="NAME", help="the agent (codex)")
        parser.add_argument("-r", "--recipe", default="", metavar="NAME|PATH")
        parser.add_argument("--force", action="store_true", help="build even if it is there")
        parser.add_argument("--dry-run", action="store_true", help="print what would be built")
        add_engine_flags(parser)
        add_json_flag(parser)

    def act(self, **options: Any) -> int:
        if options["agent"] and options["recipe"]:
            raise Refusal("--agent and --recipe exclude each other")
        try:
            spec = options["recipe"] or get_agent(options["agent"] or DEFAULT_AGENT).recipe
            _, image = from_recipe(spec)
        except (AgentRefusal, recipes.RecipeError) as exc:
            raise Refusal(str(exc)) from None
        if options["dry_run"] and image.context is not None:
            if options["json"]:
                files = sorted(image.context.files)
                told = {"image": image.tag, "context_files": files}
                self.print_json({**told, "containerfile": image.context.containerfile})
                return 0
            self.print(f"# image: {image.tag}")
            for path in sorted(image.context.files):
                self.print(f"# build context: {path}")
            self.print(image.context.containerfile)
            return 0
        engine = get_engine(options["runtime"] or settings.SANDUK_RUNTIME or None)
        console = Terminal(quiet=options["quiet"])
        building = images.ensure(engine, image, console, rebuild=options["force"], pull=False)
        facts = asyncio.run(explained(engine, building))
        if options["json"]:
            self.print_json({"image": image.tag, "id": facts.id, "size_bytes": facts.size_bytes})
        else:
            self.print(f"{image.tag}  {facts.size_bytes // 10**6} MB")
        return 0
