"""`sanduk ps`: the containers of this installation, as the engine lists them."""

from __future__ import annotations

import asyncio
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from runs import purposes
from runs.engines import get_engine
from runs.engines.base import LABEL_INSTALL, LABEL_ROLE, LABEL_RUN
from runs.installation import install_id
from runs.management.terminal import SandukCommand, add_engine_flags, add_json_flag
from runs.models import Run
from runs.visible import visible

# heading and key of each column
COLUMNS = {
    "CONTAINER": "container",
    "ROLE": "role",
    "RUN": "run",
    "RUN STATE": "run_state",
    "FOR": "purpose",
    "STATUS": "status",
    "IMAGE": "image",
}


class Command(SandukCommand):
    help = "List the containers of this installation, kept ones included."
    examples = ("ps", "ps --json")

    def add_arguments(self, parser: CommandParser) -> None:
        add_engine_flags(parser)
        add_json_flag(parser)

    def act(self, **options: Any) -> int:
        engine = get_engine(options["runtime"] or settings.SANDUK_RUNTIME or None)
        found = asyncio.run(engine.containers({LABEL_INSTALL: install_id()}))
        states = dict(Run.objects.values_list("uid", "state"))
        kept = set(Run.objects.exclude(kept_container="").values_list("uid", flat=True))
        uids = {row.labels.get(LABEL_RUN, "") for row in found} - {""}
        purpose = purposes.of(uids)
        rows = []
        for row in found:
            uid = row.labels.get(LABEL_RUN, "")
            run = "kept" if uid in kept else states.get(uid, "unknown")
            rows.append(
                {
                    "container": row.id[:12],
                    "role": row.labels.get(LABEL_ROLE, ""),
                    "run": uid,
                    "run_state": run,
                    "purpose": purpose.get(uid, ""),
                    "image": row.image,
                    "status": row.status,
                }
            )
        if options["json"]:
            self.print_json(rows)
            return 0
        if not rows:
            self.say("no containers of this installation")
        else:
            cells = [tuple(visible(each[name]) for name in COLUMNS.values()) for each in rows]
            self.print_table(tuple(COLUMNS), cells)
        return 0
