"""The queue as a doorbell: a row in it says "look at number 17", ours says what there is to do.

This is the one module that knows django-q2. Losing a row, doubling it or finding it a week later
must all be harmless: whoever comes claims our own row first. Why each setting is what it is stands
in docs/worker.md.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from queue import Full
from types import FrameType
from typing import Any, NoReturn

from django.conf import settings
from django.dispatch import receiver
from django_q import cluster as q2
from django_q.conf import Conf
from django_q.models import OrmQ, Schedule
from django_q.signals import post_spawn
from django_q.tasks import async_task

from runs import clock

CONTROL, RUNS = "sanduk", "runs"
CLOCK_NAME = "sanduk tick"
BACKSTOP_S = 900  # theirs lies so far behind our own deadline
_PARENT_LOOK_S = 1.0
_STOP_LOOK_S = 0.1


def ring(task: str, number: int, *, cluster: str = CONTROL, limit_s: int = 300) -> None:
    """Have a worker call `task(number)`. Inside a transaction the bell rings when that commits.

    Args:
        task: a dotted name of ours, never anybody else's word.
        limit_s: our own deadline for it.
    """
    _sign_with_the_kept_key()
    async_task(
        task,
        number,
        cluster=cluster,
        timeout=limit_s + (BACKSTOP_S if cluster == RUNS else 0),
        ack_failure=True,
        save=False,
    )


def keep_clock(task: str) -> None:
    """See that there is exactly one schedule in there: `task(0)` every minute.

    Any other one was made by somebody else, and could call anything.
    """
    others = Schedule.objects.exclude(name=CLOCK_NAME, func=task)
    others.delete()
    rows = list(Schedule.objects.order_by("pk"))
    for extra in rows[1:]:
        extra.delete()
    if not rows:
        Schedule.objects.create(
            name=CLOCK_NAME,
            func=task,
            args="0",
            schedule_type=Schedule.MINUTES,
            minutes=1,
            repeats=-1,
            next_run=clock.now(),
        )


def waiting(cluster: str) -> int:
    """How many bells nobody has heard, or are being worked on."""
    found: int = OrmQ.objects.filter(key=cluster).count()
    return found


def hanging(cluster: str, task: str) -> set[int]:
    """Numbers for which a bell hangs in the queue that no worker has taken yet."""
    _sign_with_the_kept_key()
    untaken = OrmQ.objects.filter(key=cluster, lock__lte=clock.now())
    bells = [bell.task for bell in untaken]
    return {bell["args"][0] for bell in bells if bell.get("func") == task and bell.get("args")}


def _sign_with_the_kept_key() -> None:
    """The queue copies the key when it is loaded: in a first process, before there is one."""
    Conf.SECRET_KEY = settings.SECRET_KEY


def run_cluster(parent: int) -> None:
    """Be the main process of the cluster that Q_CLUSTER_NAME names, until SIGTERM or SIGINT.

    It ends by itself, letting its workers finish, when the process that started it is gone.

    Args:
        parent: that process, as it said itself: it may be gone before we can ask.
    """
    q2.Sentinel = _Sentinel
    cluster = q2.Cluster()
    cluster.start()
    # begun behind the fork: the children have no use for it
    threading.Thread(target=_end_with_parent, args=(parent,), daemon=True).start()
    sentinel = cluster.sentinel
    while sentinel.is_alive():
        sentinel.join(timeout=1)


class _Sentinel(q2.Sentinel):  # type: ignore[misc]
    """Theirs stops its workers by a word for each, through a queue that holds one.

    A worker that ends behind its task takes none, so with two of those it waits for ever: for room
    in the queue, or for the pusher, which waits for the same.
    """

    def stop(self) -> None:
        self.event_out.set()
        while any(worker.is_alive() for worker in self.pool):
            if not self.pusher.is_alive():
                with contextlib.suppress(Full):
                    self.task_queue.put_nowait("STOP")
            time.sleep(_STOP_LOOK_S)
        self.pool.clear()
        self.pusher.terminate()  # what it holds is a bell; whoever looks next rings it again
        self.task_queue.cancel_join_thread()
        super().stop()


def _end_with_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_PARENT_LOOK_S)
    os.kill(os.getpid(), signal.SIGTERM)


@receiver(post_spawn)
def _install(sender: Any, **_: Any) -> None:
    """In every new worker: SIGTERM's default action would jam an idle one's queue for ever.

    While a run is executed `runs.interrupts` has the signal, and ends the run with all it took.
    """
    signal.signal(signal.SIGTERM, _on_term)


def _on_term(number: int, frame: FrameType | None) -> NoReturn:
    raise SystemExit(0)


@contextlib.contextmanager
def told_to_stop() -> Iterator[None]:
    """Around a task's work: a stop that came outside of a run ends the task, not the worker.

    An exception that leaves a task so would keep its row in the queue.
    """
    with contextlib.suppress(SystemExit):
        yield
