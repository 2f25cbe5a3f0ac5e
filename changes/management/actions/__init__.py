"""The actions of `sanduk change`, one module each group; loaded when they are asked for."""

from __future__ import annotations

# name: the module here, its class, one line of help
ACTIONS: dict[str, tuple[str, str, str]] = {
    "run": ("making", "Run", "give an agent a task on a repository"),
    "shell": ("session", "Shell", "work in the box yourself, on a throwaway clone"),
    "batch": ("making", "Batch", "give several tasks on one repository to agents"),
    "list": ("listing", "List", "the changes there are, newest first"),
    "show": ("reading", "Show", "one: flags, conflicts, tests, skills, files; --patch"),
    "diff": ("reading", "Diff", "its patch, byte for byte in a pipe"),
    "test": ("testing", "Test", "run the tests on base and patch, in a fresh box"),
    "accept": ("deciding", "Accept", "yes, to exactly what was read: makes a branch of it"),
    "reject": ("deciding", "Reject", "no, with a --reason"),
    "revise": ("making", "Revise", "have another attempt made on top of this one"),
    "cancel": ("cancelling", "Cancel", "end an attempt that waits or is being made"),
    "status": ("listing", "Status", "what goes on, what waits for a person"),
    "stats": ("listing", "Stats", "how many became what, how long it took, what it cost"),
    "gc": ("collecting", "Gc", "remove what nobody needs any more; --dry-run"),
}


def found(name: str) -> type:
    """The command of an action."""
    from importlib import import_module

    module, word, _ = ACTIONS[name]
    command: type = getattr(import_module(f"{__name__}.{module}"), word)
    return command
