"""Showing what a command would write into a person's files, and asking before it does."""

from __future__ import annotations

import sys

from recipes.mending import Mended
from runs.management.terminal import SandukCommand
from runs.visible import visible


def rewrite(command: SandukCommand, mended: Mended, *, yes: bool) -> int:
    """Print the changes and what is left, then write them if a person, or `--yes`, agrees.

    Returns: the exit code. 1 when something is left to do or nothing was agreed to.
    """
    for change in mended.changes:
        for line in change.diff().splitlines():
            command.print(visible(line, lines=True))
    for told in mended.told:
        command.say(told)
    for left in mended.left:
        command.say(f"left to you: {left}")
    if not mended.changes:
        if not mended.left:
            command.say("nothing to change")
        return 1 if mended.left else 0
    if not (yes or _agreed(len(mended.changes))):
        command.say("nothing was written; --yes writes without asking")
        return 1
    for change in mended.changes:
        change.write()
        command.say(f"written: {change.file}")
    return 1 if mended.left else 0


def _agreed(files: int) -> bool:
    if not sys.stdin.isatty():
        return False
    print(f"sanduk: write {'this' if files == 1 else 'these'}? [y/N] ", end="", file=sys.stderr)
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
