"""`sanduk destination`: the places that approved items go to."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from assistants import destinations
from assistants.delivery import program
from assistants.delivery.kinds import (
    AppriseSettings,
    CommandSettings,
    FileSettings,
    Settings,
    WebhookSettings,
    settings_of,
)
from assistants.delivery.parcel import Doubtful, Failed, Parcel
from assistants.delivery.sending import send_test
from assistants.models import Destination
from assistants.models.sending import new_key
from assistants.outbox import digest_of
from runs import audit, clock, duration
from runs.management.action_help import Actions
from runs.management.terminal import SandukCommand, add_json_flag
from runs.refusal import Refusal
from runs.visible import visible

KINDS = ("command", "webhook", "webhook_secret", "email", "file", "apprise_secret")
ONLY_WITH = {
    "secret": ("webhook", "webhook_secret"),
    "allow_lan": ("webhook", "webhook_secret"),
    "sender": ("email",),
    "smtp": ("email",),
    "security": ("email",),
    "smtp_user": ("email",),
    "smtp_secret": ("email",),
}
# a setting and what says it; --from and the kind's own flag are always said
_SAID_BY = {
    "secret": "secret",
    "allow_lan": "allow_lan",
    "host": "smtp",
    "port": "smtp",
    "security": "security",
    "user": "smtp_user",
    "password_secret": "smtp_secret",
}
LONGEST_S = 86400
SAID_MAX = 200  # characters of what a receiver answered to a test; --json has all that is kept

ACTIONS = {
    "add": "keep a place that approved items go to, or change one that is there",
    "list": "all of them, and whose items go there",
    "test": "send a test there, and say what came back",
    "remove": "send nothing there any more; what is on its way is given up",
}


class Command(SandukCommand):
    help = (
        "Keep the places that approved items go to: add one, list them, send a test, remove one. "
        "To add one that is there changes it: what --for, --timeout and --reminders said stays "
        "until it is said again. No agent can name or change one. Secrets are kept with sanduk "
        "auth set NAME and given here by NAME."
    )
    examples = (
        "destination add log --file /var/log/sanduk-items.jsonl --for daily",
        "destination add ops --webhook https://example.com/hook --secret HOOK_KEY",
        "destination add me --email me@example.com --from bot@example.com",
        "destination add phone --apprise-secret PHONE_URL --for daily --reminders 4h",
        "destination add ticket --command 'new-ticket --queue agents' --timeout 2m",
        "destination test ops",
        "destination list",
        "destination remove ops",
    )
    actions = Actions(
        ACTIONS,
        only={
            **dict.fromkeys((*KINDS, *ONLY_WITH, "timeout", "assistants", "reminders"), ("add",)),
            "name": ["add", "test", "remove"],
            "json": ["list", "test"],
        },
    )
    ends_lost_runs = False

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("action", choices=tuple(ACTIONS))
        parser.add_argument("name", nargs="?", default="", metavar="NAME")
        kinds = parser.add_mutually_exclusive_group()
        kinds.add_argument(
            "--command", default="", metavar="WORDS", help="a program; no shell; run in /"
        )
        kinds.add_argument("--webhook", default="", metavar="URL", help="POST JSON there")
        kinds.add_argument(
            "--webhook-secret", default="", metavar="NAME", help="the secret that is the whole URL"
        )
        kinds.add_argument("--email", default="", metavar="ADDRESS", help="one address")
        kinds.add_argument("--file", default="", metavar="PATH", help="append a line of JSON")
        kinds.add_argument(
            "--apprise-secret", default="", metavar="NAME", help="the secret that is Apprise's URL"
        )
        parser.add_argument("--secret", default="", metavar="NAME", help="signs a webhook")
        parser.add_argument(
            "--allow-lan", action="store_true", help="a webhook at a private address, or here"
        )
        parser.add_argument("--from", dest="sender", default="", metavar="ADDRESS")
        parser.add_argument("--smtp", default="", metavar="HOST:PORT", help="default: localhost:25")
        parser.add_argument("--security", default="", choices=("none", "starttls", "tls"))
        parser.add_argument("--smtp-user", default="", metavar="NAME")
        parser.add_argument("--smtp-secret", default="", metavar="NAME", help="the password's name")
        parser.add_argument("--timeout", default="", metavar="DURATION", help="of a new one: 60s")
        parser.add_argument(
            "--for", dest="assistants", action="append", default=[], metavar="ASSISTANT",
            help="its items go there; repeatable",
        )  # fmt: skip
        parser.add_argument(
            "--reminders", default="", metavar="DURATION",
            help="tell it once of each item that waits so long for a decision, without its text; "
            "none: no more",
        )  # fmt: skip
        add_json_flag(parser)

    def act(self, **options: Any) -> int:
        action, name = options["action"], options["name"]
        if action == "list":
            return self._list(as_json=options["json"])
        if not name:
            raise Refusal(f"destination {action} needs a NAME")
        if options["json"] and action != "test":
            raise Refusal("--json means something with destination list and test only")
        if action == "add":
            return self._add(name, options)
        if any(options[kind] for kind in KINDS):
            raise Refusal(f"destination {action} takes a NAME only")
        if action == "test":
            return self._test(name, as_json=options["json"])
        return self._remove(name)

    def _add(self, name: str, options: dict[str, Any]) -> int:
        kind, settings = settings_from(options)
        before = Destination.objects.filter(name=name, removed_at=None).first()
        found, is_new = destinations.add(
            name,
            kind,
            settings,
            timeout_s=_timeout(options["timeout"]),
            remind_after_s=_remind_after(options["reminders"]),
            assistants=options["assistants"],
        )
        self.say(
            f"{name} is {'added' if is_new else 'changed'}; try it: sanduk destination test {name}"
        )
        if isinstance(settings, CommandSettings):
            for word in program.misplaced(settings.argv):
                self.say(f"it runs in /: {visible(word)} is {visible(str(Path('/', word)))} there")
        if before is not None:
            for line in _fallen_back(before.config, found.config, options):
                self.say(line)
        if not found.assistants.exists():
            self.say(
                f'no assistant\'s items go there yet: --for NAME, or destinations = ["{name}"]'
            )
        return 0

    def _remove(self, name: str) -> int:
        given_up = destinations.remove(name)
        self.say(f"{name} is removed")
        if given_up:
            self.say(f"{given_up} on the way there are given up: sanduk outbox --undelivered")
        return 0

    def _test(self, name: str, *, as_json: bool) -> int:
        found = destinations.named(name)
        audit.record("destination.test", f"destination:{name}")
        body = f"A test of the destination {name}: it works.\n"
        parcel = Parcel(
            assistant="test", item=0, run="", key=new_key(), number=1, created_at=clock.now(),
            sha256=digest_of(body), body=body,
        )  # fmt: skip
        try:
            output, trouble = send_test(found, parcel), ""
        except (Failed, Doubtful) as exc:
            is_sure = isinstance(exc, Failed)
            output, trouble = exc.output, f"the test did not arrive: {exc}" if is_sure else str(exc)
        if as_json:
            self.print_json({"destination": name, "trouble": trouble, "output": output})
            return 1 if trouble else 0
        self.say(trouble or f"{name} took the test")
        if output.strip():
            self.print(f"it said: {visible(output.strip(), limit=SAID_MAX)}")
        return 1 if trouble else 0

    def _list(self, *, as_json: bool) -> int:
        rows = [_row(each) for each in Destination.objects.filter(removed_at=None)]
        if as_json:
            self.print_json(rows)
        elif not rows:
            self.say("there are no destinations; sanduk destination add --help shows how")
        else:
            cells = [
                [
                    row["name"],
                    row["kind"],
                    visible(row["where"]),
                    ", ".join(row["assistants"]) or "-",
                ]
                for row in rows
            ]
            self.print_table(("NAME", "KIND", "WHERE", "ASSISTANTS"), cells)
        return 0


def _timeout(text: str) -> int | None:
    return duration.seconds(text, what="--timeout", longest_s=LONGEST_S) if text else None


def _remind_after(text: str) -> int | None:
    if text == "none":
        return 0
    return duration.seconds(text, what="--reminders") if text else None


def _fallen_back(before: dict[str, Any], now: dict[str, Any], options: dict[str, Any]) -> list[str]:
    """What was set, and is not any more because nobody said it again."""
    return [
        f"{field} was {before.get(field)} and is {now[field] or 'none'} now: "
        f"--{option.replace('_', '-')} was not said again"
        for field, option in _SAID_BY.items()
        if not options[option] and before.get(field) != now.get(field)
    ]


def settings_from(options: dict[str, Any]) -> tuple[str, Settings]:
    """The kind and the settings that the flags say. Raises Refusal."""
    given = next((kind for kind in KINDS if options[kind]), "")
    if not given:
        flags = ", ".join(f"--{kind.replace('_', '-')}" for kind in KINDS)
        raise Refusal(f"destination add needs one of {flags}")
    for flag, kinds in ONLY_WITH.items():
        if options[flag] and given not in kinds:
            flags = "--from" if flag == "sender" else f"--{flag.replace('_', '-')}"
            raise Refusal(f"{flags} means nothing with --{given.replace('_', '-')}")
    value = options[given]
    if given == "command":
        return Destination.Kind.COMMAND, CommandSettings(argv=_words(value))
    if given == "file":
        return Destination.Kind.FILE, FileSettings(path=value)
    if given == "apprise_secret":
        return Destination.Kind.APPRISE, AppriseSettings(url_secret=value)
    if given == "email":
        return Destination.Kind.EMAIL, _email(value, options)
    return Destination.Kind.WEBHOOK, WebhookSettings(
        url=options["webhook"],
        url_secret=options["webhook_secret"],
        secret=options["secret"],
        allow_lan=options["allow_lan"],
    )


def _words(text: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(text))
    except ValueError as exc:
        raise Refusal(f"--command cannot be read as words: {str(exc).lower()}") from None


def _email(address: str, options: dict[str, Any]) -> Settings:
    if not options["sender"]:
        raise Refusal("--email needs --from, the sender's address")
    host, _, port = (options["smtp"] or "localhost:25").rpartition(":")
    if not host or not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise Refusal(f"--smtp takes HOST:PORT, not {options['smtp']!r}")
    config = {
        "to": address,
        "sender": options["sender"],
        "host": host,
        "port": int(port),
        "security": options["security"] or "none",
        "user": options["smtp_user"],
        "password_secret": options["smtp_secret"],
    }
    return settings_of(Destination.Kind.EMAIL, config)


def _row(destination: Destination) -> dict[str, Any]:
    return {
        "name": destination.name,
        "kind": destination.kind,
        "where": destinations.told(destination),
        "config": destination.config,
        "timeout_s": destination.timeout_s,
        "remind_after_s": destination.remind_after_s,
        "assistants": [each.name for each in destination.assistants.filter(removed_at=None)],
    }
