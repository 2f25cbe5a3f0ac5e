"""`sanduk COMMAND ACTION --help`, where all actions of a command share one parser."""

from __future__ import annotations

import argparse
import itertools
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from django.core.management.base import CommandParser


@dataclass(frozen=True, slots=True)
class Actions:
    """Args:
    told: what each action does.
    only: the actions that take an argument, by its name. An argument that is not in it is of the
        actions that its own help begins with (`list: …`), else of all.
    more: examples of actions that the command's own examples leave out.
    """

    told: Mapping[str, str]
    only: Mapping[str, Collection[str]] = field(default_factory=dict)
    more: Sequence[str] = ()

    def asked_about(self, parser: CommandParser, words: Sequence[str]) -> str:
        """The action that help is wanted of; "" for the whole command, or for no help."""
        typed = list(itertools.takewhile(lambda word: word != "--", words))
        if not {"-h", "--help"} & set(typed):
            return ""
        before = _place(parser) + 1
        plain = [word for word in typed if not word.startswith("-")][:before]
        return next((word for word in reversed(plain) if word in self.told), "")

    def help_of(self, action: str, parser: CommandParser, examples: Sequence[str]) -> str:
        """The page of one action."""
        place = _place(parser)
        ahead = [each for each in parser._actions if not each.option_strings][:place]
        names = [each.metavar or each.dest.upper() for each in ahead]
        parser.prog = " ".join([parser.prog, *map(str, names), action])
        parser.description = self.told[action]
        left = [each for each in parser._actions if each not in ahead and self._takes(action, each)]
        parser._actions[:] = left
        for each in left:
            if each.nargs == "?" and each.dest in self.only and not each.option_strings:
                each.nargs = None  # this action cannot do without
        for group in parser._action_groups:
            group._group_actions[:] = [each for each in group._group_actions if each in left]
        for choice in list(parser._mutually_exclusive_groups):
            if not all(each in left for each in choice._group_actions):
                parser._mutually_exclusive_groups.remove(choice)
        fitting = [line for line in (*examples, *self.more) if line.split()[place + 1] == action]
        lines = "\n".join(f"  sanduk {line}" for line in fitting)
        parser.epilog = f"examples:\n{lines}" if lines else None
        return parser.format_help()

    def _takes(self, action: str, argument: argparse.Action) -> bool:
        if argument.dest == "action":
            return False
        if argument.dest in self.only:
            return action in self.only[argument.dest]
        named = re.split(r", | and ", (argument.help or "").partition(":")[0])
        return action in named or not all(name in self.told for name in named)


def _place(parser: CommandParser) -> int:
    """How many other words stand before the action."""
    words = [each.dest for each in parser._actions if not each.option_strings]
    return words.index("action")
