"""Secrets kept for this installation: one 0600 file in SANDUK_HOME, names to values.

The environment always wins over it; nothing of it is ever written into the database.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings

from runs import clock
from runs.refusal import Refusal


class Damaged(Refusal):
    """The file of our secrets is not what we wrote."""


NAME = re.compile(r"[A-Z][A-Z0-9_]{0,99}")
_PERSONAL = re.compile(r"PERSON_[1-9][0-9]{0,17}_[A-Z0-9_]+")  # runs.own_keys gives such names
VALUE_MAX = 16 * 1024


def stored() -> dict[str, str]:
    """Every secret by name.

    Raises Damaged when the file is not what we wrote, Refusal when it cannot be read; no value is
    named.
    """
    path = stored_in()
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except OSError as exc:
        raise Refusal(f"{path} cannot be read: {exc.strerror}") from None
    except (ValueError, RecursionError):
        raise Damaged(_damaged(path)) from None
    if not isinstance(found, dict) or not all(isinstance(v, str) for v in found.values()):
        raise Damaged(_damaged(path))
    return found


def store(name: str, value: str) -> None:
    """Keep a secret. Raises Refusal for a name or a value that cannot be one."""
    check(name, value)
    with _exclusively():
        _write({**stored(), name: value})


def clear(name: str) -> bool:
    """Forget a secret; False when there was none. Raises Refusal when it stays."""
    with _exclusively():
        found = stored()
        if name not in found:
            return False
        del found[name]
        _write(found)
        return True


def set_aside_damaged() -> Path | None:
    """Move a damaged file out of the way; to where, or None when there was nothing wrong.

    It stays, 0600: somebody may want to read a key in it. Raises OSError.
    """
    with _exclusively():
        try:
            stored()
        except Damaged:
            path = stored_in()
            path.chmod(0o600)
            name = f"credentials.damaged-{clock.now():%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
            return path.rename(path.with_name(name))
    return None


def check(name: str, value: str) -> None:
    """Raise Refusal for a name or a value that cannot be kept; the value is not shown."""
    check_name(name)
    if not value or len(value) > VALUE_MAX or not (value.isascii() and value.isprintable()):
        raise Refusal(f"what was given for {name} is empty, too long, or no single printable line")


def check_name(name: str) -> None:
    if not NAME.fullmatch(name):
        raise Refusal(f"{name!r} is no name of a secret: capitals, digits and _, as OPENAI_API_KEY")


def is_personal(name: str) -> bool:
    """Whether it is a person's own, which no variable's name leads to."""
    return _PERSONAL.fullmatch(name) is not None


def masked(value: str) -> str:
    """Enough of a secret to recognise it: its last four characters, of 16 or more."""
    return f"…{value[-4:]}" if len(value) >= 16 else "…"


def _damaged(path: Path) -> str:
    return f"{path} is damaged; set the keys again with: sanduk auth set NAME, which moves it aside"


def stored_in() -> Path:
    """The file; there is none before the first secret."""
    home: Path = settings.SANDUK_HOME
    return home / "credentials"


@contextmanager
def _exclusively() -> Iterator[None]:
    lock = os.open(
        stored_in().with_name("credentials.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
    )
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _write(content: dict[str, str]) -> None:
    """Replace the file as a whole; it is 0600 before the first byte of a secret is in it.

    Raises Refusal when that is not possible; the secrets that were there stay.
    """
    try:
        _replace(stored_in(), content)
    except OSError as exc:
        raise Refusal(f"{stored_in()} cannot be written: {exc.strerror}") from None


def _replace(path: Path, content: dict[str, str]) -> None:
    draft = path.with_name(f".credentials.{os.getpid()}.{secrets.token_hex(4)}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(draft, flags, 0o600)
    try:
        with os.fdopen(descriptor, "w") as file:
            json.dump(content, file, indent=1)
            file.flush()
            os.fsync(descriptor)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
