"""Holding a wakeup: its lease is renewed beside the work, in a thread with its own connection."""

from __future__ import annotations

import threading
from types import TracebackType

from django.conf import settings
from django.db import DatabaseError, close_old_connections, connections

from assistants.models import Wakeup
from runs import clock, lease
from runs.models import Run


class Hold:
    """Renews the lease of a claimed wakeup for the length of a block.

    `lost` says that it is somebody else's now; its run, if it has one, was asked to stop then.
    """

    def __init__(self, pk: int, owner: str) -> None:
        self.lost = False
        self._pk, self._owner = pk, owner
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat, name=f"wakeup-{pk}", daemon=True)

    def __enter__(self) -> Hold:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()

    def _beat(self) -> None:
        failing_since: float | None = None
        try:
            while not self.lost and not self._over.wait(lease.BEAT_S):
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
        if Wakeup.objects.renew(self._pk, self._owner, settings.SANDUK_LEASE_SECONDS):
            return True
        for uid in Run.objects.live().filter(wakeup=self._pk).values_list("uid", flat=True):
            Run.objects.request_stop(uid, "sanduk, whose hold on the wakeup was lost")
        return False
