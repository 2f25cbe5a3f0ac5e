"""Keeping the site's process alive, beside the clusters or alone."""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import socket
import subprocess
from collections.abc import Callable

from assistants.worker import LOOK_S, Signals
from runs import clock
from runs.own_program import own_program
from runs.refusal import Refusal
from sanduk_site import whereabouts
from sanduk_site.web import GRACE_S

DEATHS_MAX = 5  # a site that dies more often than this in a row is not started again
STEADY_S = 60.0
BACK_OFF_S = (0.0, 1.0, 2.0, 4.0, 8.0)
ANSWERS_S = 60.0


def bound(host: str, port: int) -> socket.socket:
    """A socket that listens there; 0 is any free port. Raises Refusal when it cannot be had.

    It is the supervisor's: while the site's process is started again, callers wait in its queue.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(128)
    except (OSError, OverflowError) as exc:
        listening.close()
        why = exc.strerror if isinstance(exc, OSError) else "no such port"
        raise Refusal(
            f"the site cannot listen on {host}, port {port}: {why}; another one: --port"
        ) from None
    return listening


class SiteProcess:
    """Args:
    listening: the socket it answers on.
    say: is told in a sentence what happens to it.
    """

    def __init__(self, listening: socket.socket, say: Callable[[str], None]) -> None:
        self._listening, self._say = listening, say
        self._deaths = 0
        self._due: float | None = None  # it is dead, and started again then
        self._process = self._started()

    @property
    def pid(self) -> int:
        return self._process.pid

    def _started(self) -> subprocess.Popen[bytes]:
        descriptor = self._listening.fileno()
        self._since = clock.monotonic()
        return subprocess.Popen(
            own_program("web", str(descriptor), str(os.getpid())),
            stdin=subprocess.DEVNULL,
            pass_fds=(descriptor,),
            start_new_session=True,  # a terminal's Ctrl-C is for the supervisor
            env=os.environ,
        )

    def mend(self) -> bool:
        """Start it again if it died, later each time. False when it dies again and again."""
        now = clock.monotonic()
        if self._due is None:
            if self._process.poll() is None:
                return True
            self._deaths = 1 if now - self._since > STEADY_S else self._deaths + 1
            if self._deaths > DEATHS_MAX:
                self._say(f"the site died {self._deaths} times in a row")
                return False
            self._due = now + BACK_OFF_S[self._deaths - 1]
            self._say(f"the process of the site is gone ({self._how()}); starting it again")
            self._kill_rest()
        if now >= self._due:
            self._due = None
            self._process = self._started()
        return True

    def _how(self) -> str:
        code = self._process.returncode
        return f"exit code {code}" if code >= 0 else f"signal {-code}"

    def answers(self, seconds: float = ANSWERS_S) -> bool:
        """Whether it answers within this time; False when it died instead."""
        host, port = self._listening.getsockname()[:2]
        end = clock.monotonic() + seconds
        while clock.monotonic() < end and self._process.poll() is None:
            connection = http.client.HTTPConnection(_reachable(host), port, timeout=5)
            with (
                contextlib.suppress(OSError, http.client.HTTPException),
                contextlib.closing(connection),
            ):
                connection.request("GET", "/healthz", headers={"Host": "127.0.0.1"})
                if connection.getresponse().status:
                    return True
        return False

    def stopping(self) -> None:
        whereabouts.say_stopping()

    def stop(self) -> None:
        self._due = None
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM)

    def end(self) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(2 * GRACE_S)
        self._kill_rest()
        self._listening.close()

    def _kill_rest(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def live_alone(site: SiteProcess, say: Callable[[str], None], up: str) -> int:
    """Keep the site alive without a worker until a signal; 1 when that is not possible."""
    signals = Signals()
    with signals.heard():
        say(up)
        try:
            while not signals.count:
                if not site.mend():
                    return 1
                signals.wait(LOOK_S)
            return 0
        finally:
            site.stop()
            site.end()


def _reachable(host: str) -> str:
    """An address to call for one that is listened on: of all of them, this machine's own."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104
