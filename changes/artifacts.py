"""Files an agent leaves for a person to look at: `.sanduk/artifacts/`, pictures and texts.

They are kept outside the repository and outside every mount, under ids of ours. Nothing opens one
by the name its maker gave it, and only pictures are ever shown as what they say they are.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.db import transaction

from changes import own_files
from changes.models import Artifact, Attempt
from changes.models.change import new_uid
from runs import tree
from runs.refusal import Refusal

DIRECTORY = "artifacts"
FILE_MAX = 5 << 20  # bytes
TOTAL_MAX = 50 << 20
COUNT_MAX = 50
# the type each is served with: what could run in a browser is text
TYPES = {
    "png": "image/png", "jpg": "image/jpeg", "jpeg": "image/jpeg", "gif": "image/gif",
    "webp": "image/webp", "svg": "text/plain", "html": "text/plain", "txt": "text/plain",
    "md": "text/plain", "log": "text/plain", "json": "text/plain", "csv": "text/plain",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Taken:
    """One name that was found; `refused` says why its content is not kept."""

    name: str
    data: bytes
    refused: str = ""


def take(clone: Path) -> tuple[Taken, ...]:
    """What an agent left. Never raises because of it."""
    found: list[Taken] = []
    room, kept = TOTAL_MAX, 0
    for file in own_files.within(clone, DIRECTORY, limit=FILE_MAX):
        why = file.reason or _why_not(file.name)
        data = file.data or b""
        if not why and kept >= COUNT_MAX:
            why = f"there are more than {COUNT_MAX}"
        if not why and len(data) > room:
            why = f"all of them together are larger than {TOTAL_MAX >> 20} MiB"
        if why:
            found.append(Taken(file.name, b"", why))
        else:
            room, kept = room - len(data), kept + 1
            found.append(Taken(file.name, data))
    return tuple(found)


def keep(attempt: Attempt, taken: tuple[Taken, ...]) -> None:
    """Write rows, and the content of what is kept. Raises OSError when there is no room."""
    place = _place(attempt)
    written: list[Path] = []
    try:
        with transaction.atomic():
            for each in taken:
                uid = new_uid()
                if not each.refused:
                    place.mkdir(mode=0o700, parents=True, exist_ok=True)
                    written.append(place / uid)
                    _write(place / uid, each.data)
                Artifact.objects.create(
                    attempt=attempt,
                    uid=uid,
                    name=each.name,
                    size=len(each.data),
                    sha256=hashlib.sha256(each.data).hexdigest(),
                    refused=each.refused,
                )
    except BaseException:
        for path in written:
            path.unlink(missing_ok=True)
        raise


def content_of(artifact: Artifact) -> bytes:
    """What was kept. Raises Refusal when it is not there, or is not that any more."""
    if artifact.refused:
        raise Refusal(f"artifact {artifact.uid} was not kept: {artifact.refused}")
    try:
        with tree.opened(str(_place(artifact.attempt))) as directory:
            found = tree.read_file(directory, artifact.uid, limit=FILE_MAX)
    except OSError as exc:
        raise Refusal(f"artifact {artifact.uid} cannot be read: {exc.strerror or exc}") from None
    if hashlib.sha256(found.data).hexdigest() != artifact.sha256:
        raise Refusal(f"artifact {artifact.uid} is not what the agent left")
    return found.data


def type_of(artifact: Artifact) -> str:
    """The type to serve it with, by its name alone."""
    return TYPES.get(_suffix(artifact.name), "application/octet-stream")


def _why_not(name: str) -> str:
    suffix = _suffix(name)
    return "" if suffix in TYPES else f"only {', '.join(sorted(TYPES))} are kept"


def _suffix(name: str) -> str:
    return name.rpartition(".")[2].lower() if "." in name else ""


def _place(attempt: Attempt) -> Path:
    home: Path = settings.SANDUK_HOME
    return home / "changes" / attempt.change.uid / DIRECTORY


def _write(path: Path, data: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
        file.write(data)
