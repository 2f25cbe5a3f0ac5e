"""What is left to do when the executor is killed: one tiny process that only waits for that.

It holds the reading end of a pipe. The executor writes `done` when it has given everything back;
an end of file without that word means it died, and the undertaker removes the run's containers by
label and its private directory. It is plain `sh`: nothing of ours needs to work any more.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess

from runs.box import Box

# a worker's environment holds keys; the engine's client needs none of them
_KEPT = ("PATH", "HOME", "DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_CERT_PATH",
         "DOCKER_TLS_VERIFY", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME",
         "CONTAINERS_CONF", "CONTAINER_HOST", "TMPDIR")  # fmt: skip


class Undertaker:
    """Args:
    script: a line of POSIX shell that removes the run's containers and networks.
    box: the run's private directory.
    """

    def __init__(self, script: str, box: Box) -> None:
        reading, self._writing = os.pipe()
        steps = (
            'read word; [ "$word" = done ] && exit 0',
            script,
            f"rm -rf {shlex.quote(str(box.path))}",
        )
        body = "\n".join(steps)
        try:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", body],
                stdin=reading,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                env={name: os.environ[name] for name in _KEPT if name in os.environ},
                cwd="/",
            )
        finally:
            os.close(reading)

    def dismiss(self) -> None:
        """Everything was given back: let it go home."""
        self._close(b"done\n")

    def let_work(self) -> None:
        """Something could not be given back: leave it to the undertaker."""
        self._close(b"")

    def _close(self, word: bytes) -> None:
        if self._writing < 0:
            return
        with contextlib.suppress(BrokenPipeError):
            if word:
                os.write(self._writing, word)
        os.close(self._writing)
        self._writing = -1
        if word:
            self._process.wait(timeout=5)
