"""`sanduk doctor` for a page: one at a time, beside the pages, and what the last one said is kept.

It is looked at from the site's own process: with its account, its environment and its engine.
"""

from __future__ import annotations

import datetime as dt
import os
import threading
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
from django.conf import settings
from django.db import connection

from runs import clock
from sanduk_site import doctor
from sanduk_site.doctor import Line

KEPT_MAX = 1 << 20  # bytes of the file that are read


@dataclass(frozen=True, slots=True)
class Examination:
    """What was seen. `is_whole`: it came to its end; the site's log says why one did not."""

    began_at: dt.datetime
    ended_at: dt.datetime
    is_whole: bool
    lines: tuple[Line, ...]

    @property
    def wrong(self) -> int:
        return sum(line.state == "wrong" for line in self.lines)

    def without_keys(self) -> Examination:
        """The same, for people who administer nothing: no end of a key, and not where it lies."""
        return replace(self, lines=tuple(_without_key(line) for line in self.lines))


def _without_key(line: Line) -> Line:
    if not line.name.startswith("key "):
        return line
    return replace(line, sentence="is here" if line.state == "ok" else "cannot be used")


class Examiner:
    """The examinations of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._going_since: dt.datetime | None = None

    @property
    def going_since(self) -> dt.datetime | None:
        """When the one that goes on began; None when none does."""
        return self._going_since

    def begin(self) -> bool:
        """Begin one in a thread of its own. False when one goes on."""
        with self._lock:
            if self._going_since is not None:
                return False
            self._going_since = clock.now()
        threading.Thread(target=self._work, name="doctor", daemon=True).start()
        return True

    def _work(self) -> None:
        try:
            examine()
        finally:
            connection.close()  # this thread's own
            self._going_since = None


the_examiner = Examiner()


def examine() -> None:
    """Look at everything, and keep what was seen, as far as it came."""
    began_at, seen, is_whole = clock.now(), list[Line](), False
    try:
        for line in doctor.examined(settings.SANDUK_RUNTIME):
            seen.append(line)
        is_whole = True
    finally:
        _keep(Examination(began_at, clock.now(), is_whole, tuple(seen)))


def last() -> Examination | None:
    """What the last one saw; None for none, or where that cannot be read."""
    try:
        with _path().open("rb") as file:
            content = file.read(KEPT_MAX + 1)
        return msgspec.json.decode(content, type=Examination)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None


def _keep(seen: Examination) -> None:
    """In place of the one before. Raises OSError."""
    path = _path()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(msgspec.json.encode(seen))
    draft.replace(path)


def _path() -> Path:
    home: Path = settings.SANDUK_HOME
    return home / "cache" / "doctor.json"
