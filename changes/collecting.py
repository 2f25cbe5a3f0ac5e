"""Removing what nobody needs any more: clones of dead processes, bases and trees of what is over.

Only what lies under this installation's state directory, under names that it gives itself. What
could not be listed is said, and nothing of its kind is touched then.
"""

from __future__ import annotations

import datetime as dt
import re
import shutil
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from django.conf import settings
from django.db.models import QuerySet

from changes import base, place
from changes.attempts import kept_store
from changes.git import GitError
from changes.models import Change, Repository
from changes.models.change import OVER
from changes.store import Store
from runs import clock
from runs.visible import visible_name

SETTLED_S = 3600.0  # a younger directory may belong to a change that is just being written down
KEPT_DAYS = 30  # what was decided can be looked at so long
_UID = re.compile(r"[0-9a-f]{12}")
_ATTEMPT = re.compile(r"(?:attempts|series)/([0-9a-f]{12})/[0-9]+")
_BASE = re.compile(r"bases/([0-9a-f]{40}|[0-9a-f]{64})")


@dataclass(slots=True)
class Collected:
    """What went, or would go.

    Attributes:
        gone: a sentence each.
        bytes: of the files among them.
        troubles: what could not be looked at, or removed.
    """

    gone: list[str] = field(default_factory=list)
    bytes: int = 0
    troubles: list[str] = field(default_factory=list)


def collect(*, dry_run: bool = False) -> Collected:
    """Remove it; with `dry_run` only say what would go.

    The trees and the base of a change that is over stay for some days, so that a decision can be
    looked at. Its rows, its report and what it landed stay for good.
    """
    done = Collected()
    for part in (_clones, _strays, _bases, _refs):
        try:
            part(done, dry_run)
        except (OSError, GitError) as exc:
            done.troubles.append(f"{part.__name__.strip('_')} could not be looked at: {exc}")
    return done


def _clones(done: Collected, dry_run: bool) -> None:
    """Those of no change that is being made."""
    listed = _listed(place.clones())  # before the rows: a claim comes before its clone
    busy = set(Change.objects.filter(state=Change.State.RUNNING).values_list("uid", flat=True))
    for directory in listed:
        if directory.name not in busy:
            size = place.size_of(directory)
            _go(
                done,
                dry_run,
                directory,
                f"clone {directory.name}",
                size,
                partial(place.remove, directory.name),
            )


def _strays(done: Collected, dry_run: bool) -> None:
    """What was kept for a change that never became one."""
    listed = _listed(_home() / "changes")
    known = set(Change.objects.values_list("uid", flat=True))
    for directory in listed:
        young = time.time() - directory.lstat().st_mtime < SETTLED_S
        if directory.name not in known and not young:
            size = place.size_of(directory)
            _go(
                done,
                dry_run,
                directory,
                f"base {directory.name} of no change",
                size,
                partial(shutil.rmtree, directory),
            )


def _bases(done: Collected, dry_run: bool) -> None:
    """The bundles of changes that are over."""
    for uid in _long_over().values_list("uid", flat=True):
        bundle = base.directory_of(uid) / base.BUNDLE
        if bundle.is_file():
            _go(
                done,
                dry_run,
                bundle,
                f"base of change {uid}",
                bundle.stat().st_size,
                partial(base.forget_base, uid),
            )


def _refs(done: Collected, dry_run: bool) -> None:
    """What the stores protect for changes that are over, then what nothing protects any more."""
    for repository in Repository.objects.all():
        store = kept_store(repository)
        if not store.path.is_dir():
            continue
        over = _unneeded(repository, store)
        for name in over:
            _go(
                done,
                dry_run,
                store.path,
                f"{name} in the store of {repository}",
                0,
                partial(store.forget, name),
            )
        if over and not dry_run:
            store.git("prune", "--expire=1.hour.ago")


def _unneeded(repository: Repository, store: Store) -> list[str]:
    """Names below refs/sanduk that no change of the repository needs."""
    # listed before the rows: a change is written down before anything is kept for it
    said = store.git("for-each-ref", "--format=%(refname)", "refs/sanduk").decode()
    names = [line.removeprefix("refs/sanduk/") for line in said.splitlines()]
    ours = Change.objects.filter(repository=repository)
    over = set(_long_over().filter(repository=repository).values_list("uid", flat=True))
    known = set(ours.values_list("uid", flat=True))
    live = ours.exclude(uid__in=over)
    needed = set(live.values_list("base_commit", flat=True))
    needed |= set(live.values_list("attempts__base_commit", flat=True))
    found = []
    for name in names:
        if attempt := _ATTEMPT.fullmatch(name):
            if attempt[1] in over or attempt[1] not in known:
                found.append(name)
        elif (kept := _BASE.fullmatch(name)) and kept[1] not in needed:
            found.append(name)
    return found


def _long_over() -> QuerySet[Change]:
    before = clock.now() - dt.timedelta(days=KEPT_DAYS)
    return Change.objects.filter(state__in=OVER, state_at__lt=before)


def _listed(directory: Path) -> list[Path]:
    """Directories of ours in one of ours; whatever else lies there is not ours."""
    if not directory.exists():
        return []
    found: Iterable[Path] = sorted(directory.iterdir())
    return [each for each in found if _UID.fullmatch(each.name) and not each.is_symlink()]


def _go(
    done: Collected, dry_run: bool, path: Path, what: str, size: int, act: Callable[[], None]
) -> None:
    try:
        if not dry_run:
            act()
    except (OSError, GitError) as exc:
        done.troubles.append(f"{what} ({visible_name(str(path))}) could not be removed: {exc}")
        return
    done.gone.append(what)
    done.bytes += size


def _home() -> Path:
    home: Path = settings.SANDUK_HOME
    return home
