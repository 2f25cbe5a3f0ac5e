"""Where this installation's site is up, as the process that keeps it up wrote down."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from runs.locks import held_if_free
from runs.refusal import Refusal

LOCK = "up"


@dataclass(frozen=True, slots=True)
class Standing:
    """Args:
    pid: the process that keeps it up.
    url: where people reach it.
    is_stopping: it waits for what is under way, and ends then.
    """

    pid: int
    url: str
    is_stopping: bool = False


@contextlib.contextmanager
def the_only_site() -> Iterator[None]:
    """Be the one `up` of this state directory. Raises Refusal that names the first."""
    with held_if_free(LOCK) as free:
        if not free:
            first = _read()
            where = f": process {first.pid}, at {first.url}" if first else ""
            raise Refusal(f"the site of {settings.SANDUK_HOME} is up already{where}")
        try:
            yield
        finally:
            _record().unlink(missing_ok=True)


def write_down(url: str) -> None:
    """Say where it is; for the process that holds `the_only_site`."""
    _write(Standing(os.getpid(), url))


def say_stopping() -> None:
    """Say that it ends soon. A disk that is full loses that, nothing else."""
    standing = _read()
    if standing is not None and standing.pid == os.getpid():
        with contextlib.suppress(OSError):
            _write(Standing(standing.pid, standing.url, is_stopping=True))


def is_stopping(keeper: int) -> bool:
    """Whether the process that keeps the site up, by its number, said that it ends soon."""
    standing = _read()
    return standing is not None and standing.is_stopping and standing.pid == keeper


def base_url() -> str:
    """Where the site is up, else where it is said to be."""
    with held_if_free(LOCK) as free:
        standing = None if free else _read()
    return standing.url if standing else settings.SANDUK_BASE_URL


def _read() -> Standing | None:
    try:
        told = json.loads(_record().read_text())
        stopping = told.get("stopping") is True
        return Standing(int(told["pid"]), str(told["url"]), is_stopping=stopping)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _write(standing: Standing) -> None:
    draft = _record().with_suffix(".draft")
    told = {"pid": standing.pid, "url": standing.url, "stopping": standing.is_stopping}
    draft.write_text(json.dumps(told))
    draft.replace(_record())


def _record() -> Path:
    home: Path = settings.SANDUK_HOME
    return home / "up.json"
