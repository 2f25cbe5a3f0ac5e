"""`sanduk user`: who there is, what each may do, and which OS account is whose."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from django.core.management.base import CommandParser
from django.db import IntegrityError, transaction

from runs import audit, four_eyes
from runs.management.terminal import SandukCommand, add_json_flag
from runs.models import TerminalAccount
from runs.refusal import Refusal
from runs.visible import visible
from sanduk_site import links, people, roles, whereabouts

ROLES = ", ".join(roles.RIGHTS)


class Command(SandukCommand):
    help = (
        "People of the site. add NAME [ROLE…] makes an account and prints the link that sets its "
        "password, once; role NAME ROLE… gives exactly these roles; link NAME prints a new link; "
        "off and on NAME shut somebody out and let them in; unlock [NAME] forgets wrong guesses "
        "of a password. map ACCOUNT NAME: what that OS account decides at a terminal counts as "
        "that person's; unmap ACCOUNT. four-eyes [on|off]: whether nobody may approve what they "
        f"asked for. Roles: {ROLES}."
    )
    examples = (
        "user add anna.b approver",
        "user role anna.b operator approver",
        "user map anna anna.b",
        "user list",
        "user four-eyes on",
    )
    ends_lost_runs = False

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("action", choices=tuple(self._actions()))
        parser.add_argument("words", nargs="*", metavar="WORD", help="see above")
        add_json_flag(parser)

    def act(self, **options: Any) -> int:
        action, words = options["action"], options["words"]
        if action == "list":
            return self._list(words, as_json=options["json"])
        if options["json"]:
            raise Refusal("--json means something with user list only")
        return self._actions()[action](words)

    def _actions(self) -> dict[str, Callable[[Sequence[str]], int]]:
        return {
            "add": self._add,
            "role": self._role,
            "link": self._link,
            "off": self._off,
            "on": self._on,
            "unlock": self._unlock,
            "map": self._map,
            "unmap": self._unmap,
            "four-eyes": self._four_eyes,
            "list": self._list,
        }

    def _add(self, words: Sequence[str]) -> int:
        name, wanted = _name("add", words), _roles(words[1:] or [roles.VIEWER])
        _, token = people.add(name, wanted)
        self._print_link(name, token)
        return 0

    def _role(self, words: Sequence[str]) -> int:
        user, wanted = people.named(_name("role", words)), _roles(words[1:])
        if not wanted:
            raise Refusal(f"user role needs a NAME and roles of: {ROLES}; user off shuts out")
        roles.give(user, wanted)
        self.say(f"{words[0]} is {', '.join(wanted)}")
        return 0

    def _link(self, words: Sequence[str]) -> int:
        name = _only("link", words)
        self._print_link(name, people.new_link(people.named(name)))
        return 0

    def _print_link(self, name: str, token: str) -> None:
        self.say(f"for {name} alone; it sets the password, once, within 24 hours:")
        self.print(links.address_of(token, whereabouts.base_url()))

    def _off(self, words: Sequence[str]) -> int:
        name = _only("off", words)
        done = people.shut_out(people.named(name))
        self.say(f"{name} is shut out" if done else f"{name} was shut out already")
        return 0

    def _on(self, words: Sequence[str]) -> int:
        name = _only("on", words)
        done = people.let_in(people.named(name))
        self.say(f"{name} may come in" if done else f"{name} was not shut out")
        return 0

    def _unlock(self, words: Sequence[str]) -> int:
        people.unlock(_only("unlock", words) if words else "")
        self.say("wrong guesses are forgotten; the right password is taken again")
        return 0

    def _map(self, words: Sequence[str]) -> int:
        if len(words) != 2:
            raise Refusal("user map needs an ACCOUNT of this host and a site USER")
        account, name = words
        user = people.named(name)
        try:
            with transaction.atomic():
                TerminalAccount.objects.create(account=account, user=user)
                audit.record("user.map", f"account:{account}", user=name)
        except IntegrityError:
            raise Refusal(
                f"{account!r} or {name!r} is mapped already: sanduk user list; unmap it first"
            ) from None
        self.say(f"what {account} decides at a terminal counts as {name}'s")
        return 0

    def _unmap(self, words: Sequence[str]) -> int:
        account = _only("unmap", words)
        with transaction.atomic():
            gone, _ = TerminalAccount.objects.filter(account=account).delete()
            if gone:
                audit.record("user.unmap", f"account:{account}")
        self.say(f"{account} is mapped to nobody" if gone else f"{account!r} was not mapped")
        return 0 if gone else 1

    def _four_eyes(self, words: Sequence[str]) -> int:
        if words:
            if list(words) not in (["on"], ["off"]):
                raise Refusal("user four-eyes takes on or off, or nothing to ask")
            four_eyes.choose(words[0] == "on")
        self.print("on" if four_eyes.is_on() else "off")
        return 0

    def _list(self, words: Sequence[str], *, as_json: bool = False) -> int:
        if words:
            raise Refusal("user list takes no name")
        found = people.listed()
        if as_json:
            self.print_json(found)
        elif not found:
            self.say("there is nobody yet: sanduk up makes the first administrator")
        else:
            self.print_table(("USER", "ROLES", "ACCOUNT", ""), [_row(each) for each in found])
        return 0


def _row(person: dict[str, Any]) -> list[str]:
    told = [*person["roles"], *(["superuser"] if person["superuser"] else [])]
    out = "" if person["active"] else "shut out"
    return [visible(person["user"]), ", ".join(told), visible(person["account"]), out]


def _name(action: str, words: Sequence[str]) -> str:
    if not words:
        raise Refusal(f"user {action} needs a NAME")
    return words[0]


def _only(action: str, words: Sequence[str]) -> str:
    if len(words) != 1:
        raise Refusal(f"user {action} needs one NAME")
    return words[0]


def _roles(words: Sequence[str]) -> list[str]:
    for word in words:
        if word not in roles.RIGHTS:
            raise Refusal(f"{word!r} is no role; there are {ROLES}")
    return list(dict.fromkeys(words))
