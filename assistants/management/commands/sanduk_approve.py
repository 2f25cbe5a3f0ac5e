"""`sanduk approve`: yes to what an assistant wants to say."""

from __future__ import annotations

from assistants.management.verdict_command import VerdictCommand
from runs.models import Decision


class Command(VerdictCommand):
    help = (
        "Approve items of the outbox, for exactly the text they hold. It is final. With --expect "
        "an item that is not what you read is refused."
    )
    examples = ("approve 17", "approve 17 --expect 3f2a9c0d11e4", "approve 17 18 --reason checked")
    verdict = Decision.Verdict.APPROVE
    reason = "kept; needed where a secret may be in an item"
