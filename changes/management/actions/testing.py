"""`change test`: the operator's tests on exactly what came back."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from changes import testing
from changes.management import as_data, telling
from changes.management.acting import ChangeCommand, add_change, here
from changes.models import TestRun
from changes.named import one_change
from runs.management.terminal import REFUSED, add_json_flag

_CODES = {TestRun.Outcome.PASSED: 0, TestRun.Outcome.FAILED: 1, TestRun.Outcome.TIMED_OUT: 124,
          TestRun.Outcome.NOT_RUN: REFUSED}  # fmt: skip


class Test(ChangeCommand):
    __test__ = False  # pytest would collect it by its name

    help = (
        "Run the tests on base and patch in a fresh box without a network. Nothing of the agent's "
        "clone is there, and what runs is what you or the repository's rules on this host say, "
        "never the branch. A green counts for exactly this content and this command."
    )
    examples = ("change test 3f2a9c", 'change test 3f2a9c --test-cmd "make check" --json')

    def add_arguments(self, parser: CommandParser) -> None:
        add_change(parser)
        parser.add_argument(
            "--test-cmd", default="", metavar="COMMAND", help="for /bin/sh, instead of the rules'"
        )
        parser.add_argument("-q", "--quiet", action="store_true", help="say only how it ended")
        add_json_flag(parser)

    def act(self, **options: Any) -> int:
        change = one_change(options["change"])
        tell = testing.quiet if options["quiet"] else self.say
        done = testing.test(change.uid, here(), command=options["test_cmd"], tell=tell)
        if options["json"]:
            self.print_json(as_data.tested(done))
        else:
            for line in telling.tests(done, whole=not options["quiet"]):
                self.print(line)
        return _CODES[TestRun.Outcome(done.outcome)]
