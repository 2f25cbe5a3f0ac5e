"""`sanduk system`: whether everything runs needs is there; start and stop an engine's service."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from runs import condition
from runs.condition import EngineCondition
from runs.engines import get_engine
from runs.management.terminal import SandukCommand, add_engine_flags, add_json_flag
from runs.models import Run
from runs.refusal import Refusal
from runs.visible import visible
from sanduk_site import __version__


class Command(SandukCommand):
    help = (
        "Say how this installation and its engines are: exit code 1 when runs cannot work. start "
        "and stop do so with an engine's own service, where it has one (apple); of any other "
        "they say which command does."
    )
    examples = ("system status", "system status --json", "system start --runtime apple")
    ends_lost_runs = False

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("what", choices=("status", "start", "stop"))
        add_engine_flags(parser)
        add_json_flag(parser)

    def act(self, **options: Any) -> int:
        chosen = options["runtime"] or settings.SANDUK_RUNTIME
        if options["what"] == "status":
            return self._status(chosen, as_json=options["json"])
        if options["json"]:
            raise Refusal("--json goes with status")
        engine = get_engine(chosen or None)
        if options["what"] == "start":
            asyncio.run(engine.start_service())
            if not options["quiet"]:
                self.say(f"{engine.name} is up")
            return 0
        live = Run.objects.live().filter(engine=engine.name).count()
        if live:
            raise Refusal(f"{live} live run(s) need it; end them with sanduk clean --all")
        asyncio.run(engine.stop_service())
        if not options["quiet"]:
            self.say(f"{engine.name} is stopped, for everybody on this machine")
        return 0

    def _status(self, chosen: str, *, as_json: bool) -> int:
        engines, here = condition.of_engines(chosen), condition.of_installation()
        works = not engines[0].trouble and here["free_mb"] >= here["needed_mb"]
        if as_json:
            told = {"version": __version__, "works": works, **here}
            self.print_json({**told, "engines": [condition.as_data(each) for each in engines]})
        else:
            self._show(engines, here)
        return 0 if works else 1

    def _show(self, engines: Sequence[EngineCondition], here: dict[str, Any]) -> None:
        runs, site = here["runs"], here["site"]
        short = "" if here["free_mb"] >= here["needed_mb"] else f" (needed: {here['needed_mb']} MB)"
        listens = "something listens there" if site["listens"] else "nothing listens there"
        lines = [
            ("sanduk", f"{__version__}, Python {here['python']}, {here['database']}"),
            ("home", f"{here['home']}, {here['free_mb']:,} MB free{short}"),
            *((each.name, _engine_words(each)) for each in engines),
            (
                "runs",
                f"{runs['recorded']} recorded, {runs['live']} live, {runs['queued']} queued",
            ),
            ("backup", _backup_words(here["backup"])),
            ("site", f"{site['url']}: {listens}"),
        ]
        for name, words in lines:
            self.print(f"{name + ':':<9} {visible(words)}")


def _backup_words(backup: dict[str, Any]) -> str:
    made = backup["made_at"]
    told = f"the last {made:%Y-%m-%d %H:%M} UTC" if made else "never made"
    return f"{told}; sanduk backup DIR" if backup["trouble"] or not made else told


def _engine_words(engine: EngineCondition) -> str:
    if engine.trouble:
        return f"cannot be used: {engine.trouble}"
    parts = [f"{engine.version} on {engine.operating_system}"]
    parts += ["the one runs use"] if engine.is_default else []
    parts += ["rootless"] if engine.rootless else []
    if engine.missing_limits:
        parts.append(f"cannot limit {', '.join(engine.missing_limits)}")
    parts.append(f"{engine.containers} container(s)")
    if engine.images is not None and engine.images_bytes is not None:
        parts.append(f"{engine.images} image(s) of {engine.images_bytes // 10**6:,} MB")
    return ", ".join(parts)
