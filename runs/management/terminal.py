"""What every sanduk command shares: one clear line for trouble, the right exit code, its flags."""

from __future__ import annotations

import argparse
import datetime as dt
import io
import json
import sys
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandParser
from django.db import DatabaseError

from runs.engines.base import EngineError
from runs.home import prepare, why_unusable
from runs.leftovers import Removed
from runs.management.action_help import Actions
from runs.models import Run
from runs.printing import lost_output, print_line
from runs.reconcile import reconcile
from runs.refusal import Refusal
from runs.visible import visible

REFUSED = 2
_DJANGO_FLAGS = {"--version", "--settings", "--pythonpath", "--traceback", "--no-color",
                 "--force-color", "--skip-checks", "-v", "--verbosity"}  # fmt: skip


class _Parser(CommandParser):
    def error(self, message: str) -> Any:
        hint = ""
        if message.startswith("unrecognized arguments") and self._takes_task():
            hint = "; quote a task of several words, and put -- before one that begins with -"
        elif message.endswith("expected one argument"):
            hint = "; a value that begins with - goes behind a =, as --flag=-value"
        print_line(f"sanduk: {visible(message)}{hint}; see {self.prog} --help", sys.stderr)
        raise SystemExit(REFUSED)

    def _get_values(self, action: argparse.Action, arg_strings: Any) -> Any:
        """No flag means anything with an empty value, and one that guards must not let pass."""
        if action.option_strings and not all(str(each).strip() for each in arg_strings):
            raise argparse.ArgumentError(action, "its value is empty; leave the flag out instead")
        if action.option_strings and action.nargs is None and "--" in arg_strings:
            # argparse would drop it, and give a list where a word is expected
            raise argparse.ArgumentError(action, "-- is no value")
        return super()._get_values(action, arg_strings)

    def _takes_task(self) -> bool:
        return any(action.dest == "task" for action in self._actions)


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """One form on every Python: `-w, --workdir PATH`."""

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings:
            return super()._format_action_invocation(action)
        flags = ", ".join(action.option_strings)
        if action.nargs == 0:
            return flags
        return f"{flags} {self._format_args(action, action.dest.upper())}"

    def _split_lines(self, text: str, width: int) -> list[str]:
        """Lines that are given stay lines."""
        if "\n" not in text:
            return super()._split_lines(text, width)
        return [part for line in text.split("\n") for part in self._hanging(line, width)]

    def _hanging(self, line: str, width: int) -> list[str]:
        """A word and, in a column of its own, what it means."""
        column = len(line) - len(line.partition("  ")[2].lstrip())
        return textwrap.wrap(line, width, subsequent_indent=" " * column)


class SandukCommand(BaseCommand):
    """Subclass it, add arguments, and return an exit code from `act`.

    `keeps_state` commands find the state directory ready before they act, and, unless they say
    otherwise, lost runs ended.
    """

    requires_system_checks: list[str] = []
    keeps_state = True
    ends_lost_runs = True
    examples: tuple[str, ...] = ()
    actions: Actions | None = None  # what a first word may be that has a page of help of its own

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        words = subcommand.removeprefix("sanduk_") if prog_name == "sanduk" else subcommand
        kwargs.setdefault("allow_abbrev", False)
        kwargs["formatter_class"] = _Formatter
        if self.examples:
            lines = "\n".join(f"  sanduk {example}" for example in self.examples)
            kwargs["epilog"] = f"examples:\n{lines}"
        parser = super().create_parser(prog_name, words, **kwargs)
        parser.__class__ = _Parser
        for action in parser._actions:
            if _DJANGO_FLAGS & set(action.option_strings):
                action.help = argparse.SUPPRESS
        return parser

    def run_from_argv(self, argv: list[str]) -> None:
        parser = self.create_parser(argv[0], argv[1])
        if self.actions and (action := self.actions.asked_about(parser, argv[2:])):
            self.print(self.actions.help_of(action, parser, self.examples).rstrip())
            raise SystemExit(0)
        options = vars(parser.parse_args(argv[2:]))
        options.pop("args", None)
        raise SystemExit(self.guarded(**options))

    def guarded(self, **options: Any) -> int:
        """Act, turning every expected trouble into one line and a code."""
        if isinstance(sys.stdout, io.TextIOWrapper):
            # what an agent wrote must not stop us because a terminal cannot show it
            sys.stdout.reconfigure(errors="backslashreplace")
        try:
            Path.cwd()
        except FileNotFoundError:
            return self.refuse("the current directory is gone; change to one that is there")
        try:
            if self.keeps_state and not (options.get("dry_run") and self.ends_lost_runs):
                prepare()
                if self.ends_lost_runs:
                    self._end_lost_runs()
            return self._told(self.act(**options))
        except (Refusal, EngineError, ImproperlyConfigured) as exc:
            return self.refuse(str(exc))
        except DatabaseError as exc:
            return self.refuse(why_unusable(exc))
        except KeyboardInterrupt:
            self.refuse("stopped with Ctrl-C")
            return 130
        except OSError as exc:
            where = f"{exc.filename}: " if exc.filename else ""
            return self.refuse(f"{where}{exc.strerror or exc}")

    def _told(self, code: int) -> int:
        """The exit code of a command whose output may not have arrived."""
        if why := lost_output():
            self.say(f"the output could not be written: {why}")
            return code or 1
        return code

    def handle(self, *args: Any, **options: Any) -> None:
        code = self.guarded(**options)
        if code:
            raise SystemExit(code)

    def act(self, **options: Any) -> int:
        """Do the work and return the exit code."""
        raise NotImplementedError

    def refuse(self, why: str) -> int:
        print_line(f"sanduk: {visible(why)}", sys.stderr)
        return REFUSED

    def say(self, text: str) -> None:
        print_line(f"sanduk: {visible(text)}", sys.stderr)

    def print(self, text: str = "") -> None:
        """One line on stdout. What is hostile in it must have gone through `visible`."""
        print_line(text, self.out)

    def print_table(self, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Columns under their headings, on a terminal and in a pipe; scripts take --json.

        The cells must have gone through `visible`, or be ours.
        """
        lines = [headings, *rows]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        for line in lines:
            cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
            self.print("  ".join(cells).rstrip())

    def print_json(self, value: Any) -> None:
        print_line(json.dumps(value, indent=2, default=as_text), self.out)

    @property
    def out(self) -> IO[str]:
        return sys.stdout

    def _end_lost_runs(self) -> None:
        done = reconcile()
        for uid in done.ended:
            outcome = Run.objects.get(uid=uid).outcome.replace("_", " ")
            self.say(f"run {uid} had lost its process; it is ended as {outcome}")
        for trouble in done.troubles:
            self.say(trouble)


def as_text(value: Any) -> str:
    """Times as ISO 8601 has them, with a T."""
    return value.isoformat() if isinstance(value, dt.datetime) else str(value)


def add_actions(parser: CommandParser, actions: Mapping[str, str]) -> None:
    """A first word that says what to do, each with its own line in the help."""
    width = max(map(len, actions)) + 2
    told = "\n".join(f"{name:<{width}}{what}" for name, what in actions.items())
    parser.add_argument("action", choices=tuple(actions), metavar="ACTION", help=told)


def add_engine_flags(parser: CommandParser) -> None:
    """`--runtime` and `-q`, on every verb that talks to an engine."""
    parser.add_argument(
        "--runtime",
        metavar="ENGINE",
        default="",
        help="docker, podman, apple or module:Class; default: the first that is installed",
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="say only what went wrong")


def removed_in_words(removed: Removed) -> str:
    told = removed.spoken()
    return f"removed {told}" if told else "nothing was left to remove"


def add_json_flag(parser: CommandParser) -> None:
    parser.add_argument("--json", action="store_true", help="machine-readable output on stdout")
