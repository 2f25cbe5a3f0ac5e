"""`sanduk key`: a person's own keys for providers, and what assistants they are lent to."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from assistants import lending
from assistants.models import Assistant
from assistants.named import one_assistant
from runs import audit, credentials, own_keys
from runs.management.action_help import Actions
from runs.management.hidden_prompt import asked
from runs.management.terminal import SandukCommand, add_actions, add_json_flag
from runs.models.people import user_of
from runs.refusal import Refusal
from runs.visible import visible

ACTIONS = {
    "list": "the providers, whether you keep a key for each, and what uses yours",
    "keep": "PROVIDER: keep yours, from a prompt that hides it or from standard input",
    "forget": "PROVIDER: forget it",
    "lend": "ASSISTANT: have its wakeups use your key for its provider",
    "take": "ASSISTANT: have its wakeups use the installation's key again",
}


class Command(SandukCommand):
    help = (
        "Your own keys for providers: never shown again, and used by assistants that you lend them "
        "to alone. Whose they are says sanduk user map: your account here must be a site user's. "
        "The keys of the installation are those of sanduk auth."
    )
    examples = (
        "key list",
        "key keep openai",
        "key keep openai < key-file",
        "key lend daily-report",
        "key take daily-report",
    )
    actions = Actions(
        ACTIONS,
        only={"name": [each for each in ACTIONS if each != "list"], "json": ["list"]},
        more=("key forget openai",),
    )
    ends_lost_runs = False

    def add_arguments(self, parser: CommandParser) -> None:
        add_actions(parser, ACTIONS)
        parser.add_argument("name", nargs="?", default="", metavar="NAME")
        add_json_flag(parser)

    def act(self, **options: Any) -> int:
        action, name = options["action"], options["name"]
        if action == "list":
            if name:
                raise Refusal("key list takes no name")
            return self._list(as_json=options["json"])
        if options["json"]:
            raise Refusal("--json means something with key list only")
        if not name:
            what = "a PROVIDER" if action in ("keep", "forget") else "an ASSISTANT"
            raise Refusal(f"key {action} needs {what}")
        code: int = getattr(self, f"_{action}")(name)
        return code

    def _list(self, *, as_json: bool) -> int:
        person = _person()
        kept = own_keys.kept(person)
        rows = [{"provider": each, "kept": each in kept} for each in sorted(own_keys.keyed())]
        lent = Assistant.objects.present().filter(key_of=person).order_by("name")
        names = list(lent.values_list("name", flat=True))
        if as_json:
            self.print_json({"user": person.get_username(), "keys": rows, "lent_to": names})
            return 0
        cells = [(visible(str(row["provider"])), "kept" if row["kept"] else "-") for row in rows]
        self.print_table(("PROVIDER", "YOUR KEY"), cells)
        if names:
            self.print(f"lent to: {', '.join(names)}")
        return 0

    def _keep(self, provider: str) -> int:
        person = _person()
        if provider not in own_keys.keyed():
            known = ", ".join(sorted(own_keys.keyed()))
            raise Refusal(f"there is no provider {provider!r} that takes a key; there are {known}")
        most = credentials.VALUE_MAX + 2
        given = asked(f"your key for {provider}", what=provider, most=most)
        own_keys.keep(person, provider, given)
        self.say(f"{person}'s key for {provider} is kept; it is never shown again")
        return 0

    def _forget(self, provider: str) -> int:
        person = _person()
        if not own_keys.forget(person, provider):
            self.say(f"{person} kept no key for {provider}")
            return 1
        self.say(f"{person}'s key for {provider} is forgotten")
        return 0

    def _lend(self, name: str) -> int:
        person, assistant = _person(), one_assistant(name)
        lending.lend(assistant, actor=person)
        self.say(f"{assistant.name} uses {person}'s key from its next wakeup on")
        return 0

    def _take(self, name: str) -> int:
        assistant = one_assistant(name)
        lending.take_back(assistant, actor=user_of(audit.account()))
        self.say(f"{assistant.name} uses this installation's key again")
        return 0


def _person() -> Any:
    """Whose keys they are: nobody keeps or lends another's."""
    account = audit.account()
    found = user_of(account)
    if found is None:
        raise Refusal(
            f"a key of one's own is a person's, and the account {account} is mapped to no site "
            f"user: sanduk user map {account} USER"
        )
    return found
