"""`sanduk auth`: providers' keys and other secrets, kept on this host."""

from __future__ import annotations

import getpass
import sys
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from relay import get_provider, provider_names
from runs import audit, credentials, keys
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
        if not name:
            raise Refusal(f"auth {options['action']} needs a NAME: {', '.join(provider_names())}")
        if options["action"] == "clear":
            return self._clear(name)
        return self._set(name)

    def _set(self, name: str) -> int:
        credentials.check_name(name)
        if sys.stdin.isatty():
            value = getpass.getpass(f"{name} (not shown): ")
        else:
            value = sys.stdin.read(credentials.VALUE_MAX + 2)
        credentials.store(name, value.strip())
        audit.record("auth.set", f"secret:{name}")
        self.say(f"{name} is kept in {settings.SANDUK_HOME / 'credentials'}")
        if keys.source_of(name) not in ("", "stored"):
            self.say(f"the environment sets {name} as well, and it wins")
        return 0

    def _clear(self, name: str) -> int:
        if not credentials.clear(name):
            self.say(f"there was no {name} to forget")
            return 1
        audit.record("auth.clear", f"secret:{name}")
        self.say(f"{name} is forgotten")
        return 0

    def _status(self, name: str | None, *, as_json: bool) -> int:
        names = [name] if name else known_names()
        rows = []
        for each in names:
            source = keys.source_of(each)
            shown = credentials.masked(keys.value_of(each)) if source else ""
            rows.append({"name": each, "source": source or "none", "value": shown})
        if as_json:
            self.print_json(rows)
            return 0
        width = max(len(row["name"]) for row in rows)
        for row in rows:
            self.print(f"{row['name']:<{width}}  {row['source']:<11}  {row['value']}".rstrip())
        return 0


def variable_of(name: str) -> str:
    """The variable of a provider's key, or the name itself. Raises Refusal for neither."""
    if name in provider_names():
        variable = get_provider(name).key_env
        if not variable:
            raise Refusal(f"provider {name} needs no key")
        return variable
    credentials.check_name(name)
    return name


def known_names() -> list[str]:
    """Every provider's variable, then whatever else is stored."""
    variables = [get_provider(name).key_env for name in provider_names()]
    return list(dict.fromkeys([*filter(None, variables), *sorted(credentials.stored())]))
