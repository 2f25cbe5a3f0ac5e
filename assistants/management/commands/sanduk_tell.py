"""`sanduk tell`: put a message into an assistant's inbox."""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import CommandParser

from assistants import mailbox
from assistants.named import one_assistant
from runs.management.terminal import SandukCommand, add_json_flag
from runs.refusal import Refusal


class Command(SandukCommand):
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

    def act(self, **options: Any) -> int:
        assistant = one_assistant(options["name"])
        if "-" in options["text"] and len(options["text"]) > 1:
            raise Refusal(
                "- reads the message from standard input, and stands alone; quote the text"
            )
        text = " ".join(options["text"])
        if options["text"] == ["-"]:
            text = _standard_input()
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


def _standard_input() -> str:
    data = sys.stdin.buffer.read(mailbox.MESSAGE_MAX + 1)
    try:
        return data.decode()
    except UnicodeDecodeError:
        if len(data) > mailbox.MESSAGE_MAX:  # cut in the middle of a character, perhaps
            return data.decode(errors="replace")
        raise Refusal("standard input is not UTF-8 text") from None
