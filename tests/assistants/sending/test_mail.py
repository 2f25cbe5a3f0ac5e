"""E-mail, to a small SMTP server on loopback that can refuse, hang up and fall silent."""

from __future__ import annotations

import socketserver
import threading
import time
from collections.abc import Iterator
from email import message_from_bytes, policy

import pytest

from assistants.delivery import mail
from assistants.delivery.kinds import EmailSettings
from assistants.delivery.parcel import Doubtful, Failed
from runs.refusal import Refusal
from tests.assistants.sending.making import BODY, parcel
from tests.pace import stretched


class Server(socketserver.ThreadingTCPServer):
    """Speaks enough SMTP. `answers` replaces what it says to a command; "" hangs up."""

    allow_reuse_address, daemon_threads = True, True
    got: list[str]
    answers: dict[str, str]
    drips = ""


class Speaking(socketserver.StreamRequestHandler):
    server: Server

    def handle(self) -> None:
        self.say(self.server.answers.get("HELLO", "220 here"), to="HELLO")
        while line := self.rfile.readline().decode().strip():
            word = line.split()[0].upper()
            answer = self.server.answers.get(word, "354 go on" if word == "DATA" else "250 fine")
            if not self.say(answer, to=word):
                return
            if word == "DATA" and answer.startswith("354"):
                lines = []
                while (text := self.rfile.readline().decode()) != ".\r\n":
                    lines.append(text)
                self.server.got.append("".join(lines))
                if not self.say(self.server.answers.get(".", "250 queued"), to="."):
                    return
            if word == "QUIT":
                return

    def say(self, answer: str, *, to: str) -> bool:
        if to == self.server.drips:
            answer = f"{answer[:3]}-{'x' * 100}"  # a first line of several, ten seconds long
        for piece in answer if to == self.server.drips else [answer]:
            try:
                self.wfile.write(piece.encode())
            except OSError:
                return False
            time.sleep(0.1 if len(piece) == 1 else 0)
        if answer:
            self.wfile.write(b"\r\n")
        return bool(answer)


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(("127.0.0.1", 0), Speaking) as one:
        one.got, one.answers = [], {}
        thread = threading.Thread(target=one.serve_forever, args=(0.05,))
        thread.start()
        yield one
        one.shutdown()
        thread.join()


def send(server: Server) -> str:
    settings = EmailSettings(
        to="me@example.com", sender="bot@example.org", host="127.0.0.1",
        port=server.server_address[1],
    )  # fmt: skip
    return mail.send(parcel(), settings, 10)


def test_a_mail_has_the_body_and_the_same_id_each_time(server: Server):
    send(server)
    send(server)

    first, second = (
        message_from_bytes(text.encode(), policy=policy.default) for text in server.got
    )
    assert first["Message-ID"] == second["Message-ID"] == f"<{'k' * 32}@example.org>"
    assert (first["To"], first["From"]) == ("me@example.com", "bot@example.org")
    assert first["Subject"] == "daily: item 7"
    assert first["Auto-Submitted"] == "auto-generated"
    assert first.get_content().replace("\r\n", "\n").rstrip("\n") == BODY


@pytest.mark.parametrize(
    ("word", "answer", "lasting"),
    [
        ("RCPT", "550 no such user", True),
        ("RCPT", "450 mailbox busy", False),
        (".", "554 looks like spam", True),
        (".", "451 try later", False),
        ("HELLO", "421 not now", False),
    ],
)
def test_what_the_server_does_not_take_is_a_failure(server: Server, word, answer, lasting):
    server.answers[word] = answer

    with pytest.raises(Failed, match=answer[:3]) as failed:
        send(server)
    assert failed.value.lasting is lasting
    assert answer[4:] in failed.value.output


def test_a_server_that_hangs_up_with_the_mail_in_hand_leaves_it_unknown(server: Server):
    server.answers["."] = ""

    with pytest.raises(Doubtful, match="left in the middle"):
        send(server)
    assert len(server.got) == 1


def test_a_server_that_is_not_there_is_tried_again(server: Server):
    settings = EmailSettings(to="a@example.com", sender="b@example.com", host="127.0.0.1", port=1)

    with pytest.raises(Failed) as failed:
        mail.send(parcel(), settings, 10)
    assert not failed.value.lasting


@pytest.mark.parametrize("word", ["HELLO", "RCPT", "."])
def test_a_server_that_drips_has_no_more_time(server: Server, word):
    server.drips = word
    settings = EmailSettings(
        to="me@example.com", sender="bot@example.org", host="127.0.0.1",
        port=server.server_address[1],
    )  # fmt: skip
    started = time.monotonic()

    with pytest.raises(Failed if word == "HELLO" else Doubtful):
        mail.send(parcel(), settings, 1)
    assert time.monotonic() - started < stretched(8)


@pytest.mark.parametrize(
    "fields",
    [
        {"to": "a@example.com, b@example.com"},
        {"to": "a@example.com\nBcc: b@example.com"},
        {"to": "nobody"},
        {"sender": "@example.com"},
        {"user": "me"},
        {"user": "me", "password_secret": "MAIL_PASSWORD"},
    ],
)
def test_settings_that_cannot_work_are_refused(fields):
    with pytest.raises(Refusal):
        EmailSettings(**{"to": "a@example.com", "sender": "b@example.com", **fields}).check()


def test_a_password_never_goes_over_the_net_in_clear():
    from runs import credentials

    credentials.store("MAIL_PASSWORD", "s3cr3t-word")
    fields = {
        "to": "a@example.com", "sender": "b@example.com", "user": "me",
        "password_secret": "MAIL_PASSWORD", "host": "mail.example.com",
    }  # fmt: skip
    with pytest.raises(Refusal, match="starttls or tls only"):
        EmailSettings(**fields).check()
    EmailSettings(**fields, security="starttls").check()
