"""`sanduk share`: whose an assistant is, and whom its owner lets see, tell or wake it."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from assistants import belonging
from assistants.models import Assistant
from assistants.named import one_assistant
from runs.management.action_help import Actions
from runs.management.terminal import SandukCommand, add_actions, add_json_flag
from runs.refusal import Refusal
from runs.visible import visible

ACTIONS = {
    "list": "whose each assistant is, who was granted what, whose key it uses",
    "owner": "ASSISTANT [PERSON]: let it belong to them; with --nobody to nobody, and so to all",
    "give": "ASSISTANT PERSON: let them see it, with --tell and --wake more; replaces",
    "take": "ASSISTANT PERSON: let them do nothing with it any more",
}
COLUMNS = ("ASSISTANT", "OWNER", "GRANTED", "KEY OF")


class Command(SandukCommand):
    help = (
        "Whose an assistant is, and what others may do with it; an assistant that is nobody's is "
        "everybody's. A grant adds nothing to a role: both must say yes."
    )
    examples = (
        "share list",
        "share owner daily-report anna",
        "share give daily-report ben --tell",
        "share take daily-report ben",
        "share owner daily-report --nobody",
    )
    actions = Actions(ACTIONS)
    ends_lost_runs = False

    def add_arguments(self, parser: CommandParser) -> None:
        add_actions(parser, ACTIONS)
        parser.add_argument("name", nargs="?", default="", metavar="ASSISTANT")
        parser.add_argument(
            "person", nargs="?", default="", metavar="PERSON", help="owner, give, take: who"
        )
        parser.add_argument("--tell", action="store_true", help="give: they may tell it, too")
        parser.add_argument("--wake", action="store_true", help="give: they may wake it, too")
        parser.add_argument("--nobody", action="store_true", help="owner: let it be nobody's")
        add_json_flag(parser)

    def act(self, **options: Any) -> int:
        action, name, person = options["action"], options["name"], options["person"]
        for flag, goes_with in (("tell", "give"), ("wake", "give"), ("nobody", "owner")):
            if options[flag] and action != goes_with:
                raise Refusal(f"--{flag} means nothing with {action}; it goes with {goes_with}")
        if action == "list":
            if person:
                raise Refusal("share list takes at most an ASSISTANT")
            return self._list(name, as_json=options["json"])
        is_to_nobody = action == "owner" and options["nobody"]
        if not name or bool(person) == is_to_nobody:
            more = ", or --nobody in their place" if action == "owner" else ""
            raise Refusal(f"share {action} needs an ASSISTANT and a PERSON{more}")
        assistant = one_assistant(name)
        getattr(self, f"_{action}")(assistant, **options)
        if options["json"]:
            self.print_json(described(_rows(assistant.name)[0]))
        return 0

    def _owner(self, assistant: Assistant, **options: Any) -> None:
        owner = belonging.person_named(options["person"]) if options["person"] else None
        belonging.give_to(assistant, owner)
        self._tell(f"{assistant.name} belongs to {options['person'] or 'nobody'} now", **options)

    def _give(self, assistant: Assistant, **options: Any) -> None:
        may = {act: options[act] for act in ("tell", "wake")}
        person = belonging.person_named(options["person"])
        belonging.grant(assistant, person, **may)
        words = " and ".join(["see", *(act for act, yes in may.items() if yes)])
        self._tell(f"{person} may {words} {assistant.name}, as far as their roles go", **options)

    def _take(self, assistant: Assistant, **options: Any) -> None:
        # one who is shut out may hold a grant, too
        held = assistant.grants.filter(user__username=options["person"]).select_related("user")
        grant = held.first()
        if grant is None or not belonging.withdraw(assistant, grant.user):
            raise Refusal(f"{options['person']} was granted nothing of {assistant.name}")
        self._tell(
            f"{options['person']} is granted nothing of {assistant.name} any more", **options
        )

    def _tell(self, said: str, **options: Any) -> None:
        if not options["json"]:
            self.print(visible(said))

    def _list(self, name: str, *, as_json: bool) -> int:
        found = _rows(one_assistant(name).name if name else "")
        if as_json:
            self.print_json([described(each) for each in found])
        elif not found:
            self.say("no assistants yet; a first one: sanduk assistant new daily-report")
        else:
            self.print_table(COLUMNS, [_cells(each) for each in found])
        return 0


def _rows(name: str) -> list[Assistant]:
    found = Assistant.objects.present().select_related("owner", "key_of")
    found = found.prefetch_related("grants__user").order_by("name")
    return list(found.filter(name=name) if name else found)


def described(assistant: Assistant) -> dict[str, Any]:
    """Whose it is, in the site's user names; null for nobody's."""
    return {
        "name": assistant.name,
        "owner": assistant.owner.get_username() if assistant.owner else None,
        "key_of": assistant.key_of.get_username() if assistant.key_of else None,
        "grants": [
            {"user": each.user.get_username(), "tell": each.may_tell, "wake": each.may_wake}
            for each in assistant.grants.all()
        ],
    }


def _cells(assistant: Assistant) -> tuple[str, ...]:
    grants = [
        " ".join(
            [
                visible(each.user.get_username()),
                *(act for act, yes in (("tell", each.may_tell), ("wake", each.may_wake)) if yes),
            ]
        )
        for each in assistant.grants.all()
    ]
    return (
        assistant.name,
        visible(str(assistant.owner)) if assistant.owner else "nobody's",
        ", ".join(grants) or "-",
        visible(str(assistant.key_of)) if assistant.key_of else "-",
    )
