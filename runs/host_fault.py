"""Whether a run could not be started because of this host, not because of what was asked for."""

from __future__ import annotations

import errno

from runs.engines.base import BuildFailed, Engine, EngineError, EngineUnavailable
from runs.refusal import HostRefusal, Refusal

_FULL_CODES = (errno.ENOSPC, errno.EDQUOT)
_FULL = ("no space left on device", "disk quota exceeded")  # as every C library words them


async def is_by_host(engine: Engine, error: Exception) -> bool:
    """Judge what kept a run from being started. The engine is asked when it may be down.

    A key that the provider refuses, and an image that cannot be built for another reason than a
    full disk, are not put down to the host.
    """
    if isinstance(error, HostRefusal | EngineUnavailable):
        return True
    if not isinstance(error, EngineError):
        return False
    lines = error.lines if isinstance(error, BuildFailed) else ()
    if any(words in text.lower() for text in (str(error), *lines) for words in _FULL):
        return True
    try:
        await engine.ready()
    except EngineError:
        return True
    return False


def refusal_of(error: Exception, text: str) -> Refusal:
    """The refusal of what the host's disks, or what lies on them, kept from being done."""
    is_full = isinstance(error, OSError) and error.errno in _FULL_CODES
    return HostRefusal(text) if is_full else Refusal(text)
