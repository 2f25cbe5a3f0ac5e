"""Assistants: what wakes up, when, with what to read, what it may say, and what it remembers."""

from assistants.models.approval import ApprovedPlaces
from assistants.models.assistant import Assistant, Schedule
from assistants.models.brief import BriefVersion
from assistants.models.grant import Grant
from assistants.models.mail import InboxMessage, OutboxItem
from assistants.models.memory import MemorySnapshot
from assistants.models.notice import Notice
from assistants.models.outbox_filter import OutboxFilter
from assistants.models.sending import Delivery, Destination
from assistants.models.wakeup import Wakeup

__all__ = [
    "ApprovedPlaces",
    "Assistant",
    "BriefVersion",
    "Delivery",
    "Destination",
    "Grant",
    "InboxMessage",
    "MemorySnapshot",
    "Notice",
    "OutboxFilter",
    "OutboxItem",
    "Schedule",
    "Wakeup",
]
