"""`sanduk auth`: providers' keys and other secrets, kept on this host."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from runs import audit, credentials, keys, providers
from runs.management.action_help import Actions
from runs.management.hidden_prompt import asked
from runs.management.terminal import SandukCommand, add_json_flag
from runs.refusal import Refusal


class Command(SandukCommand):
    help = "Keep a provider's key on this host (hidden prompt, or standard input), show, forget."
    examples = (
        "auth set anthropic",
        "auth set openai < key-file",
        "auth status",
        "auth clear anthropic",
    )
    actions = Actions(
        {
            "set": "keep a key on this host, from a hidden prompt or from standard input",
            "status": "which keys are there, and where each comes from",
            "clear": "forget a key that was kept here",
        },
        only={"json": ["status"]},
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("action", choices=("set", "status", "clear"))
        parser.add_argument(
            "name", nargs="?", metavar="NAME", help="a provider, or a variable as OPENAI_API_KEY"
        )
        add_json_flag(parser)

    def act(self, **options: Any) -> int:
        name = options["name"] and variable_of(options["name"])
        if options["action"] == "status":
            return self._status(name, as_json=options["json"])
        if options["json"]:
            raise Refusal("--json means something with auth status only")
        if not name:
            known, problem = providers.usable()
            self._say_problem(problem)
            names = ", ".join(each for each, provider in known.items() if provider.key_env)
            raise Refusal(f"auth {options['action']} needs a NAME: {names}, or a variable's")
        if options["action"] == "clear":
            return self._clear(name)
        return self._set(name)

    def _set(self, name: str) -> int:
        credentials.check_name(name)
        if credentials.is_personal(name):
            raise Refusal(f"{name} would be a person's own key, which they keep on the site")
        value = asked(name, what=name, most=credentials.VALUE_MAX + 2).strip()
        credentials.check(name, value)
        self._set_aside_damaged()
        credentials.store(name, value)
        audit.record("auth.set", f"secret:{name}")
        self.say(f"{name} is kept in {settings.SANDUK_HOME / 'credentials'}")
        if keys.source_of(name) not in ("", "stored"):
            self.say(f"the environment sets {name} as well, and it wins")
        return 0

    def _clear(self, name: str) -> int:
        self._set_aside_damaged()
        if not credentials.clear(name):
            self.say(f"there was no {name} to forget")
            return 1
        audit.record("auth.clear", f"secret:{name}")
        self.say(f"{name} is forgotten")
        return 0

    def _set_aside_damaged(self) -> None:
        place = credentials.set_aside_damaged()
        if place is not None:
            self.say(
                f"the file of keys was damaged and is now {place}: it may still hold keys, remove "
                "it when you need it no more; set the other keys again"
            )

    def _say_problem(self, problem: str) -> None:
        if problem:
            self.say(f"no provider of your own can be used: {problem}")

    def _status(self, name: str | None, *, as_json: bool) -> int:
        self._say_problem(providers.usable()[1])
        rows = [_state_of(each) for each in ([name] if name else known_names())]
        if as_json:
            self.print_json(rows)
            return 0
        width = max(len(row["name"]) for row in rows)
        for row in rows:
            told = row["problem"] or row["value"]
            self.print(f"{row['name']:<{width}}  {row['source']:<11}  {told}".rstrip())
        return 0


def _state_of(name: str) -> dict[str, str]:
    """Where a secret comes from, and enough of it to recognise it, or why it cannot be used."""
    source = keys.source_of(name)
    row = {"name": name, "source": source or "none", "value": "", "problem": ""}
    if not source:
        return row
    try:
        value = keys.value_of(name)
    except Refusal as exc:
        return {**row, "problem": f"cannot be used: {exc}"}
    if not value:
        return {**row, "problem": "cannot be used: it is empty"}
    if fault := keys.fault_of(value):
        return {**row, "problem": f"cannot be used: it {fault}"}
    return {**row, "value": credentials.masked(value)}


def variable_of(name: str) -> str:
    """The variable of a provider's key, or the name itself. Raises Refusal for neither."""
    known, problem = providers.usable()
    if provider := known.get(name):
        if provider.key_env:
            return provider.key_env
        if provider.needs_key:
            raise Refusal(
                f"provider {name} names no variable for its key: give it a key_env in "
                "SANDUK_HOME/providers.toml"
            )
        raise Refusal(f"provider {name} needs no key")
    if credentials.NAME.fullmatch(name):
        return name
    if problem:
        raise Refusal(f"there is no provider {name!r} that can be used: {problem}")
    raise Refusal(
        f"{name!r} is no provider (sanduk list providers) and no name of a secret: capitals, "
        "digits and _, as OPENAI_API_KEY"
    )


def known_names() -> list[str]:
    """Every provider's variable, GitHub's, then whatever else is stored."""
    variables = [provider.key_env for provider in providers.usable()[0].values()]
    stored = sorted(name for name in credentials.stored() if not credentials.is_personal(name))
    return list(dict.fromkeys([*filter(None, variables), keys.GITHUB_TOKEN, *stored]))
