"""What the clusters of a worker are asked to do for assistants: one number in, one word out."""

from __future__ import annotations

import msgspec
from django.db import DatabaseError, close_old_connections

from assistants import collaborators, ticking, wakeups
from assistants.config import Config, restored
from assistants.models import Wakeup
from runs import clock, pulse, queue
from runs.lease import Watcher, owner_is
from runs.locks import held_if_free
from runs.models import Run

TICK, WAKE, DELIVER = (f"assistants.working.{name}" for name in ("tick", "wake", "deliver"))
CLOCK_STOPPED_S = 180.0  # without a look for so long the control cluster hangs
UNHEARD_S = 120.0  # a bell that nobody heard for so long, with room for it: the cluster hangs
BELLS_ENOUGH = 4  # looks that wait already; more would only pile up

_watcher = Watcher()


def tick(number: int) -> str:
    """One look at what is due."""
    ticking.tick(ring, watcher=_watcher)
    queue.ring(DELIVER, 0)
    return "ticked"


def wake(number: int) -> str:
    """Claim a waiting wakeup and live it to its end: its outcome, or "not ours"."""
    said = "stopped"
    with queue.told_to_stop():
        ended = wakeups.wake(number)
        said = ended.outcome if ended is not None else "not ours"
    return said


def deliver(number: int) -> str:
    """Send what is due. One worker does at a time, so that the other one is always free."""
    with held_if_free("deliver") as free:
        if free:
            collaborators.deliver_due()
    return "delivered" if free else "busy"


def send_soon() -> None:
    """Have a worker send what is due now; with many bells in the queue a look is near anyway."""
    if queue.waiting(queue.CONTROL) < BELLS_ENOUGH:
        queue.ring(DELIVER, 0)


def ring(wakeup: Wakeup) -> None:
    """Have a worker execute this wakeup."""
    try:
        config = restored(wakeup.assistant.config)
    except msgspec.ValidationError:
        config = Config()  # it will not get as far as a run
    queue.ring(
        WAKE, wakeup.pk, cluster=queue.RUNS, limit_s=config.timeout_s + config.gate_timeout_s
    )


def busy_pids() -> list[int]:
    """Processes of this machine that execute a wakeup or a run now, as the rows say."""
    running = Wakeup.objects.filter(state=Wakeup.State.RUNNING)
    owners = {
        *running.values_list("lease_owner", flat=True),
        *Run.objects.live().values_list("lease_owner", flat=True),
    }
    parts = [owner.split("/") for owner in owners]
    return [int(part[3]) for part in parts if len(part) == 5 and part[3].isdigit()]


class Watchdog:
    """Sees a cluster that is there and does nothing (django-q2's own guard does not)."""

    def __init__(self) -> None:
        self._since: dict[tuple[str, int], float] = {}
        self._began = clock.monotonic()

    def hanging(self) -> dict[str, str]:
        """Clusters to start again, each with why."""
        found = {}
        age_s = pulse.age_s("tick")
        up_s = clock.monotonic() - self._began
        if up_s > CLOCK_STOPPED_S and (age_s is None or age_s > CLOCK_STOPPED_S):
            found[queue.CONTROL] = "nothing was looked at for three minutes"
        if self._unheard():
            found[queue.RUNS] = "a wakeup or a run was rung for and nobody came"
        if found:
            self._since.clear()
            self._began = clock.monotonic()
        return found

    def _unheard(self) -> bool:
        """Whether a bell went unheard for too long while there was room."""
        if not ticking.room(ringing_counts=False):
            self._since.clear()
            return False
        wakeups = Wakeup.objects.filter(state=Wakeup.State.WAITING, rung_at__isnull=False)
        runs = Run.objects.filter(state=Run.State.QUEUED, rung_at__isnull=False)
        asleep = [("wakeup", pk) for pk in wakeups.values_list("pk", flat=True)]
        asleep += [("run", pk) for pk in runs.values_list("pk", flat=True)]
        now = clock.monotonic()
        self._since = {each: self._since.get(each, now) for each in asleep}
        return any(now - since > UNHEARD_S for since in self._since.values())


def nudge() -> bool:
    """Ring for a look now if something is due: the clock in the queue is a slow one."""
    try:
        wanted = ticking.is_wanted() or Run.objects.unheard().exists() or _somebody_died()
        if wanted and queue.waiting(queue.CONTROL) < BELLS_ENOUGH:
            queue.ring(TICK, 0)
    except DatabaseError:
        close_old_connections()  # a server that was started again wants a new one
        return False  # locked or full: the next second is another try
    return wanted


def _somebody_died() -> bool:
    """Whether a process that executed something is gone, and nobody has ended that yet."""
    running = Wakeup.objects.filter(state=Wakeup.State.RUNNING)
    owners = set(running.values_list("lease_owner", flat=True))
    owners |= set(Run.objects.live().values_list("lease_owner", flat=True))
    return any(owner_is(owner) == "gone" for owner in owners)
