"""`sanduk kit`: check a kit, write a first one, renew pins."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

import recipes
from recipes import catalog, mending, pins, scaffold
from recipes.json_schema import text_of
from recipes.placed import mending as mending_words
from runs import unknown_agents
from runs.management.action_help import Actions
from runs.management.commands.sanduk_recipe import lacking_here
from runs.management.rewriting import rewrite
from runs.management.terminal import SandukCommand
from runs.refusal import Refusal
from runs.visible import visible

ACTIONS = {
    "check": "read it as a build would, and print the pin a recipe needs",
    "new": "write a first kit that passes its own check",
    "pin": "renew the pins of a recipe, or the hashes in a kit; shows the difference and asks",
    "schema": "print the format as JSON Schema, for an editor",
}


class Command(SandukCommand):
    help = "Check a kit, write a first one, or renew pins. " + "; ".join(
        f"{name}: {what}" for name, what in ACTIONS.items()
    )
    keeps_state = False
    examples = (
        "kit new lint-tools",
        "kit check lint-tools",
        "kit pin my-claude",
        "kit pin ./kits/lint-tools/kit.json --yes",
        "kit schema > kit.schema.json",
    )
    actions = Actions(
        ACTIONS, only={"target": ["check", "new", "pin"], "json": ["check", "schema"]}
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("action", choices=tuple(ACTIONS))
        parser.add_argument(
            "target",
            nargs="?",
            default="",
            metavar="NAME|PATH",
            help="the kit; for pin, the recipe whose pins are renewed, or a kit.json",
        )
        parser.add_argument(
            "--directory",
            default="",
            metavar="PATH",
            help="new: where to make its directory (your own kits: ~/.config/sanduk/kits)",
        )
        parser.add_argument("--yes", action="store_true", help="pin: write without asking")
        parser.add_argument("--json", action="store_true", help="check: machine-readable output")

    def act(self, **options: Any) -> int:
        if options["json"] and options["action"] not in ("check", "schema"):
            raise Refusal(f"--json goes with check, not with {options['action']}")
        if options["action"] == "schema":
            self.print(text_of("kit").rstrip())
            return 0
        if not options["target"]:
            raise Refusal(f"kit {options['action']} needs a NAME or a PATH")
        try:
            if options["action"] == "new":
                return self._new(options["target"], options["directory"])
            if options["action"] == "pin":
                return rewrite(self, mending.pin(pinnable(options["target"])), yes=options["yes"])
            return self._check(options["target"], as_json=options["json"])
        except recipes.RecipeError as exc:
            raise Refusal(str(exc)) from None

    def _new(self, name: str, directory: str) -> int:
        place = Path(directory).expanduser().absolute() if directory else None
        path = scaffold.new_kit(name, place)
        spec = name if place is None else str(path.parent)
        self.print(str(path))
        self.say(
            f"now edit it, then: sanduk {mending_words('kit pin', path)}; sanduk kit check {spec}"
        )
        return 0

    def _check(self, spec: str, *, as_json: bool) -> int:
        kit = recipes.load_kit(spec)
        problems = [each.sentence for each in pins.kit_problems(kit, Path(kit.path))]
        warnings = [*unknown_agents.in_kit(kit), *lacking_here(pins.lacking_of(kit.tools))]
        key = "path" if catalog.is_path(spec) else "name"
        pin = {key: str(Path(kit.path).parent) if key == "path" else kit.name, "sha256": kit.sha256}
        if as_json:
            told = {"kit": recipes.kit_as_data(kit), "pin": pin}
            self.print_json({**told, "problems": problems, "warnings": warnings})
            return 1 if problems else 0
        for sentence in (*problems, *warnings):
            self.say(sentence)
        if problems:
            return 1
        marks = f"  ({'; '.join(kit.marks)})" if kit.marks else ""
        self.print(f"{visible(kit.name)}@{kit.sha256}{visible(marks)}")
        self.say(f"a recipe names it by: {json.dumps(pin)}")
        return 0


def pinnable(spec: str) -> Path:
    """The recipe or kit.json that a spec means. Raises recipes.RecipeError."""
    path = Path(spec).expanduser()
    if catalog.is_path(spec) and (path.name == "kit.json" or (path / "kit.json").is_file()):
        return catalog.find_kit(spec)
    return catalog.find(spec)
