"""The image that a repository's agents and tests run in: the operator's recipe, kits and set-up.

The set-up runs while the image is built, from lock files of the base commit alone, so that tests
need no network. It is a kit of our own making, after all others: its hash covers the commands and
the files, so the image is built anew when one of them differs, and else found. The operator's file
names everything; the branch names nothing.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec

from changes import attempts, rules
from changes.entries import Entry, listing
from changes.models import Repository
from changes.rules import Rules
from changes.store import Store
from recipes.catalog import is_path
from recipes.files import MAX_FILE_BYTES
from runs.order import Order
from runs.paths import expanded
from runs.refusal import HostRefusal, Refusal
from runs.visible import visible

PROJECT = "/opt/project"  # in the image: where the lock files lie, and set-up commands begin
_KEPT, _KEPT_S = 20, 30 * 86400.0  # sets of lock files that are kept at least, and how long
_SEGMENT = r"(?!\.{1,2}(?:/|$))[A-Za-z0-9._+@%~ -]+"
_PLAIN = re.compile(f"{_SEGMENT}(?:/{_SEGMENT})*")


def fitted(order: Order, repository: Repository, said: Rules, base_commit: str) -> Order:
    """The order, in the repository's own image.

    What the order itself says (`recipe`, `image`, `containerfile`, `browser`) comes before the
    operator's rules; its kits are added to theirs. An image or a Containerfile of somebody's own is
    used as it is: no kit and no set-up goes into it.

    Args:
        base_commit: is in the repository's store; its lock files go into the image.
    Raises:
        Refusal: a lock file is not in the base commit, or cannot be copied.
        GitError: the store cannot be read.
    """
    file = rules.file_of(repository.uid)
    if said.lock_files and not said.set_up:
        raise Refusal(f"{file}: lock_files mean nothing without set_up, which reads them")
    if order.image or order.containerfile:
        return order
    recipe = order.recipe or _absolute(said.recipe, file, "recipe")
    # an order that was fitted before may be so again, by rules that have changed
    asked = (kit for kit in order.kits if not Path(kit).is_relative_to(_place_of(repository)))
    kits = [*(_absolute(kit, file, "kits") for kit in said.kits), *asked]
    if said.set_up:
        kits.append(str(_set_up(repository, said, base_commit)))
    browser = said.browser if order.browser is None else order.browser
    return msgspec.structs.replace(
        order, recipe=recipe, kits=tuple(dict.fromkeys(kits)), browser=browser
    )


def _place_of(repository: Repository) -> Path:
    return rules.file_of(repository.uid).with_suffix(".set-up")


def _absolute(spec: str, file: Path, key: str) -> str:
    """A path starts where the rules lie: from the current directory it might be the branch's."""
    if not is_path(spec):
        return spec
    return str(file.parent / expanded(spec, what=f"{file}: {key}"))


def _set_up(repository: Repository, said: Rules, base_commit: str) -> Path:
    """The directory of a kit that copies the lock files and runs the commands."""
    files = _lock_files(repository, said, base_commit)
    tools: list[dict[str, Any]] = [
        {
            "name": f"lock-file-{number}",
            "type": "copy",
            "from": f"files/{path}",
            "to": f"{PROJECT}/{path}",
            "sha256": hashlib.sha256(content).hexdigest(),
            "mode": "0644",
        }
        for number, (path, content) in enumerate(files.items(), 1)
    ]
    commands = [line for command in said.set_up for line in command.splitlines()]
    lines = [f"mkdir -p {PROJECT}", f"cd {PROJECT}", *commands]
    tools.append({"name": "set-up", "type": "run", "lines": lines})
    kit = {
        "name": repository.uid,
        "description": "What this repository's tests need, from its lock files",
        "tools": tools,
    }
    text = json.dumps(kit, ensure_ascii=False, indent=2).encode()
    place = _place_of(repository) / hashlib.sha256(text).hexdigest()[:16]
    try:
        if not place.is_dir():
            _write(place, repository.uid, text, files)
            _thin_out(place.parent)
        os.utime(place)
    except OSError as exc:
        raise HostRefusal(f"{place} cannot be written: {exc.strerror}") from None
    return place / repository.uid


def _write(place: Path, name: str, kit: bytes, files: dict[str, bytes]) -> None:
    """Whole or not at all: what is there is found by its hash, and never altered."""
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=".new-", dir=place.parent))
    try:
        (draft / name / "files").mkdir(parents=True)
        (draft / name / "kit.json").write_bytes(kit)
        for path, content in files.items():
            file = draft / name / "files" / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        try:
            draft.rename(place)
        except OSError:
            if not place.is_dir():  # else somebody else made the same one first
                raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _thin_out(directory: Path) -> None:
    """Remove what has long not been asked for; an order that still names it is refused then."""
    found = sorted(directory.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in found[_KEPT:]:
        if time.time() - path.stat().st_mtime > _KEPT_S:
            shutil.rmtree(path, ignore_errors=True)


def _lock_files(repository: Repository, said: Rules, base_commit: str) -> dict[str, bytes]:
    if not said.lock_files:
        return {}
    store = attempts.kept_store(repository)
    held = {entry.path: entry for entry in listing(store.path, store.tree_of(base_commit))}
    return {path: _content(path, held, store, repository) for path in said.lock_files}


def _content(path: str, held: dict[bytes, Entry], store: Store, repository: Repository) -> bytes:
    said = f"{rules.file_of(repository.uid)}: lock_files: {visible(path, limit=200)}"
    if not _PLAIN.fullmatch(path):
        raise Refusal(f"{said} is no plain path below the top of the repository")
    entry = held.get(os.fsencode(path))
    if entry is None:
        raise Refusal(f"{said} is not in the base commit: commit it, or take it out of the list")
    if entry.mode not in ("100644", "100755"):
        raise Refusal(f"{said} is no regular file in the base commit")
    found = store.blob(entry.id, limit=MAX_FILE_BYTES)
    if found.cut:
        raise Refusal(f"{said} is larger than {MAX_FILE_BYTES >> 20} MB")
    return found.data
