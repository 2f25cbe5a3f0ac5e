"""`args`: further flags of `sanduk run`, judged when an assistant is added, not when it wakes."""

from __future__ import annotations

import argparse
import contextlib
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from recipes.catalog import is_path
from runs import duration, mounts
from runs.management.commands.sanduk_run import Command as RunCommand
from runs.paths import expanded
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


def path_from(directory: Path, text: str, *, what: str) -> str:
    """A path of an assistant's file: absolute, from its directory, wherever a process runs.

    Raises Refusal for a home that is not there.
    """
    return str((directory / expanded(text, what=what)).absolute())


def mount_from(directory: Path, text: str) -> str:
    """The same for the source of a mount. Raises Refusal when it is not of a mount's form."""
    absolute = mounts.absolute(text)
    return absolute if text.startswith(("/", "~")) else str(directory / text)


def _kit_from(directory: Path, text: str) -> str:
    return path_from(directory, text, what="--kit") if is_path(text) else text


_PATHS: dict[str, Callable[[Path, str], str]] = {
    "--mount": mount_from,
    "--kit": _kit_from,
    "--containerfile": lambda home, text: path_from(home, text, what="--containerfile"),
    "--log-dir": lambda home, text: path_from(home, text, what="--log-dir"),
}


def _rooted(args: Sequence[str], directory: Path) -> list[str]:
    """The words with each path in them made absolute."""
    rooted: list[str] = []
    words = iter(args)
    for word in words:
        flag, equals, value = word.partition("=")
        if flag not in _PATHS:
            rooted.append(word)
        elif equals:
            rooted.append(f"{flag}={_PATHS[flag](directory, value)}")
        else:
            rooted += [flag, _PATHS[flag](directory, next(words))]
    return rooted


def settled(
    args: Sequence[str], given: set[str], directory: Path
) -> tuple[dict[str, Any], tuple[str, ...], list[str]]:
    """The fields of Config that some of them mean, the others, and notes.

    What a key can say becomes that key, so that the settings show what is going to happen.

    Args:
        given: the keys that the file sets.
        directory: the assistant's, from which paths among them start.

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
    notes += [
        f"--env {name} in args: at each wakeup, what counts is the worker's own {name}"
        for name in found.get("env", [])
        if "=" not in name
    ]
    return fields, tuple(_rooted(_without(parser, named, args), directory)), notes


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
