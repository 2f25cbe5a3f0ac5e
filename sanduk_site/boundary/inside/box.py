"""What is looked at once for several probes, and what all of them use."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import subprocess
import time
from typing import Any

ENTRIES, WALK_S = 500_000, 40.0
SKIPPED = ("/proc", "/sys", "/dev")


class Untried(Exception):
    """This probe cannot be made here; the text says why."""


class Box:
    """What is looked at once for several probes."""

    def __init__(self, order: dict[str, Any]) -> None:
        self.order = order
        self.sockets: list[str] = []
        self.canaries: list[str] = []
        self.inodes: list[str] = []
        self.extra: dict[str, dict[str, str]] = {}  # what a probe says besides
        self.whole = True
        self._walk()

    def _walk(self) -> None:
        wanted = {int(number): digest for number, digest in self.order["inodes"].items()}
        end, count = time.monotonic() + WALK_S, 0
        for folder, folders, names in os.walk("/"):
            folders[:] = [name for name in folders if os.path.join(folder, name) not in SKIPPED]
            for name in names + folders:
                count += 1
                path = os.path.join(folder, name)
                if name == self.order["canary"]:
                    self.canaries.append(path)
                try:
                    facts = os.lstat(path)
                except OSError:
                    continue
                if stat.S_ISSOCK(facts.st_mode):
                    self.sockets.append(path)
                elif facts.st_ino in wanted and digest_of(path) == wanted[facts.st_ino]:
                    self.inodes.append(path)
            if count > ENTRIES or time.monotonic() > end:
                self.whole = False
                return


def digest_of(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read(1 << 20)).hexdigest()
    except OSError:
        return ""


def status() -> dict[str, str]:
    lines = open("/proc/self/status").read().splitlines()
    return {line.partition(":")[0]: line.partition(":")[2].strip() for line in lines}


def said(*words: str, timeout: float = 20, **options: Any) -> subprocess.CompletedProcess[str]:
    """What a command answers; Untried when it is not in this image."""
    if shutil.which(words[0]) is None:
        raise Untried(f"this image has no {words[0]}")
    return subprocess.run(
        words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
        text=True, errors="replace", timeout=timeout, check=False, **options
    )  # fmt: skip
