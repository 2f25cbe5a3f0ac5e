"""`sanduk approve` and `sanduk reject`, which differ in what is said alone."""

from __future__ import annotations

from typing import Any, ClassVar

from django.core.management.base import CommandParser

from assistants.management import elsewhere
from assistants.management.deciding import add_decision_flags, decide_each
from assistants.management.elsewhere import HereOrThere
from runs.models import Decision
from runs.site_login import Site


class VerdictCommand(HereOrThere):
    """Subclass it with the verdict, and with the help of `--reason`."""

    verdict: ClassVar[Decision.Verdict]
    reason: ClassVar[str]
    ends_lost_runs = False

    def add_arguments(self, parser: CommandParser) -> None:
        add_decision_flags(parser, self.verdict, reason=self.reason)
        super().add_arguments(parser)

    def act_here(self, **options: Any) -> int:
        return decide_each(self, self.verdict, options["items"], **_said(options))

    def act_there(self, site: Site, **options: Any) -> int:
        return elsewhere.decide(self, site, self.verdict, options["items"], **_said(options))


def _said(options: dict[str, Any]) -> dict[str, Any]:
    return {
        "expect": options["expect"], "reason": options["reason"], "as_json": options["json"],
    }  # fmt: skip
