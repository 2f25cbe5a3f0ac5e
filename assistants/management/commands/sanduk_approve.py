"""`sanduk approve`: yes to what an assistant wants to say."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from assistants.management import elsewhere
from assistants.management.deciding import add_decision_flags, decide_each
from assistants.management.elsewhere import HereOrThere
from runs.models import Decision
from runs.site_login import Site


class Command(HereOrThere):
    help = (
        "Approve items of the outbox, for exactly the text they hold. It is final. With --expect "
        "an item that is not what you read is refused."
    )
    examples = ("approve 17", "approve 17 --expect 3f2a9c0d11e4", "approve 17 18 --reason checked")
    ends_lost_runs = False

    def add_arguments(self, parser: CommandParser) -> None:
        add_decision_flags(
            parser, Decision.Verdict.APPROVE, reason="kept; needed where a secret may be in an item"
        )
        super().add_arguments(parser)

    def act_here(self, **options: Any) -> int:
        return decide_each(
            self,
            Decision.Verdict.APPROVE,
            options["items"],
            expect=options["expect"],
            reason=options["reason"],
            as_json=options["json"],
        )

    def act_there(self, site: Site, **options: Any) -> int:
        return elsewhere.decide(
            self,
            site,
            Decision.Verdict.APPROVE,
            options["items"],
            expect=options["expect"],
            reason=options["reason"],
            as_json=options["json"],
        )
