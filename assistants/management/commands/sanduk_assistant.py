"""`sanduk assistant`: take assistants in, look at them, put them to sleep, send them away."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from assistants import arriving, listing, scaffold, schedules, security
from assistants.management import telling
from assistants.memory import forgetting
from assistants.models import Assistant, OutboxItem
from assistants.named import one_assistant
from runs import audit, clock
from runs.management.action_help import Actions
from runs.management.numbers import whole
from runs.management.terminal import SandukCommand, add_actions, add_json_flag
from runs.paths import expanded
from runs.refusal import Refusal
from runs.visible import visible

ACTIONS = {
    "add": "take in what a directory's assistant.toml says; after a change, once more",
    "new": "write the directory of a first assistant, which holds and reviews",
    "list": "all of them",
    "show": "one of them: schedule, settings, what waits",
    "next": "its next five wakeups, on its own clock",
    "history": "its wakeups, and the slots that did not run, with the reason",
    "wake": "wake it here and now, and follow it",
    "enable": "wake it again, its failures forgotten",
    "disable": "wake it no more",
    "export": "print its assistant.toml, as the database has it",
    "remove": "take it off the list; its directory stays, its memory for a while",
}
COLUMNS = ("NAME", "STATE", "NEXT (UTC)", "LAST (UTC)", "MAIL", "PENDING", "DIRECTORY")
PAST = ("PLANNED (UTC)", "TRIGGER", "OUTCOME", "RUN", "REASON")
_UNNAMED = ("list",)
_ONLY = {"reason": ("disable",), "agent": ("new",), "provider": ("new",), "directory": ("new",),
         "limit": ("next", "history"), "quiet": ("wake", "new"), "purge": ("remove",),
         "security": ("add",)}  # fmt: skip


class Command(SandukCommand):
    help = "Take assistants in, look at them, put them to sleep."
    examples = (
        "assistant new daily-report",
        "assistant add ./daily-report",
        "assistant list",
        "assistant next daily-report",
        "assistant history daily-report --limit 50 --json",
        'assistant disable daily-report --reason "on holiday"',
        "assistant export daily-report > daily-report/assistant.toml",
    )
    actions = Actions(
        ACTIONS,
        only={
            **_ONLY,
            "target": [name for name in ACTIONS if name not in _UNNAMED],
            "json": [name for name in ACTIONS if name != "export"],
        },
        more=(
            "assistant show daily-report",
            "assistant wake daily-report",
            "assistant enable daily-report",
            "assistant remove daily-report",
        ),
    )

    def add_arguments(self, parser: CommandParser) -> None:
        add_actions(parser, ACTIONS)
        parser.add_argument(
            "target", nargs="?", default="", metavar="NAME|DIR", help="for add a directory"
        )
        parser.add_argument(
            "--limit",
            type=whole(high=10_000),
            metavar="N",
            help="history: at most N (20); next: how many (5)",
        )
        parser.add_argument("--reason", default="", metavar="TEXT", help="disable: why")
        parser.add_argument(
            "--agent", default="", metavar="NAME", help="new: which agent it is (codex)"
        )
        parser.add_argument(
            "--provider", default="", metavar="NAME", help="new: whose model (openai)"
        )
        parser.add_argument(
            "--directory", default="", metavar="PATH", help="new: where to make it (./NAME)"
        )
        parser.add_argument(
            "--security",
            choices=("file", "web"),
            metavar="WHOSE",
            help="add: whose word counts, file or web, where somebody said on the web what the "
            "file says otherwise",
        )
        parser.add_argument(
            "-q", "--quiet", action="store_true", help="wake, new: say only what failed"
        )
        parser.add_argument(
            "--purge", action="store_true", help="remove: its memory's snapshots at once, too"
        )
        add_json_flag(parser)

    def act(self, **options: Any) -> int:
        action = options["action"]
        if action not in _UNNAMED and not options["target"]:
            raise Refusal(f"assistant {action} needs a {'DIR' if action == 'add' else 'NAME'}")
        if action in _UNNAMED and options["target"]:
            raise Refusal(f"assistant {action} takes no name; assistant show is about one")
        for name, verbs in _ONLY.items():
            if options[name] and action not in verbs:
                raise Refusal(f"--{name} means nothing with {action}; it goes with {verbs[0]}")
        if action == "export" and options["json"]:
            raise Refusal("export prints TOML; for JSON: sanduk assistant show NAME --json")
        act = getattr(self, f"_{action}")
        code: int = act(**options)
        return code

    def _add(self, **options: Any) -> int:
        added = arriving.add(arriving.place(options["target"]), security=options["security"])
        name = added.assistant.name
        if options["json"]:
            self.print_json(
                {
                    "name": name,
                    "created": added.created,
                    "changed": list(added.changed),
                    "notes": list(added.notes),
                }
            )
        elif added.created:
            self.print(f"{name} is added; next: {self._first(name)}")
        elif added.changed:
            self.print(f"{name} is changed: {', '.join(added.changed)}; next: {self._first(name)}")
        else:
            self.print(f"{name} is there already, and nothing has changed")
        for note in added.notes:
            self.say(f"{name}: {note}")
        return 0

    def _first(self, name: str) -> str:
        assistant = listing.one(name)
        if assistant.disabled_at:
            return f"never, it is disabled; sanduk assistant enable {name}"
        return f"{listing.minute(listing.next_at(assistant))} UTC"

    def _new(self, **options: Any) -> int:
        name = options["target"]
        place = expanded(options["directory"] or name, what="--directory").absolute()
        scaffold.new(
            name,
            place,
            agent=options["agent"] or "codex",
            provider=options["provider"] or "openai",
            zone=settings.TIME_ZONE,
        )
        shown = str(place) if options["directory"] else f"./{name}"
        if options["json"]:
            self.print_json({"name": name, "directory": str(place)})
        else:
            self.print(str(place))
        if not options["quiet"]:
            self.say(
                f"now say in {shown}/brief.md what it does, then: sanduk assistant add {shown}"
            )
        return 0

    def _list(self, **options: Any) -> int:
        found, now = list(listing.described()), clock.now()
        if options["json"]:
            self.print_json([listing.as_json(each, now) for each in found])
            return 0
        if not found:
            self.say("no assistants yet; a first one: sanduk assistant new daily-report")
            return 0
        self.print_table(COLUMNS, [listing.row(each, now) for each in found])
        for each in found:
            if each.disabled_at:
                self.say(f"{each.name} is disabled: {visible(each.disabled_reason, limit=200)}")
            if why := arriving.unread_change(each):
                self.say(f"{each.name}: {why}")
        for line in listing.trouble():
            self.say(line)
        return 0

    def _show(self, **options: Any) -> int:
        one_assistant(options["target"])
        assistant, now = listing.one(options["target"]), clock.now()
        if options["json"]:
            self.print_json(listing.as_json(assistant, now))
            return 0
        for name, value in listing.lines(assistant, now):
            self.print(f"{name + ':':<17} {value}")
        if why := arriving.unread_change(assistant):
            self.say(why)
        for line in security.told(assistant):
            self.say(line)
        return 0

    def _next(self, **options: Any) -> int:
        assistant = one_assistant(options["target"])
        count = options["limit"] or 5
        found = listing.next_wakeups(assistant, count, clock.now())
        if options["json"]:
            self.print_json(
                [
                    {
                        "planned_at": slot.planned_at,
                        "not_before": slot.not_before,
                        "timezone": schedule.timezone,
                    }
                    for schedule, slot in found
                ]
            )
            return 0
        for schedule, slot in found:
            zone = schedules.timing_of(schedule).zone
            local = slot.planned_at.astimezone(zone)
            late = (slot.not_before - slot.planned_at).total_seconds()
            jitter = f" + {late:.0f} s" if late else ""
            self.print(f"{local:%a %Y-%m-%d %H:%M:%S %z} {schedule.timezone}{jitter}")
        if assistant.disabled_at:
            self.say(f"but it is disabled; sanduk assistant enable {assistant.name}")
        elif assistant.not_before and assistant.not_before > clock.now():
            self.say(f"but it backs off until {assistant.not_before:%Y-%m-%d %H:%M} UTC")
        return 0

    def _history(self, **options: Any) -> int:
        assistant = one_assistant(options["target"])
        found, now = list(listing.history(assistant, options["limit"] or 20)), clock.now()
        if options["json"]:
            self.print_json([telling.as_json(each) for each in found])
        elif not found:
            self.say(f"{assistant.name} has not been woken yet")
        else:
            self.print_table(
                PAST,
                [
                    (
                        listing.second(each.planned_at),
                        each.trigger,
                        (each.outcome or each.state).replace("_", " "),
                        each.run.uid if each.run else "-",
                        listing.why(each, now),
                    )
                    for each in found
                ],
            )
        return 0

    def _wake(self, **options: Any) -> int:
        from assistants.management.commands.sanduk_wake import wake_here

        return wake_here(self, options["target"], quiet=options["quiet"], as_json=options["json"])

    def _enable(self, **options: Any) -> int:
        assistant = one_assistant(options["target"])
        done = arriving.enable(assistant)
        if options["json"]:
            self.print_json({"name": assistant.name, "changed": done})
        elif done:
            self.print(f"{assistant.name} is enabled; next: {self._first(assistant.name)}")
        else:
            self.print(f"{assistant.name} is enabled already")
        return 0

    def _disable(self, **options: Any) -> int:
        assistant = one_assistant(options["target"])
        reason = options["reason"] or f"by {audit.account()}"
        done = arriving.disable(assistant, reason[:400])
        if options["json"]:
            self.print_json({"name": assistant.name, "changed": done})
        elif done:
            self.print(f"{assistant.name} is disabled")
        else:
            assistant.refresh_from_db()
            self.print(
                f"{assistant.name} is disabled already: {visible(assistant.disabled_reason)}"
            )
        return 0

    def _export(self, **options: Any) -> int:
        self.print(arriving.exported(one_assistant(options["target"])).rstrip("\n"))
        return 0

    def _remove(self, **options: Any) -> int:
        name, purge = options["target"], options["purge"]
        if purge and not Assistant.objects.present().filter(name=name).exists():
            return self._purge(name, **options)
        assistant = one_assistant(name)
        pending = assistant.outbox.filter(state=OutboxItem.State.PENDING).count()
        arriving.remove(assistant)
        if purge:
            forgetting.forget_all(name)
        if options["json"]:
            self.print_json({"name": name, "items_pending": pending, "purged": purge})
        else:
            self.print(f"{name} is removed; {Path(assistant.directory)} stays as it is")
        if not purge and forgetting.place_of(assistant).is_dir():
            self.say(
                f"snapshots of its memory stay for {forgetting.KEPT_DAYS} days; to remove them "
                f"now: sanduk assistant remove {name} --purge"
            )
        if pending:
            self.say(f"{pending} of its outbox still wait for a decision: sanduk outbox --pending")
        return 0

    def _purge(self, name: str, **options: Any) -> int:
        """Of one that was removed before."""
        if not forgetting.forget_all(name):
            one_assistant(name)  # says that there is none
        if options["json"]:
            self.print_json({"name": name, "purged": True})
        else:
            self.print(f"the memory of {name}, which was removed before, is gone")
        return 0
