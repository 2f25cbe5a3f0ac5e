"""`args`: further flags of `sanduk run`, judged when an assistant is added, not when it wakes."""

from __future__ import annotations

import argparse
import contextlib
import io
from collections.abc import Sequence
from typing import Any

from runs import duration
from runs.management.commands.sanduk_run import Command as RunCommand
from runs.refusal import Refusal

# the flags that a key stands for
_KEYS = ("agent", "recipe", "provider", "model", "runtime", "mode", "timeout", "idle_timeout",
         "budget")  # fmt: skip
_NOT_HERE = {
    "task": "the task is the brief and the messages",
    "task_file": "the task is the brief and the messages",
    "workdir": "its workspace is the directory's own",
    "report": "reports are kept in reports/",
    "stats_file": "its figures are in sanduk show and sanduk runs --json",
    "detach": "the worker waits for it",
    "dry_run": "nothing would ever run",
    "json": "nobody reads its output",
    "quiet": "nobody reads its output",
    "keep": "containers would pile up",
}


def settled(
    args: Sequence[str], given: set[str]
) -> tuple[dict[str, Any], tuple[str, ...], list[str]]:
    """The fields of Config that some of them mean, the others, and notes.

    What a key can say becomes that key, so that the settings show what is going to happen.

    Args:
        given: the keys that the file sets.

    Raises:
        Refusal: `sanduk run` would not take them, or they say what a key says, too.
    """
    if not args:
        return {}, (), []
    parser = RunCommand().create_parser("sanduk", "sanduk_run")
    found = _parsed(parser, args)
    for name, why in _NOT_HERE.items():
        if name in found:
            raise Refusal(f"{_flag(parser, name)} means nothing here: {why}")
    named = [name for name in (*_KEYS, "proxy") if name in found]
    for name in named:
        key = "mode" if name == "proxy" else name
        if key in given or (key == "mode" and "proxy" in given):
            raise Refusal(f"{_flag(parser, name)} contradicts the key {key}; say it once")
    fields = dict(_field(name, found[name]) for name in named)
    notes = [f"{_flag(parser, name)} in args is read as its key" for name in named]
    return fields, tuple(_without(parser, named, args)), notes


def _field(name: str, value: Any) -> tuple[str, Any]:
    match name:
        case "proxy":
            return "mode", "sealed"
        case "budget":
            return "budget_usd", value
        case "idle_timeout" if value == "off":
            return "idle_timeout_s", None
        case "timeout" | "idle_timeout":
            flag = f"--{name.replace('_', '-')}"
            return f"{name}_s", duration.seconds(value, what=flag)
    return name, value


def _parsed(parser: argparse.ArgumentParser, args: Sequence[str]) -> dict[str, Any]:
    """The flags that were given, by destination: what a bare call has is left out."""
    said = io.StringIO()
    for action in parser._actions:
        if not isinstance(action, argparse._AppendAction | argparse._HelpAction):
            action.default = argparse.SUPPRESS
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            found = vars(parser.parse_args(list(args)))
    except SystemExit:
        why = said.getvalue().strip().removeprefix("sanduk: ").partition("\n")[0]
        raise Refusal(why.replace("; see sanduk run --help", "") or "--help runs nothing") from None
    except argparse.ArgumentError as exc:
        raise Refusal(str(exc)) from None
    return found


def _flag(parser: argparse.ArgumentParser, name: str) -> str:
    for action in parser._actions:
        if action.dest == name:
            return action.option_strings[-1] if action.option_strings else "a task"
    return name


def _without(
    parser: argparse.ArgumentParser, names: Sequence[str], args: Sequence[str]
) -> list[str]:
    """The words that are none of these flags, nor a value of one."""
    flags = {
        text: action.nargs != 0
        for action in parser._actions
        if action.dest in names
        for text in action.option_strings
    }
    kept: list[str] = []
    words = iter(args)
    for word in words:
        if word in flags:
            if flags[word]:
                next(words, None)
        elif word.partition("=")[0] not in flags and (word[:2] == "--" or word[:2] not in flags):
            kept.append(word)
    return kept
