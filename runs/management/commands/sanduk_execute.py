"""`sanduk execute`: what `run --detach` starts; it reads an order on standard input."""

from __future__ import annotations

import sys
from typing import Any

import msgspec
from django.core.management.base import CommandParser

from runs.console import Terminal
from runs.lifecycle import execute, exit_code, start_here
from runs.management.terminal import SandukCommand
from runs.order import Order
from runs.plan import make_plan
from runs.refusal import Refusal


class Command(SandukCommand):
    help = "Execute an order given on standard input (used by run --detach)."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("uid", help="the id the run gets")

    def act(self, **options: Any) -> int:
        order = msgspec.json.decode(sys.stdin.buffer.read(), type=Order)
        try:
            plan = make_plan(order)
            run = start_here(plan, uid=options["uid"])
        except Refusal as exc:
            print(exc, flush=True)
            return 2
        print(run.uid, flush=True)
        # whoever waited for that line has gone on; nothing else is ever said on this pipe
        sys.stdout.close()
        return exit_code(execute(run, plan, Terminal(trace_to_stderr=True)))
