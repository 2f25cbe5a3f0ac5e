"""Holding a row for longer work than one run: its lease is renewed beside it, in a thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Self

from django.conf import settings
from django.db import DatabaseError, close_old_connections, connections

from runs import clock
from runs.lease import BEAT_S


class Holding:
    """Renews the lease of a claimed row for the length of a block; `lost` says it was taken away.

    Args:
        name: of the thread, which has a database connection of its own.
        renew: keeps the lease; False when it is somebody else's now.
        on_lost: is called once then, in the thread.
    """

    def __init__(
        self, name: str, renew: Callable[[], bool], on_lost: Callable[[], None] = lambda: None
    ) -> None:
        self.lost = False
        self._renew, self._on_lost = renew, on_lost
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat, name=name, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _beat(self) -> None:
        failing_since: float | None = None
        try:
            while not self.lost and not self._over.wait(BEAT_S):
                try:
                    held = self._renewed()
                    failing_since = None
                except DatabaseError:
                    # a full disk or a locked database: keep on until the lease has run out
                    failing_since = failing_since or clock.monotonic()
                    held = clock.monotonic() - failing_since < settings.SANDUK_LEASE_SECONDS
                self.lost = not held
        finally:
            connections.close_all()

    def _renewed(self) -> bool:
        close_old_connections()  # a server that was started again wants a new one
        if self._renew():
            return True
        self._on_lost()
        return False
