"""Acting as an ordinary account for a while, for tests that root runs."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ORDINARY = 1000
# everybody's on most machines
needs_dev_full = pytest.mark.skipif(
    not os.access("/dev/full", os.W_OK), reason="this account may not write to /dev/full here"
)
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another account")


@contextlib.contextmanager
def acting_as(uid: int = ORDINARY) -> Iterator[None]:
    """Have this process's rights be those of `uid` for the length of the block."""
    groups = os.getgroups()
    os.setgroups([])
    os.setresgid(uid, uid, 0)
    os.setresuid(uid, uid, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)
        os.setresgid(0, 0, 0)
        os.setgroups(groups)


@contextlib.contextmanager
def open_directory() -> Iterator[Path]:
    """A directory that any account may enter and write in; pytest's own are closed."""
    path = Path(tempfile.mkdtemp(prefix="sanduk-test-", dir="/tmp"))
    path.chmod(0o777)
    try:
        yield path
    finally:
        shutil.rmtree(path)
