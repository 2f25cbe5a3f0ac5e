"""Holding a wakeup: its lease is renewed beside the work, in a thread with its own connection."""

from __future__ import annotations

from django.conf import settings

from assistants.models import Wakeup
from runs.holding import Holding
from runs.models import Run


class Hold(Holding):
    """Renews the lease of a claimed wakeup for the length of a block.

    `lost` says that it is somebody else's now; its run, if it has one, was asked to stop then.
    """

    def __init__(self, pk: int, owner: str) -> None:
        super().__init__(
            f"wakeup-{pk}",
            lambda: Wakeup.objects.renew(pk, owner, settings.SANDUK_LEASE_SECONDS),
            lambda: self._stop_run(pk),
        )

    def _stop_run(self, pk: int) -> None:
        for uid in Run.objects.live().filter(wakeup=pk).values_list("uid", flat=True):
            Run.objects.request_stop(uid, "sanduk, whose hold on the wakeup was lost")
