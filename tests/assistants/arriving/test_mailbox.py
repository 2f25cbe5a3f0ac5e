"""Telling an assistant something: once, in order, not too much; and taking it back."""

from __future__ import annotations

import io
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from assistants import mailbox
from assistants.models import InboxMessage
from runs import clock
from runs.models import AuditEvent
from runs.refusal import Refusal
from tests.factories import make_assistant, make_wakeup

pytestmark = pytest.mark.django_db


def bodies() -> list[str]:
    return list(InboxMessage.objects.waiting().values_list("body", flat=True))


def test_words_are_one_message_and_their_order_is_kept(sanduk):
    make_assistant("daily")

    assert "waits for daily" in sanduk("tell", "daily", "leave", "it", "out")
    sanduk("tell", "daily", "and this")
    assert bodies() == ["leave it out", "and this"]


def test_a_message_is_read_from_standard_input(sanduk, monkeypatch):
    make_assistant("daily")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("grüße\n".encode())))

    assert sanduk("tell", "daily", "-", "--json")["new"] is True
    assert bodies() == ["grüße\n"]


def test_the_same_source_id_arrives_once_even_after_it_was_read(sanduk):
    one, other = make_assistant("daily"), make_assistant("nightly")
    sanduk("tell", "daily", "first", "--source-id", "mail-1")
    InboxMessage.objects.update(consumed_at=clock.now())

    assert "had arrived already" in sanduk("tell", "daily", "second", "--source-id", "mail-1")
    assert "its text is another one" in sanduk.err
    assert mailbox.tell(other, "x", source_id="mail-1")[1]
    assert mailbox.tell(one, "x", source="web", source_id="mail-1")[1]
    assert InboxMessage.objects.filter(assistant=one).count() == 2


def test_what_corrects_a_message_that_was_taken_back_is_not_lost():
    one = make_assistant("daily")
    first, _ = mailbox.tell(one, "the wrong figures", source_id="S1")
    mailbox.take_back(first.pk)

    with pytest.raises(Refusal, match=rf"message {first.pk} has this source id .*was taken back"):
        mailbox.tell(one, "the wrong figures", source_id="S1")
    corrected, is_new = mailbox.tell(one, "the right figures", source_id="S1")

    assert is_new
    assert corrected.pk != first.pk
    assert mailbox.tell(one, "the right figures", source_id="S1") == (corrected, False)
    assert bodies() == ["the right figures"]


@pytest.mark.django_db(transaction=True)
def test_the_same_source_id_at_the_same_moment_arrives_once():
    one = make_assistant()

    def send(_: int) -> bool:
        try:
            return mailbox.tell(one, "hello", source_id="7")[1]
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as pool:
        arrived = list(pool.map(send, range(6)))
    assert sum(arrived) == 1
    assert InboxMessage.objects.count() == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        (" \n", "is empty"),
        ("a\0b", "NUL"),
        ("\udc80", "not UTF-8"),
        ("x" * 65537, "more than 65,536 bytes"),
        ("ü" * 40000, "more than 65,536 bytes"),
    ],
)
def test_what_is_no_message_is_refused(text, said):
    with pytest.raises(Refusal, match=said):
        mailbox.tell(make_assistant(), text)
    assert bodies() == []


def test_taking_back_what_a_wakeup_has_already_says_so(sanduk):
    one = make_assistant("daily")
    seen, unseen = (mailbox.tell(one, text)[0] for text in ("seen", "unseen"))
    seen.given_to.add(make_wakeup(one, state="running"))

    assert "is taken back" in sanduk("untell", str(seen.pk), str(unseen.pk))
    assert f"message {seen.pk}: the wakeup under way has it" in sanduk.err
    assert f"message {unseen.pk}" not in sanduk.err


def test_a_source_id_is_short_and_printable():
    for bad in ("x" * 201, "a\nb"):
        with pytest.raises(Refusal, match="--source-id"):
            mailbox.tell(make_assistant(), "x", source_id=bad)


def test_a_sender_in_a_loop_is_stopped(monkeypatch):
    monkeypatch.setattr(mailbox, "WAITING_MAX", 3)
    one = make_assistant("daily")
    for number in range(3):
        mailbox.tell(one, str(number))

    with pytest.raises(Refusal, match="wait for daily already"):
        mailbox.tell(one, "4")
    mailbox.take_back(InboxMessage.objects.first().pk)
    mailbox.tell(one, "4")


def test_telling_a_disabled_one_says_so(sanduk):
    make_assistant("daily", disabled_at=clock.now(), disabled_reason="3 failures in a row")

    sanduk("tell", "daily", "hello")
    assert "is disabled" in sanduk.err


def test_a_name_that_is_none_is_refused_with_the_nearest(sanduk):
    make_assistant("daily")

    with pytest.raises(Refusal, match="did you mean daily"):
        sanduk("tell", "dialy", "hello")


def test_the_inbox_shows_what_waits_and_with_all_what_became_of_the_rest(sanduk):
    one = make_assistant("daily")
    waiting, read, back = (mailbox.tell(one, f"text {n}\x1b[31m")[0] for n in range(3))
    InboxMessage.objects.filter(pk=read.pk).update(
        consumed_at=clock.now(), consumed_by=make_wakeup(one)
    )
    sanduk("untell", str(back.pk))
    mailbox.tell(make_assistant("other"), "not shown")

    shown = sanduk("inbox", "--name", "daily")
    assert "text 0" in shown
    assert "\x1b" not in shown
    assert len(shown.splitlines()) == 2
    states = [each["state"] for each in sanduk("inbox", "--name", "daily", "--all", "--json")]
    assert states == ["waiting", "read", "taken_back"]
    assert len(sanduk("inbox", "--json")) == 2
    assert sanduk("inbox", "--json")[0]["id"] == waiting.pk


def test_a_message_is_taken_back_until_it_was_read(sanduk):
    one = make_assistant("daily")
    first, second = mailbox.tell(one, "1")[0], mailbox.tell(one, "2")[0]
    InboxMessage.objects.filter(pk=second.pk).update(consumed_at=clock.now())

    assert "is taken back" in sanduk("untell", str(first.pk), str(second.pk), code=1)
    assert "was read" in sanduk.err
    sanduk("untell", str(first.pk), "999", code=2)
    assert "already" in sanduk.err
    assert "no message 999" in sanduk.err
    assert AuditEvent.objects.get().action == "inbox.withdraw"


def test_a_dash_beside_other_words_is_refused(sanduk):
    make_assistant("daily")

    with pytest.raises(Refusal, match="stands alone"):
        sanduk("tell", "daily", "-", "foo")
    assert not InboxMessage.objects.exists()
