"""`sanduk user`: which site user decides when an account of this host's OS does."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import CommandParser
from django.db import IntegrityError, transaction

from runs import audit
from runs.management.terminal import SandukCommand, add_json_flag
from runs.models import TerminalAccount
from runs.refusal import Refusal
from runs.visible import visible


class Command(SandukCommand):
    help = (
        "Map an OS account to one site user: what it decides at a terminal then counts as that "
        "person's, also where several people or not the author must decide."
    )
    examples = ("user map anna anna.b", "user list", "user unmap anna")
    ends_lost_runs = False

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("action", choices=("map", "unmap", "list"))
        parser.add_argument("account", nargs="?", default="", help="an OS account")
        parser.add_argument("user", nargs="?", default="", help="a site user's name")
        add_json_flag(parser)

    def act(self, **options: Any) -> int:
        action, account, user = options["action"], options["account"], options["user"]
        if action == "list":
            return self._list(as_json=options["json"])
        if options["json"]:
            raise Refusal("--json means something with user list only")
        if action == "unmap":
            return self._unmap(account)
        return self._map(account, user)

    def _map(self, account: str, name: str) -> int:
        if not account or not name:
            raise Refusal("user map needs an ACCOUNT of this host and a site USER")
        users = get_user_model().objects
        user = users.filter(**{get_user_model().USERNAME_FIELD: name}).first()
        if user is None:
            raise Refusal(f"there is no site user {name!r}; make one with createsuperuser")
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

    def _unmap(self, account: str) -> int:
        with transaction.atomic():
            gone, _ = TerminalAccount.objects.filter(account=account).delete()
            if gone:
                audit.record("user.unmap", f"account:{account}")
        self.say(f"{account} is mapped to nobody" if gone else f"{account!r} was not mapped")
        return 0 if gone else 1

    def _list(self, *, as_json: bool) -> int:
        found = TerminalAccount.objects.select_related("user")
        rows = [(each.account, each.user.get_username()) for each in found]
        if as_json:
            self.print_json([{"account": account, "user": user} for account, user in rows])
        elif not rows:
            self.say("no OS account is mapped to a site user")
        else:
            cells = [[visible(account), visible(user)] for account, user in rows]
            self.print_table(("ACCOUNT", "USER"), cells)
        return 0
