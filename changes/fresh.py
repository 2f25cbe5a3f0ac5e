"""Fresh directories for tests: base and stored patch, written by this host from its own store.

Each is made for one run and removed behind it, whatever was left in it. One whose process died is
removed by whoever looks next.
"""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings

from changes import bundle, clone
from changes.bundle import Provided
from changes.git import GitError
from changes.models import Attempt
from changes.place import remove_whole
from changes.store import Store
from runs import lease
from runs.refusal import HostRefusal
from runs.workspace import agents_account

_OWNER = "owner"
_AUTHOR = ("tests", "tests@sanduk.invalid")


def place() -> Path:
    """Where they lie."""
    home: Path = settings.SANDUK_HOME
    return home / "tests"


@contextmanager
def directory(attempt: Attempt, store: Store) -> Iterator[Path]:
    """A directory that holds exactly an attempt's tree, for the length of the block.

    It is a clone that stands on the base commit, without what came before it, so that tests which
    ask git about their files get an answer. It belongs to whoever the container runs as.

    Raises HostRefusal: there is no room or no right for it, or the store cannot be read.
    """
    ground = place() / secrets.token_hex(8)
    try:
        ground.mkdir(mode=0o700, parents=True)
        (ground / _OWNER).write_text(lease.owner())
        work = ground / "work"
        work.mkdir(mode=0o700)
        _fill(work, attempt, store)
    except OSError as exc:
        remove_whole(ground)
        raise HostRefusal(f"{ground} cannot be filled: {exc.strerror or exc}") from None
    except GitError as exc:
        remove_whole(ground)
        raise HostRefusal(f"the files to test cannot be written: {exc}") from None
    except BaseException:
        remove_whole(ground)
        raise
    try:
        yield Path(os.path.realpath(work))
    finally:
        remove_whole(ground)


def remove_left() -> int:
    """Remove those whose process is gone; how many."""
    removed = 0
    for ground in place().iterdir() if place().is_dir() else ():
        try:
            owner = (ground / _OWNER).read_text()
        except OSError:
            continue  # being made or removed just now
        if lease.owner_is(owner) == "gone":
            remove_whole(ground)
            removed += 1
    return removed


def _fill(work: Path, attempt: Attempt, store: Store) -> None:
    base = attempt.base_commit
    object_format = store.object_format()
    with tempfile.TemporaryDirectory(dir=store.path) as scratch:
        made = bundle.write(store.path, base, (base,), object_format, Path(scratch))
        provided = Provided(
            store.path, store.path, base, attempt.base_tree, "", object_format, (base,), made, ()
        )
        clone.make(
            store, provided, work, branch="tests", author=_AUTHOR, tree=attempt.tree,
            owner=agents_account() if os.geteuid() == 0 else None,
        )  # fmt: skip
