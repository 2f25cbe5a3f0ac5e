"""`sanduk tell`: put a message into an assistant's inbox."""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import CommandParser

from assistants import mailbox
from assistants.management import answers
from assistants.management.answers import Told
from assistants.management.elsewhere import HereOrThere
from assistants.named import one_assistant
from runs.management.terminal import add_json_flag
from runs.refusal import Refusal
from runs.site_login import Site
from runs.visible import visible


class Command(HereOrThere):
    help = "Tell an assistant something. It reads it when it is woken next."
    examples = (
        'tell daily-report "leave the weekend out"',
        "tell daily-report - < letter.txt",
        "tell triage --source-id mail-4711 - < mail.txt",
    )
    ends_lost_runs = False

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", metavar="NAME")
        parser.add_argument("text", nargs="+", metavar="TEXT", help="the message; - reads stdin")
        parser.add_argument(
            "--source-id",
            default="",
            metavar="ID",
            help="what tells this message from others: the same one twice arrives once",
        )
        add_json_flag(parser)
        super().add_arguments(parser)

    def act_here(self, **options: Any) -> int:
        assistant, text = one_assistant(options["name"]), _text(options["text"])
        message, arrived = mailbox.tell(assistant, text, source_id=options["source_id"])
        if options["json"]:
            self.print_json({"id": message.pk, "assistant": assistant.name, "new": arrived})
        elif arrived:
            self.print(f"message {message.pk} waits for {assistant.name}")
        else:
            self.print(f"message {message.pk} had arrived already")
        if not arrived and message.body != text:
            self.say(f"its text is another one than that of message {message.pk}, which stays")
        if assistant.disabled_at:
            self.say(
                f"{assistant.name} is disabled; it reads nothing until: "
                f"sanduk assistant enable {assistant.name}"
            )
        return 0

    def act_there(self, site: Site, **options: Any) -> int:
        given = {"text": _text(options["text"]), "source_id": options["source_id"]}
        found = site.post("inbox", options["name"], **given)
        told = answers.read(site, Told, found)
        if options["json"]:
            self.print_json(found)
            return 0
        name = visible(told.assistant, limit=80)
        if told.new:
            self.print(f"message {told.id} waits for {name}")
        else:
            self.print(f"message {told.id} had arrived already")
        if told.disabled:
            self.say(f"{name} is disabled, and reads nothing until it is enabled")
        return 0


def _text(words: list[str]) -> str:
    if "-" in words and len(words) > 1:
        raise Refusal("- reads the message from standard input, and stands alone; quote the text")
    return _standard_input() if words == ["-"] else " ".join(words)


def _standard_input() -> str:
    data = sys.stdin.buffer.read(mailbox.MESSAGE_MAX + 1)
    try:
        return data.decode()
    except UnicodeDecodeError:
        if len(data) > mailbox.MESSAGE_MAX:  # cut in the middle of a character, perhaps
            return data.decode(errors="replace")
        raise Refusal("standard input is not UTF-8 text") from None
