"""Asking for a secret at a terminal, where it is not shown, or reading it from a pipe."""

from __future__ import annotations

import getpass
import sys

from runs.refusal import Refusal


def asked(prompt: str, *, what: str, most: int) -> str:
    """The secret as it was given.

    Args:
        what: it is, for the refusal.
        most: characters that are read from a pipe; somewhat more than one may have.

    Raises Refusal when the input ends at the prompt.
    """
    if not sys.stdin.isatty():
        return sys.stdin.read(most)
    try:
        return getpass.getpass(f"{prompt} (not shown): ")
    except EOFError:
        sys.stderr.write("\n")  # the prompt stands there yet
        raise Refusal(f"nothing was given for {what}; nothing has changed") from None
