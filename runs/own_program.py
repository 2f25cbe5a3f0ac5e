"""How sanduk starts itself again: for the worker, a wakeup, a detached run, the site."""

from __future__ import annotations

import sys


def own_program(*words: str) -> list[str]:
    """The argv of one of our own commands in a new process.

    `-P`: the directory we stand in may be an agent's to write, and nothing is imported from it.
    """
    return [sys.executable, "-P", "-m", "sanduk_site", *words]
