"""`sanduk web`: the process that answers browsers, as `sanduk up` starts it."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from runs.management.terminal import SandukCommand


class Command(SandukCommand):
    help = "Answer browsers on a socket that is open already (used by up)."
    ends_lost_runs = False

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("descriptor", type=int)
        parser.add_argument("parent", type=int, help="the process it ends with")

    def act(self, **options: Any) -> int:
        from sanduk_site import web

        return web.serve(options["descriptor"], options["parent"])
