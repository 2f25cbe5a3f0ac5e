"""`change accept` and `change reject`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from changes import deciding, gate, landing, pull_requests, rules
from changes.gate import Accepting
from changes.management import as_data, telling
from changes.management.acting import ChangeCommand, add_change, add_decision_flags, here
from changes.models import Change
from changes.named import one_change
from runs.models import Decision
from runs.refusal import Refusal
from runs.verdicts import approvers
from runs.visible import visible


class Accept(ChangeCommand):
    help = (
        "Accept a change, for exactly what it holds: its tests are run where no green of them is "
        "there, and a fresh branch is made with one commit. Nothing is checked out, your work "
        "tree and your index stay as they are. It is final. With --expect a change that is not "
        "what you read is refused. Stopped in the middle, the same command finishes it. With --as "
        "draft-pr the branch is pushed to GitHub as well, and a draft pull request made of it."
    )
    examples = (
        "change accept 3f2a9c --expect 9d0c21e4b7aa",
        "change accept 3f2a9c --branch faster-parser",
        'change accept 3f2a9c --no-test --reason "the tests need a printer"',
        "change accept 3f2a9c --as draft-pr --into develop",
    )
    ends_lost_runs = False

    def add_arguments(self, parser: CommandParser) -> None:
        add_change(parser)
        parser.add_argument(
            "--no-test", action="store_true", help="without the tests; it needs a --reason"
        )
        parser.add_argument(
            "--branch", default="", metavar="NAME", help="the branch to make (sanduk/ID)"
        )
        parser.add_argument(
            "--no-sign", action="store_true", help="do not sign, though your git signs commits"
        )
        parser.add_argument(
            "--as",
            dest="form",
            choices=("branch", "draft-pr"),
            default="branch",
            help="a branch here (the default), or that and a draft pull request on GitHub, with "
            "the token GITHUB_TOKEN",
        )
        parser.add_argument(
            "--into",
            default="",
            metavar="BRANCH",
            help="with --as draft-pr: the branch it is proposed for (the one it began from)",
        )
        add_decision_flags(
            parser, reason="kept; needed where a secret may be in it, or not all could be checked"
        )

    def act(self, **options: Any) -> int:
        change = one_change(options["change"])
        if options["into"] and options["form"] != "draft-pr":
            raise Refusal("--into means something with --as draft-pr only")
        repository = Path(change.repository.path)
        words = Accepting(
            committer=_committer(change, repository),
            expect=options["expect"],
            reason=options["reason"],
            no_test=options["no_test"],
            branch=options["branch"],
            sign=not options["no_sign"] and landing.signs(repository),
            draft_pr=options["form"] == "draft-pr",
            into=options["into"],
        )
        done = deciding.accept(change.uid, here(), words, self.say)
        trouble = deciding.proposed(done)
        is_late = words.draft_pr and done.state == Change.State.ACCEPTED
        if is_late and pull_requests.of(done) is None:
            trouble = "it was decided without one before"
        if options["json"]:
            self.print_json({**as_data.change(done), "missing": missing(done)})
        elif done.state == Change.State.REVIEW:
            self.print(f"{done}: your yes counts; {missing(done)} more needed")
        else:
            self.print(f"{done} is {done.state}")
            self.print(f"branch  {visible(as_data.branch(done))}")
            self.print(f"commit  {done.landed_commit}")
            for line in telling.proposal(done):
                self.print(f"draft   {line}")
            self.print("next")
            for line in telling.after_landing(done):
                self.print(f"  {line}")
        if trouble:
            self.say(f"{done} is accepted, and its pull request is not made: {trouble}")
        return 1 if trouble else 0


class Reject(ChangeCommand):
    help = "Reject a change. It is final: it never lands. What came back is kept for a while."
    examples = ('change reject 3f2a9c --reason "it deletes the tests"',)
    ends_lost_runs = False

    def add_arguments(self, parser: CommandParser) -> None:
        add_change(parser)
        add_decision_flags(parser, reason="why; kept, and always needed")

    def act(self, **options: Any) -> int:
        change = one_change(options["change"])
        standing = gate.reject(
            change.uid, here(), expect=options["expect"], reason=options["reason"]
        )
        if options["json"]:
            self.print_json(as_data.change(standing.change))
        else:
            self.print(f"{standing.change} is {standing.change.state}")
        return 0


def missing(change: Change) -> int:
    """How many more people have to accept it; 0 when it is decided."""
    if change.state != Change.State.REVIEW or change.attempt is None:
        return 0
    needed = gate.policy_of(change.attempt, rules.of(change.repository.uid)).approvals
    found = Decision.objects.filter(subject=gate.subject_of(change)).select_related("actor")
    return max(needed - len(approvers(found, change.attempt.digest)), 1)


def _committer(change: Change, repository: Path) -> tuple[str, str]:
    """Whose commit it becomes, as their own git would have it."""
    if change.landing:
        return (change.landing["committer"][0], change.landing["committer"][1])
    if (found := landing.identity(repository)) is not None:
        return found
    raise Refusal(
        "your git has no name to commit with: git config --global user.name NAME, and the same "
        "with user.email"
    )
