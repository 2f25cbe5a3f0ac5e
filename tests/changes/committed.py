"""Changes in review to which an agent made commits of its own, for the tests of series."""

from __future__ import annotations

from typing import Any

from changes import attempts, bundle, clone, series, tree
from changes.models import Change
from tests.changes.making import commit, write
from tests.changes.rows import LEASE_S, OWNER, Project, make_change


def kept(
    project: Project, *steps: Any, words: tuple[str, ...] = (), rest: Any = None, **fields: Any
) -> Change:
    """A change in review to which an agent committed these steps, and left a rest."""
    change = make_change(project.repository, keep_commits=True, **fields)
    assert Change.objects.claim(change.pk, OWNER, LEASE_S)
    attempt(project, change, *steps, words=words, rest=rest)
    change.refresh_from_db()
    return change


def attempt(project: Project, change: Change, *steps: Any, words=(), rest=None) -> None:
    provided = bundle.provide(project.path, project.base, directory=project.path.parent)
    project.store.take(provided.bundle, provided.base_commit, provided.shallow)
    work = project.path.parent / f"clone-{change.uid}"
    work.mkdir()
    clone.make(project.store, provided, work, branch="sanduk/x", author=("an agent", "a@b.invalid"))
    for number, step in enumerate(steps):
        for name, data in step.items():
            if data is None:
                (work / name).unlink()
            else:
                write(work, {name: data})
        commit(work, words[number] if number < len(words) else f"step {number + 1}")
    write(work, rest or {})
    result = tree.read(work, project.store, project.base)
    found = series.read(work, project.store, project.base, result.tree)
    attempts.write(change, OWNER, project.base, result, task=change.task, series=found)
