"""`sanduk up`: the whole site in one process that keeps its parts alive."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

from django.core.management.base import CommandParser

from assistants.worker import Worker, the_only_one
from runs.management.terminal import SandukCommand
from runs.refusal import Refusal
from sanduk_site import exposure, first_admin, links, supervisor, whereabouts


class Command(SandukCommand):
    help = (
        "Run the site and its worker until SIGTERM or Ctrl-C: make what is missing, print the "
        "address, start again what dies. On this machine alone, unless --host says otherwise."
    )
    examples = (
        "up",
        "up --port 8080",
        "up --host 0.0.0.0      # with SANDUK_BASE_URL=http://box.lan:8000",
    )
    ends_lost_runs = False  # the worker's first look does that

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", metavar="ADDRESS", help="(127.0.0.1)")
        parser.add_argument("--port", type=int, default=8000, help="(8000); 0: any free one")
        parser.add_argument(
            "--no-worker", action="store_true", help="the site alone; sanduk worker runs elsewhere"
        )

    def act(self, **options: Any) -> int:
        host, port = options["host"], options["port"]
        exposure.judge(host, port)
        with contextlib.ExitStack() as held:
            held.enter_context(whereabouts.the_only_site())
            if not options["no_worker"]:
                held.enter_context(the_only_one())
            listening = held.enter_context(contextlib.closing(supervisor.bound(host, port)))
            judged = exposure.judge(host, listening.getsockname()[1])
            whereabouts.write_down(judged.url)
            for warning in judged.warnings:
                self.say(f"warning: {warning}")
            token = first_admin.ensure()
            # for what is started from here: links in messages lead to this port
            os.environ["SANDUK_BASE_URL"] = judged.url
            site = held.enter_context(_running(supervisor.SiteProcess(listening, self.say)))
            if not site.answers():
                raise Refusal("the site did not start; what it said stands above")
            if token:
                link = links.address_of(token, judged.url)
                self.say(f"no administrator yet; this link makes one, once, for 24 hours: {link}")
            up = f"the site is at {judged.url}; SIGTERM or Ctrl-C stops it"
            if options["no_worker"]:
                return supervisor.live_alone(site, self.say, up)
            return Worker(self.say, beside=site).live(up)


@contextlib.contextmanager
def _running(site: supervisor.SiteProcess) -> Iterator[supervisor.SiteProcess]:
    try:
        yield site
    finally:
        site.stop()
        site.end()
