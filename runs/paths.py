"""Paths as people type them, and the places that are ours."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from runs.refusal import Refusal


def expanded(text: str, *, what: str) -> Path:
    """`text` with a leading `~` or `~name` replaced. Raises Refusal when there is no such home.

    Args:
        what: the flag it came from, for the message.
    """
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise Refusal(f"{what} {text}: there is no such home directory") from None


def runtime_place() -> Path:
    """Where this process keeps sockets while a run lives: short, local, ours alone."""
    uid = os.geteuid()
    session = os.environ.get("XDG_RUNTIME_DIR", "")
    if uid == 0 and Path("/run").is_dir():
        return Path("/run/sanduk")
    if session and len(session) < 60 and os.access(session, os.W_OK | os.X_OK):
        return Path(session) / "sanduk"
    return Path(tempfile.gettempdir()) / f"sanduk-{uid}"


def runtime_places() -> tuple[Path, ...]:
    """Every place where a run of this account may keep sockets, whatever its environment is."""
    uid = os.geteuid()
    usual = (
        Path("/run/sanduk"),
        Path(f"/run/user/{uid}/sanduk"),
        Path("/tmp") / f"sanduk-{uid}",  # noqa: S108 - named, not used
        runtime_place(),
    )
    return tuple(dict.fromkeys(Path(os.path.realpath(place)) for place in usual))
