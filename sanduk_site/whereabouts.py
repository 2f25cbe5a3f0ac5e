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
    """

    pid: int
    url: str


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
    draft = _record().with_suffix(".draft")
    draft.write_text(json.dumps({"pid": os.getpid(), "url": url}))
    draft.replace(_record())


def base_url() -> str:
    """Where the site is up, else where it is said to be."""
    with held_if_free(LOCK) as free:
        standing = None if free else _read()
    return standing.url if standing else settings.SANDUK_BASE_URL


def _read() -> Standing | None:
    try:
        told = json.loads(_record().read_text())
        return Standing(int(told["pid"]), str(told["url"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _record() -> Path:
    home: Path = settings.SANDUK_HOME
    return home / "up.json"
