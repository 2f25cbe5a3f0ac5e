"""Telling an assistant something, and taking it back while it has not been read."""

from __future__ import annotations

from typing import Any

from django.db import IntegrityError, transaction

from assistants import belonging
from assistants.models import Assistant, InboxMessage, Wakeup
from runs import audit, clock
from runs.refusal import Refusal

MESSAGE_MAX = 64 * 1024  # bytes
WAITING_MAX = 1000  # messages: more would never be read, and something is sending in a loop


def tell(
    assistant: Assistant,
    text: str,
    *,
    source: str = "terminal",
    source_id: str = "",
    author: Any = None,
    needs: belonging.Act = "tell",
) -> tuple[InboxMessage, bool]:
    """Put a message into its inbox. False: one with this source id had arrived; it is returned.

    Args:
        source: where it comes from.
        source_id: what tells it from others of that source; the same one twice is one message,
            unless the first was taken back and this one says something else.
        author: the site user who tells it; None for the OS account of this process.
        needs: what its owner must have let them do.

    Raises:
        Refusal: it is empty, no text, too long, too many wait, this very message was taken back,
            or they may not tell it.
    """
    belonging.require(author, assistant, needs)
    _check(text)
    if source_id and (len(source_id) > 200 or not source_id.isprintable()):
        raise Refusal("--source-id takes at most 200 printable characters")
    arrived = InboxMessage.objects.filter(assistant=assistant, source=source, source_id=source_id)
    if source_id and (found := arrived.first()):
        if found.withdrawn_at is None:
            return found, False
        _check_corrected(found, text)
    if InboxMessage.objects.waiting().filter(assistant=assistant).count() >= WAITING_MAX:
        raise Refusal(
            f"{WAITING_MAX:,} messages wait for {assistant.name} already; take some back with "
            "sanduk untell, or see why it does not read them: sanduk assistant show "
            f"{assistant.name}"
        )
    try:
        with transaction.atomic():
            if source_id:  # what corrects a message that was taken back has its name from now on
                arrived.filter(withdrawn_at__isnull=False).update(source_id="")
            message = InboxMessage.objects.create(
                assistant=assistant,
                body=text,
                source=source,
                source_id=source_id,
                author=author,
                account="" if author else audit.account()[:150],
                created_at=clock.now(),
            )
    except IntegrityError:
        return arrived.get(), False  # it arrived twice at the same moment
    return message, True


def take_back(pk: int, *, actor: Any = None) -> InboxMessage:
    """Withdraw a message. Raises Refusal when there is none, or it is no longer waiting."""
    message = InboxMessage.objects.filter(pk=pk).select_related("assistant").first()
    if message is None:
        raise Refusal(f"there is no message {pk}; see sanduk inbox --all")
    belonging.require(actor, message.assistant, "tell")
    if not InboxMessage.objects.withdraw(pk):
        message.refresh_from_db()
        if message.consumed_at:
            raise Refusal(
                f"message {pk} was read by a wakeup that ended {message.consumed_at:%Y-%m-%d %H:%M}"
            )
        raise Refusal(f"message {pk} was taken back {message.withdrawn_at:%Y-%m-%d %H:%M} already")
    audit.record("inbox.withdraw", f"assistant:{message.assistant.name}", actor=actor, message=pk)
    return message


def is_being_read(message: InboxMessage) -> bool:
    """Whether a wakeup that is under way was given it."""
    return message.given_to.filter(state=Wakeup.State.RUNNING).exists()


def _check_corrected(found: InboxMessage, text: str) -> None:
    """Whoever sends the same once more does not know that a person took it back."""
    if found.body == text:
        raise Refusal(
            f"message {found.pk} has this source id and this text, and was taken back "
            f"{found.withdrawn_at:%Y-%m-%d %H:%M}; another --source-id tells it anew"
        )


def _check(text: str) -> None:
    if not text.strip():
        raise Refusal("the message is empty")
    if "\0" in text:
        raise Refusal("the message holds a NUL byte; is it a text?")
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise Refusal("the message is not UTF-8 text") from None
    if size > MESSAGE_MAX:
        raise Refusal(
            f"the message has more than {MESSAGE_MAX:,} bytes, and at most so many fit; put the "
            "rest in a file of its workspace or of a mount"
        )
