"""The files a wakeup leaves for people: its task and its report, in the assistant's reports/.

They are copies. The agent cannot reach the directory, and what counts is in the database.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from assistants.models import Assistant, Wakeup
from runs import clock

TASK, REPORT = "task.md", "md"


def path_of(assistant: Assistant, wakeup: Wakeup, kind: str) -> Path:
    """Named by when it began and by the wakeup's number: two in one second have two names."""
    began = wakeup.started_at or clock.now()
    stamp = began.strftime("%Y%m%dT%H%M%SZ")
    return Path(assistant.directory) / "reports" / f"{stamp}-{wakeup.pk}.{kind}"


def write(assistant: Assistant, wakeup: Wakeup, kind: str, text: str) -> Path:
    """Write one of them, whole or not at all. One that is there stays. Raises OSError."""
    path = path_of(assistant, wakeup, kind)
    path.parent.mkdir(exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as file:
            file.write(text)
        _give_to_owner(draft, path.parent)
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink(missing_ok=True)
    return path


def _give_to_owner(file: Path, directory: Path) -> None:
    if os.geteuid() == 0:
        owner = directory.stat()
        os.chown(file, owner.st_uid, owner.st_gid)
