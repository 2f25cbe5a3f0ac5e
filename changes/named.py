"""Which change, skill or repository a word means."""

from __future__ import annotations

import re
from typing import TypeVar

from django.db.models import QuerySet

from changes.models import Batch, Change, Repository, Skill
from changes.repository import find
from runs.models import Run
from runs.paths import expanded
from runs.refusal import Refusal
from runs.visible import visible

_HEX = re.compile("[0-9a-f]{1,12}")
_VERSION = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9_-]{0,63})(?:@(?P<version>[1-9][0-9]{0,8}))?")
_TOLD = 3  # ids named in a refusal
_Row = TypeVar("_Row", Change, Batch)


def one_change(word: str) -> Change:
    """The change with this id, or the only one whose id begins so. Raises Refusal."""
    known = Change.objects.select_related("repository", "attempt", "requested_by")
    found = _beginning(known, word, "changes")
    if found is None:
        is_run = _HEX.fullmatch(word) and Run.objects.filter(uid=word).exists()
        hint = f"it is a run: sanduk show {word}" if is_run else "sanduk change list shows them"
        raise Refusal(f"there is no change {visible(word)!r}; {hint}")
    return found


def one_batch(word: str) -> Batch:
    """The batch with this id, or the only one whose id begins so. Raises Refusal."""
    found = _beginning(Batch.objects.all(), word, "batches")
    if found is None:
        raise Refusal(f"there is no batch {visible(word)!r}; sanduk change list --json names them")
    return found


def _beginning(known: QuerySet[_Row], word: str, kind: str) -> _Row | None:
    """The only row whose id begins with a word; None for none. Raises Refusal for several."""
    asked = word.lower()
    found = list(known.filter(uid__startswith=asked)[: _TOLD + 1]) if _HEX.fullmatch(asked) else []
    if len(found) > 1:
        more = ", …" if len(found) > _TOLD else ""
        ids = ", ".join(each.uid for each in found[:_TOLD])
        raise Refusal(f"{word!r} begins the ids of several {kind} ({ids}{more}); give more of it")
    return found[0] if found else None


def one_repository(word: str) -> Repository:
    """The repository with this id, or that a path is in. Raises Refusal when none was used here."""
    found = Repository.objects.filter(uid=word).first()
    if found is None:
        found = Repository.objects.filter(path=top_of(word)).first()
    if found is None:
        raise Refusal(
            f"no change was ever asked for on {visible(word)}; sanduk change list shows which "
            "repositories there are"
        )
    return found


def top_of(word: str) -> str:
    """The path that a repository's row has: of the top of the work tree, links resolved."""
    path = expanded(word, what="--repo").absolute()
    # one that was moved away since has a row still
    return str(find(path).top().resolve()) if path.is_dir() else str(path)


def one_skill(repository: Repository, word: str, *states: str) -> Skill:
    """`NAME`, the newest version in one of the states, or `NAME@2`. Raises Refusal."""
    asked = _VERSION.fullmatch(word)
    found = Skill.objects.select_related("repository", "attempt__change")
    if asked is not None:
        found = found.filter(repository=repository, name=asked["name"])
        if asked["version"]:
            found = found.filter(version=int(asked["version"]))
        preferred = found.filter(state__in=states) if states else found
        # one in another state is told as what it is
        skill = preferred.order_by("-version").first() or found.order_by("-version").first()
        if skill is not None:
            return skill
    raise Refusal(
        f"there is no skill {visible(word)!r} of {repository.name}; sanduk skills list shows them"
    )
