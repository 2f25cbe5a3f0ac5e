"""What every action of `sanduk change` and `sanduk skills` shares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core.management.base import CommandParser

from changes.git import GitError
from runs import audit
from runs.management.terminal import SandukCommand, add_json_flag
from runs.models.people import user_of
from runs.verdicts import Person
from runs.visible import visible


class ChangeCommand(SandukCommand):
    """One action. Whatever git could not do is one line, too."""

    def guarded(self, **options: Any) -> int:
        try:
            return super().guarded(**options)
        except GitError as exc:
            return self.refuse(f"git: {exc}")

    def print_cells(self, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """A table whose cells were written by anybody."""
        self.print_table(headings, [[visible(cell) for cell in row] for row in rows])


def add_change(parser: CommandParser) -> None:
    parser.add_argument("change", metavar="ID", help="its id, or the first letters of it")


def add_repository(parser: CommandParser, *, needed: bool = False, what: str = "") -> None:
    parser.add_argument(
        "--repo",
        required=needed,
        default="",
        metavar="PATH",
        help=what or "only of this repository: its path, or its id",
    )


def add_decision_flags(parser: CommandParser, *, reason: str) -> None:
    parser.add_argument(
        "--expect", metavar="SHA", help="refuse unless what is decided on has this digest"
    )
    parser.add_argument("--reason", default="", metavar="TEXT", help=reason)
    add_json_flag(parser)


def here() -> Person:
    """Whoever sits at this terminal."""
    account = audit.account()
    return Person(user=user_of(account), account=account)
