"""`sanduk images`: what was built here, who uses it, and the end of what nothing will use."""

from __future__ import annotations

import asyncio
import datetime as dt
import sys
from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from runs import audit, clock, duration, stock
from runs.engines import get_engine
from runs.engines.base import Engine
from runs.locality import explained
from runs.management.terminal import SandukCommand, add_engine_flags, add_json_flag
from runs.refusal import Refusal
from runs.stock import Stocked
from runs.visible import visible

COLUMNS = ("IMAGE", "RECIPE", "SIZE", "BUILT", "RUNS", "UNUSED SINCE", "STATE")
LONGEST_S = 3650 * 86400


class Command(SandukCommand):
    help = (
        "List the images this installation has built. `prune` removes those that no run will ask "
        "for: superseded by a newer build, without a recipe, or without a tag; with --recipe or "
        "--unused-for it removes what meets all conditions. Never one that a live run uses."
    )
    examples = (
        "images",
        "images prune",
        "images prune --unused-for 30d --yes",
        "images prune --recipe pi",
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("what", nargs="?", choices=("prune",), help="remove, after asking")
        parser.add_argument("--recipe", default="", metavar="NAME", help="only of this recipe")
        parser.add_argument(
            "--unused-for", default="", metavar="DURATION", help="only those unused so long: 30d"
        )
        parser.add_argument("--yes", action="store_true", help="prune without asking")
        add_engine_flags(parser)
        add_json_flag(parser)

    def act(self, **options: Any) -> int:
        if options["yes"] and not options["what"]:
            raise Refusal("--yes means nothing without prune")
        before = _before(options["unused_for"])
        engine = get_engine(options["runtime"] or settings.SANDUK_RUNTIME or None)
        found = stock.stocked(asyncio.run(explained(engine, stock.listed(engine))))
        if options["what"]:
            going = stock.going(found, recipe=options["recipe"], unused_before=before)
            return self._prune(engine, going, options)
        if options["recipe"] or before is not None:
            found = stock.meeting(found, recipe=options["recipe"], unused_before=before)
        if options["json"]:
            self.print_json([_as_json(each) for each in found])
        elif not found:
            self.say("no such images; sanduk build makes one")
        else:
            self._show(found)
        return 0

    def _show(self, found: Sequence[Stocked]) -> None:
        self.print_table(COLUMNS, [_cells(each) for each in found])

    def _prune(self, engine: Engine, going: Sequence[Stocked], options: dict[str, Any]) -> int:
        if not going:
            if options["json"]:
                self.print_json([])
            elif not options["quiet"]:
                self.say("nothing to remove; sanduk images lists what there is")
            return 0
        if not options["yes"] and not self._agreed(going, to_stderr=options["json"]):
            return 0
        told = asyncio.run(stock.remove(engine, going))
        removed = [each for each in going if told[each.name] == "removed"]
        audit.record("images.prune", engine.name, images=[each.name for each in removed])
        if options["json"]:
            self.print_json([{**_as_json(each), "became": told[each.name]} for each in going])
            return 0
        for each in going:
            if told[each.name] != "removed":
                self.say(f"{each.name} stays: {told[each.name]}")
        if not options["quiet"]:
            size = _megabytes(sum(each.size_bytes for each in removed))
            self.say(f"{len(removed)} image(s) removed, {size} with what they share")
        return 0

    def _agreed(self, going: Sequence[Stocked], *, to_stderr: bool) -> bool:
        if to_stderr:
            raise Refusal("prune --json asks nobody: give --yes")
        self._show(going)
        print(f"Remove these {len(going)} image(s)? [y/N] ", end="", file=sys.stderr, flush=True)
        answer = sys.stdin.readline()
        if not answer:
            raise Refusal("nobody answered; --yes removes without asking")
        if answer.strip().lower() in ("y", "yes"):
            return True
        self.say("they stay as they are")
        return False


def _before(text: str) -> dt.datetime | None:
    if not text:
        return None
    unused_s = duration.seconds(text, what="--unused-for", longest_s=LONGEST_S)
    return clock.now() - dt.timedelta(seconds=unused_s)


def _cells(image: Stocked) -> tuple[str, ...]:
    since = "in use" if image.is_live else _day(image.unused_since)
    last = f"{len(image.runs)}, last {image.runs[0]}" if image.runs else "-"
    return (
        visible(image.tag or image.id.removeprefix("sha256:")[:12], limit=60),
        visible(image.recipe or "-", limit=30),
        _megabytes(image.size_bytes),
        _day(image.built_at),
        last,
        since,
        image.standing,
    )


def _day(moment: dt.datetime | None) -> str:
    return f"{moment:%Y-%m-%d %H:%M}" if moment else "unknown"


def _megabytes(size: int) -> str:
    return f"{max(size // 10**6, 1)} MB" if size else "0 MB"


def _as_json(image: Stocked) -> dict[str, Any]:
    return {
        "image": image.tag,
        "id": image.id,
        "recipe": image.recipe,
        "state": image.standing,
        "size_bytes": image.size_bytes,
        "built_at": image.built_at.isoformat() if image.built_at else None,
        "runs": list(image.runs),
        "in_use": image.is_live,
        "unused_since": image.unused_since.isoformat() if image.unused_since else None,
    }
