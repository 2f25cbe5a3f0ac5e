"""Naming a tool that a test command did not find in the image, and what puts it there."""

from __future__ import annotations

import re
from pathlib import Path

import recipes

NOT_FOUND = 127  # what a shell exits with
_NAME = r"([A-Za-z0-9_.+/@-]{1,80})"
# as dash, bash, busybox, make and env say it; what is printed is hostile, and only chooses a name
_SAID = (
    re.compile(rf"^(?:[^\n]{{0,200}}: )?{_NAME}: (?:command )?not found$", re.M),
    re.compile(rf"^make(?:\[\d+\])?: {_NAME}: No such file or directory$", re.M),
    re.compile(rf"^(?:/usr/bin/)?env: [‘'\"]?{_NAME}[’'\"]?: No such file or directory$", re.M),
)
# `python3 -m pytest` exits with 1
_NO_MODULE = re.compile(
    r"^(?:[^\s:]{0,200}/)?python[0-9.]*: No module named ([A-Za-z0-9_.]{1,80})$", re.M
)
_OF_MAKE = re.compile(r"^make(?:\[\d+\])?: \*\*\* .* Error 127$", re.M)


def named(command: str, exit_code: int | None, printed: str, rules_file: Path) -> str:
    """One sentence with the tool and the fix; "" when nothing was missing.

    Args:
        printed: the end of what the command printed.
        rules_file: where the operator names kits and set-up commands.
    """
    said: tuple[re.Pattern[str], ...] = (_NO_MODULE,)
    if exit_code == NOT_FOUND or _OF_MAKE.search(printed):
        said = (*_SAID, _NO_MODULE)
    elif not exit_code or not _NO_MODULE.search(printed):
        return ""
    found = [match for pattern in said for match in pattern.finditer(printed)]
    last = max(found, key=lambda match: match.start(), default=None)
    tool = last[1] if last is not None else (command.split() or ["?"])[0][:80]
    name = tool.rpartition("/")[2] or tool
    kit = f'kits = ["{name}"]' if name in _kits() else "a kit that has it (`sanduk list kits`)"
    return (
        f"{tool} is not in the image: name {kit}, or set_up commands that install it, in "
        f"{rules_file}"
    )


def _kits() -> tuple[str, ...]:
    try:
        return recipes.kit_names()
    except recipes.RecipeError:
        return ()
