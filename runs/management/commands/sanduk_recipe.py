"""`sanduk recipe`: check a recipe, write a first one, mend one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

import recipes
from recipes import catalog, mending, pins, scaffold
from recipes.json_schema import text_of
from recipes.schema import Architecture
from runs import unknown_agents
from runs.agents.base import AgentRefusal
from runs.management.action_help import Actions
from runs.management.rewriting import rewrite
from runs.management.terminal import SandukCommand
from runs.plan import from_recipe
from runs.refusal import Refusal
from runs.visible import visible

ACTIONS = {
    "check": "read it as a build would, and name everything that is wrong",
    "new": "write a first recipe that passes its own check",
    "fix": "rewrite what is read but not built; shows the difference and asks",
    "schema": "print the format as JSON Schema, for an editor",
}


class Command(SandukCommand):
    help = "Check a recipe, write a first one, or mend one. " + "; ".join(
        f"{name}: {what}" for name, what in ACTIONS.items()
    )
    keeps_state = False
    examples = (
        "recipe new my-claude --inherits claude",
        "recipe check my-claude",
        "recipe fix ./old.json --exact left-pad@1.3.0",
        "recipe schema > recipe.schema.json",
    )
    actions = Actions(
        ACTIONS, only={"target": ["check", "new", "fix"], "json": ["check", "schema"]}
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("action", choices=tuple(ACTIONS))
        parser.add_argument(
            "target", nargs="?", default="", metavar="NAME|PATH", help="the recipe; for new, a name"
        )
        parser.add_argument(
            "--inherits",
            default="claude",
            metavar="NAME|PATH",
            help="new: the recipe it adds to (claude)",
        )
        parser.add_argument(
            "--directory",
            default="",
            metavar="PATH",
            help="new: where to write it (your own recipes: ~/.config/sanduk/recipes)",
        )
        parser.add_argument(
            "--exact",
            action="append",
            default=[],
            metavar="PACKAGE@VERSION",
            dest="versions",
            help="fix: the exact version of a package; repeatable",
        )
        parser.add_argument("--yes", action="store_true", help="fix: write without asking")
        parser.add_argument("--json", action="store_true", help="check: machine-readable output")

    def act(self, **options: Any) -> int:
        if options["json"] and options["action"] not in ("check", "schema"):
            raise Refusal(f"--json goes with check, not with {options['action']}")
        if options["action"] == "schema":
            self.print(text_of("recipe").rstrip())
            return 0
        if not options["target"]:
            raise Refusal(f"recipe {options['action']} needs a NAME or a PATH")
        try:
            if options["action"] == "new":
                return self._new(options["target"], options["inherits"], options["directory"])
            if options["action"] == "fix":
                path = found(options["target"])
                fixed = mending.fix(path, versions_of(options["versions"]))
                return rewrite(self, fixed, yes=options["yes"])
            return self._check(options["target"], as_json=options["json"])
        except (recipes.RecipeError, AgentRefusal) as exc:
            raise Refusal(str(exc)) from None

    def _new(self, name: str, parent: str, directory: str) -> int:
        place = Path(directory).expanduser().absolute() if directory else None
        path = scaffold.new_recipe(name, parent, place)
        spec = name if place is None else str(path)
        self.print(str(path))
        self.say(f"now edit it, then: sanduk recipe check {spec}; sanduk build -r {spec}")
        return 0

    def _check(self, spec: str, *, as_json: bool) -> int:
        recipe = recipes.load(spec)
        problems = [problem.sentence for problem in pins.problems(recipe)]
        image = None if problems else from_recipe(spec)[1]
        warnings = [*unknown_agents.in_recipe(recipe), *lacking_here(pins.lacking(recipe))]
        if as_json:
            told = {"recipe": recipes.recipe_as_data(recipe), "image": image and image.tag}
            self.print_json({**told, "problems": problems, "warnings": warnings})
            return 1 if problems else 0
        for sentence in (*problems, *warnings):
            self.say(sentence)
        if image is None:
            return 1
        self.print(f"{visible(recipe.name)}: agent {recipe.agent}, image {image.tag}")
        for kit in recipe.kits:
            self.print(f"kit {kit.name}@{kit.sha256}")
        return 0


def lacking_here(lacking: Mapping[Architecture, str]) -> list[str]:
    """What there is no download for, and which of it this machine cannot build."""
    here = recipes.host_architecture()
    return [
        f"{text}; this machine is {arch}: it is not built here" if arch == here else text
        for arch, text in lacking.items()
    ]


def found(spec: str) -> Path:
    """The file of a recipe, or of a kit where the path is one. Raises recipes.RecipeError."""
    if catalog.is_path(spec) and spec.rstrip("/").endswith("kit.json"):
        return catalog.find_kit(spec)
    return catalog.find(spec)


def versions_of(texts: list[str]) -> dict[str, str]:
    """`name@1.2.3` and `name==1.2.3` by name. Raises Refusal for anything else."""
    versions = {}
    for text in texts:
        name, _, version = text.partition("==") if "==" in text else text.rpartition("@")
        if not (name and version):
            raise Refusal(f"--exact {text}: give it as PACKAGE@1.2.3 or PACKAGE==1.2.3")
        versions[name] = version
    return versions
