"""The `sanduk` command: `sanduk X` is `manage.py sanduk_X` under a shorter name."""

from __future__ import annotations

import gc
import os
import sys

# whatever takes time to load is loaded inside of `main`, where a Ctrl-C is one line
from sanduk_site import __version__

USAGE = """\
sanduk {version}: coding agents in disposable containers, with a person at the gate

usage: sanduk COMMAND [flags]        sanduk COMMAND --help explains one, with examples

{commands}

also:
{also}

first steps:
  sanduk run --agent pi --provider rehearsal "look at every file here"
  sanduk runs
  sanduk show RUN
"""

SUMMARIES = {
    "up": "the site and its worker: one process that keeps them alive",
    "demo": "one sealed run of a real agent: no key, no account, no network",
    "run": "run an agent in a container and wait for its report",
    "auth": "keep a provider's key on this host, show, forget",
    "shell": "a shell in the container an agent would get",
    "build": "build an agent's image",
    "images": "the images built here; prune those that no run will ask for",
    "system": "whether all that runs need is there; start or stop an engine",
    "doctor": "what is wrong here and what mends it; whether the boundary holds",
    "list": "what there is: agents, providers, runtimes, recipes, kits",
    "recipe": "check a recipe, write a first one, mend one",
    "kit": "check a kit, write a first one, renew pins",
    "wake": "wake an assistant here and now",
    "tick": "wake every assistant that is due, once; for cron",
    "serve": "tick on a loop, in the foreground",
    "worker": "what wakes assistants and executes runs in the background",
    "ps": "containers of this installation",
    "stop": "stop runs; without one, stop what belongs to no live run",
    "clean": "remove containers and networks that are left or were kept",
    "backup": "all that cannot be had elsewhere, in one file that was read back",
    "restore": "put a backup into an empty state directory",
    "destroy": "remove what this installation made; its records after a typed word",
    "reconcile": "compare the records with the engine, end what is lost",
    "runs": "the runs there were",
    "logs": "what a run does, line by line",
    "show": "one run: trace, calls, seal certificate, report",
    "outbox": "what assistants want to say, and where it went",
    "approve": "let items of the outbox out, for exactly what they hold",
    "reject": "keep items of the outbox in, for ever",
    "deliver": "bring what was approved to its destinations now",
    "destination": "the places that approved items go to",
    "login": "use a site elsewhere from this terminal: outbox, approve, reject, tell, inbox",
    "logout": "use it no more",
    "audit": "what people and rules did; whether the record of it still stands",
    "share": "whose an assistant is, and what others may do with it",
    "key": "a person's own keys, and the assistants they are lent to",
    "user": "people of the site: their roles, and which OS account is whose",
    "usage": "what all runs used by day, and what the provider says about it",
    "assistant": "agents that wake by a schedule: take in, look at, put to sleep",
    "tell": "put a message into an assistant's inbox",
    "inbox": "the messages that wait to be read",
    "untell": "take messages back that have not been read",
    "memory": "what an assistant remembers: what changed, accept, reject, restore",
    "change": "a task on a repository: run, show, accept or reject what came back",
    "skills": "what agents wrote down for later ones: read, approve, revoke",
}

# other names of the same commands, as the first words
ALIASES = {
    ("batch",): ("change", "batch"),
    ("accept",): ("change", "accept"),
    ("test",): ("change", "test"),
    ("revise",): ("change", "revise"),
    ("status",): ("change", "status"),
    ("gc",): ("change", "gc"),
    ("image", "build"): ("build",),
}
ON_A_REPOSITORY = ("run", "shell")  # with --repo they are those of `change`

INTERNAL = {"attempt", "execute", "wakeup", "cluster", "web"}  # what other commands start


def main() -> None:
    """The console script. Exits with the command's code; 2 for a word that is no command."""
    try:
        from runs import early_signals

        early_signals.keep()
        _main()
    except KeyboardInterrupt:
        raise SystemExit(_stopped()) from None
    except Exception as exc:
        # Python 3.11 makes another exception of a Ctrl-C that comes while it makes a class
        if isinstance(exc.__cause__, KeyboardInterrupt):
            raise SystemExit(_stopped()) from None
        raise


def _stopped() -> int:
    print("sanduk: stopped with Ctrl-C", file=sys.stderr)
    return 130


def _main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "sanduk_site.settings")
    words = sys.argv[1:]
    if not words or words[0] in ("-h", "--help", "help"):
        _usage(sys.stdout if words else sys.stderr)
        raise SystemExit(0 if words else 2)
    if words[0] in ("-V", "--version", "version"):
        print(f"sanduk {__version__}")
        raise SystemExit(0)
    words = meant(words)
    app = _commands().get(words[0])
    if app is None:
        raise SystemExit(_no_command(words))
    _run(app, words)


def meant(words: list[str]) -> list[str]:
    """The command somebody means who knows it by another name."""
    for alias, command in ALIASES.items():
        if tuple(words[: len(alias)]) == alias:
            return [*command, *words[len(alias) :]]
    flags = words[: words.index("--")] if "--" in words else words
    if words[0] in ON_A_REPOSITORY and any(word.partition("=")[0] == "--repo" for word in flags):
        return ["change", *words]
    return words


def _run(app: str, words: list[str]) -> None:
    from django.core.exceptions import ImproperlyConfigured

    # while modules load nothing becomes garbage, and looking for it takes a seventh of the time
    gc.disable()
    try:
        import django

        django.setup()
        from django.core.management import load_command_class
    except ImproperlyConfigured as exc:
        hint = "; install it with: pip install 'sanduk[postgres]'" if "psycopg" in str(exc) else ""
        print(f"sanduk: {exc}{hint}", file=sys.stderr)
        raise SystemExit(2) from None
    command = load_command_class(app, f"sanduk_{words[0]}")
    gc.enable()
    command.run_from_argv(["sanduk", f"sanduk_{words[0]}", *words[1:]])


def _commands() -> dict[str, str]:
    """Each command and the app it lives in, from the files that are there."""
    from pathlib import Path

    here = Path(__file__).resolve().parent.parent
    found = {}
    for app in ("runs", "assistants", "changes", "sanduk_site"):
        for file in (here / app / "management" / "commands").glob("sanduk_*.py"):
            found[file.stem.removeprefix("sanduk_")] = app
    return found


def _usage(where: object) -> None:
    commands = _commands()
    known = [name for name in SUMMARIES if name in commands]
    names = [*known, *sorted(set(commands) - set(known) - INTERNAL)]
    lines = "\n".join(f"  {name:<9} {SUMMARIES.get(name, '')}".rstrip() for name in names)
    names_of = {" ".join(alias): " ".join(command) for alias, command in ALIASES.items()}
    names_of |= {f"{word} --repo": f"change {word}" for word in ON_A_REPOSITORY}
    width = max(map(len, names_of)) + 2
    also = "\n".join(f"  {alias:<{width}}is {command}" for alias, command in names_of.items())
    told = USAGE.format(version=__version__, commands=lines, also=also)
    print(told, end="", file=where)  # type: ignore[call-overload]


def _no_command(words: list[str]) -> int:
    import shlex

    from runs.visible import visible

    task = visible(shlex.quote(" ".join(words)), limit=200)
    known = ", ".join(sorted(set(_commands()) - INTERNAL))
    print(
        f"sanduk: {words[0]!r} is no command; there are {known}.\n"
        f"sanduk: to give an agent that task: sanduk run {task}",
        file=sys.stderr,
    )
    return 2
