"""The base of a change, kept beside it from the moment it was asked for: one bundle and its facts.

So each of its attempts starts from the same content, whatever becomes of the repository meanwhile.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
from django.conf import settings

from changes import bundle
from changes.bundle import Provided
from changes.models import Change
from changes.store import write_whole
from runs.refusal import HostRefusal

BUNDLE, FACTS = "base.bundle", "base.json"
_PATHS = ("repository", "git_dir")


class _Kept(msgspec.Struct, frozen=True):
    repository: bytes
    git_dir: bytes
    base_commit: str
    base_tree: str
    branch: str
    object_format: str
    shallow: tuple[str, ...]
    left_out: tuple[str, ...]


_PLAIN = tuple(name for name in _Kept.__struct_fields__ if name not in _PATHS)


def directory_of(uid: str) -> Path:
    """What is kept of a change beside its rows."""
    home: Path = settings.SANDUK_HOME
    return home / "changes" / uid


def keep(uid: str, path: Path, ref: str, history: int | None) -> Provided:
    """Take the base out of a repository, for the change that is going to have this id.

    Raises:
        Refusal: as `changes.bundle.provide`, or nothing can be written here.
    """
    place = directory_of(uid)
    try:
        place.mkdir(mode=0o700, parents=True)
    except OSError as exc:
        raise HostRefusal(f"{place} cannot be made: {exc.strerror}") from None
    try:
        return _written(place, bundle.provide(path, ref or None, history, directory=place))
    except OSError as exc:
        forget(uid)
        raise HostRefusal(f"{place} cannot be written: {exc.strerror or exc}") from None
    except BaseException:
        forget(uid)
        raise


def share(uid: str, other: str) -> Provided:
    """Keep the base of another change, asked for together with this one, for this one too."""
    place = directory_of(uid)
    try:
        place.mkdir(mode=0o700, parents=True)
        os.link(directory_of(other) / BUNDLE, place / BUNDLE)
        found = replace(_read(other), bundle=place / BUNDLE)
        return _written(place, found)
    except OSError as exc:
        forget(uid)
        raise HostRefusal(f"{place} cannot be written: {exc.strerror or exc}") from None


def of(change: Change) -> Provided:
    """What was kept; taken again from the repository where it is gone. Raises Refusal."""
    try:
        found = _read(change.uid)
        if found.bundle.is_file() and found.base_commit == change.base_commit:
            return found
    except (OSError, msgspec.MsgspecError):
        pass
    forget_base(change.uid)
    place = directory_of(change.uid)
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = Path(change.repository.path)
        ref = change.base_commit or change.base_ref or None
        return _written(place, bundle.provide(path, ref, change.history, directory=place))
    except OSError as exc:
        raise HostRefusal(f"{place} cannot be written: {exc.strerror or exc}") from None


def forget_base(uid: str) -> None:
    """Remove the bundle of a change that is over."""
    for name in (BUNDLE, FACTS):
        (directory_of(uid) / name).unlink(missing_ok=True)


def forget(uid: str) -> None:
    """Remove everything of a change that never was."""
    shutil.rmtree(directory_of(uid), ignore_errors=True)


def _written(place: Path, found: Provided) -> Provided:
    kept = replace(found, bundle=place / BUNDLE)
    if found.bundle != kept.bundle:
        found.bundle.replace(kept.bundle)
    # a path need not be UTF-8
    facts = {name: os.fsencode(getattr(kept, name)) for name in _PATHS}
    facts |= {name: getattr(kept, name) for name in _PLAIN}
    write_whole(place / FACTS, msgspec.json.encode(facts).decode())
    return kept


def _read(uid: str) -> Provided:
    place = directory_of(uid)
    kept = msgspec.json.decode((place / FACTS).read_bytes(), type=_Kept)
    facts: dict[str, Any] = {name: getattr(kept, name) for name in _PLAIN}
    facts |= {name: Path(os.fsdecode(getattr(kept, name))) for name in _PATHS}
    return Provided(**facts, bundle=place / BUNDLE)
