"""The process that owns both clusters: starts them, watches them, ends them with all they started.

A cluster is a session of its own, so that nothing of it outlives a kill of its group. It is told to
stop by a signal to its main process alone: one to the whole group would hit workers in mid-task.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from runs import clock
from runs.own_program import own_program
from runs.queue import CONTROL, RUNS

STOP_GRACE_S = 40.0  # for a run to be torn down, and for the cluster to end behind it
KILLED_AT_ONCE = 3  # a cluster that dies more often than this in a row is not started again
STEADY_S = 60.0


@dataclass(slots=True)
class ClusterProcess:
    """One cluster. `pid` is its main process's, and its process group's."""

    name: str
    process: subprocess.Popen[bytes]
    since: float = field(default_factory=clock.monotonic)

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def holds(self, pid: int) -> bool:
        """Whether a process is one of its own."""
        try:
            return os.getpgid(pid) == self.pid
        except ProcessLookupError:
            return False

    def stop(self) -> None:
        """Take nothing more, end when the tasks under way have."""
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGTERM)

    def interrupt(self, pids: Iterable[int]) -> None:
        """Have these workers of it end what they do."""
        for pid in pids:
            if self.holds(pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM)

    def kill(self) -> None:
        """End whatever is left of it."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.process.wait()


def started(name: str) -> ClusterProcess:
    """Start one cluster."""
    environment = {key: value for key, value in os.environ.items() if key != "Q_CLUSTER_NAME"}
    if name != CONTROL:
        environment["Q_CLUSTER_NAME"] = name
    process = subprocess.Popen(
        own_program("cluster", str(os.getpid()), name),
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        env=environment,
    )
    return ClusterProcess(name, process)


class Clusters:
    """Both of them.

    Args:
        busy: pids of processes that execute something now, as the rows say.
        say: is told in a sentence what happens to them.
    """

    def __init__(self, busy: Callable[[], list[int]], say: Callable[[str], None]) -> None:
        self._busy, self._say = busy, say
        self._deaths: dict[str, int] = {}
        self.each = {name: started(name) for name in (CONTROL, RUNS)}

    def mend(self) -> bool:
        """Start again what died. False when one dies again and again: give up."""
        for name, cluster in self.each.items():
            if cluster.alive:
                continue
            lived_s = clock.monotonic() - cluster.since
            self._deaths[name] = 1 if lived_s > STEADY_S else self._deaths.get(name, 0) + 1
            if self._deaths[name] > KILLED_AT_ONCE:
                self._say(f"the {name} cluster died {self._deaths[name]} times in a row")
                return False
            self._say(f"the main process of the {name} cluster is gone; starting it again")
            self._finish(cluster)
            self.each[name] = started(name)
        return True

    def restart(self, name: str, why: str) -> None:
        """End one that hangs, and start it again."""
        self._say(f"the {name} cluster is started again: {why}")
        cluster = self.each[name]
        cluster.stop()
        self._finish(cluster)
        self.each[name] = started(name)

    def _finish(self, cluster: ClusterProcess) -> None:
        """Let what its workers do be torn down, then end the rest."""
        end = clock.monotonic() + STOP_GRACE_S
        cluster.interrupt(self._busy())
        while self._working(cluster) and clock.monotonic() < end:
            with contextlib.suppress(subprocess.TimeoutExpired):
                cluster.process.wait(0.2)
            if not cluster.alive:
                _pause()
        cluster.kill()

    def _working(self, cluster: ClusterProcess) -> bool:
        return any(cluster.holds(pid) for pid in self._busy())

    def drain(self, patience_s: float, hurried: Callable[[], bool]) -> None:
        """Stop both: short work ends by itself, what is left after `patience_s` is interrupted."""
        for cluster in self.each.values():
            cluster.stop()
        end = clock.monotonic() + patience_s
        while self._any_alive() and clock.monotonic() < end and not hurried():
            _pause()
        for cluster in self.each.values():
            cluster.interrupt(self._busy())
        end = clock.monotonic() + STOP_GRACE_S
        while self._any_alive() and clock.monotonic() < end:
            _pause()
        for cluster in self.each.values():
            cluster.kill()

    def _any_alive(self) -> bool:
        return any(cluster.alive for cluster in self.each.values())


def _pause() -> None:
    time.sleep(0.2)
