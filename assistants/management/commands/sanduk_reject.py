"""`sanduk reject`: no to what an assistant wants to say."""

from __future__ import annotations

from assistants.management.verdict_command import VerdictCommand
from runs.models import Decision


class Command(VerdictCommand):
    help = "Reject items of the outbox. It is final: a rejected item never goes anywhere."
    examples = ("reject 17 --reason 'the figures are of last week'",)
    verdict = Decision.Verdict.REJECT
    reason = "why; kept, and always needed"
