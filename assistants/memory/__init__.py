"""An assistant's memory: its workspace, kept by the host where no agent can reach it.

Everything here blocks; an event loop calls it in a thread.
"""

from assistants.memory.authorship import may_accept
from assistants.memory.forgetting import forget_old
from assistants.memory.review import accept, reject, restore
from assistants.memory.scanning import findings
from assistants.memory.snapshots import after_wakeup, before_wakeup, take
from assistants.memory.trust import is_unreviewed, start_from

__all__ = [
    "accept",
    "after_wakeup",
    "before_wakeup",
    "findings",
    "forget_old",
    "is_unreviewed",
    "may_accept",
    "reject",
    "restore",
    "start_from",
    "take",
]
