"""`sanduk reject`: no to what an assistant wants to say."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from assistants.management import elsewhere
from assistants.management.deciding import add_decision_flags, decide_each
from assistants.management.elsewhere import HereOrThere
from runs.models import Decision
from runs.site_login import Site


class Command(HereOrThere):
    help = "Reject items of the outbox. It is final: a rejected item never goes anywhere."
    examples = ("reject 17 --reason 'the figures are of last week'",)
    ends_lost_runs = False

    def add_arguments(self, parser: CommandParser) -> None:
        add_decision_flags(parser, Decision.Verdict.REJECT, reason="why; kept, and always needed")
        super().add_arguments(parser)

    def act_here(self, **options: Any) -> int:
        return decide_each(
            self,
            Decision.Verdict.REJECT,
            options["items"],
            expect=options["expect"],
            reason=options["reason"],
            as_json=options["json"],
        )

    def act_there(self, site: Site, **options: Any) -> int:
        return elsewhere.decide(
            self,
            site,
            Decision.Verdict.REJECT,
            options["items"],
            expect=options["expect"],
            reason=options["reason"],
            as_json=options["json"],
        )
