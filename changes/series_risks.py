"""What to look at in each commit of a series: its history lands as well as its last tree.

What a commit adds and a later one takes away is in no diff of the whole, and would still be in the
repository for good.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from changes import patches, risks, secrets_found
from changes.flag import Findings, Flag
from changes.patches import ChangedPath
from changes.rules import Rules
from changes.series import Kept
from changes.store import Store
from runs import secret_scan


@dataclass(frozen=True, slots=True)
class Looked:
    """Attributes:
    findings: of the whole and of every commit.
    commits: each as its attempt's row keeps it.
    """

    findings: Findings
    commits: list[dict[str, Any]]


def look(
    store: Store,
    base_tree: str,
    commits: Sequence[Kept],
    whole: Findings,
    changed: Sequence[ChangedPath],
    rules: Rules,
) -> Looked:
    """Add what only a commit shows to what was found in the whole.

    Args:
        whole: `changes.risks.flags` of the base and the last tree, `changed` its list of paths.
    Raises:
        GitError: a tree cannot be read.
    """
    held, _ = secret_scan.held_secrets()
    known = {_same(each) for each in whole.flags}
    last = {each.path: each.new_id for each in changed}
    flags: list[Flag] = []
    words: list[Flag] = []
    unchecked: list[str] = []
    told: list[dict[str, Any]] = []
    lines = 0
    trees = [base_tree, *(each.tree for each in commits)]
    for number, (kept, (before, tree)) in enumerate(zip(commits, pairwise(trees), strict=True), 1):
        here = patches.changed_paths(store, before, tree)
        found = risks.flags(store, before, tree, here, rules)
        now = {each.path: each.new_id for each in here}
        for flag in found.flags:
            is_new = (now.get(flag.path) or "") != (last.get(flag.path) or "")
            if _same(flag) not in known or (_is_of_content(flag) and is_new):
                flags.append(replace(flag, commit=number))
                known.add(_same(flag))
        words += _of_words(kept.message, number, held)
        unchecked += [
            f"in commit {number}: {sentence}"
            for sentence in found.could_not_check
            if sentence not in whole.could_not_check
        ]
        lines += found.lines_scanned
        told.append(_row(kept, here))
    findings = risks.joined(
        whole, flags, risks.by_rules(words, rules), unchecked=unchecked, lines=lines
    )
    return Looked(findings, told)


def _same(flag: Flag) -> tuple[str, bytes, str]:
    """Line numbers differ from commit to commit."""
    return flag.category, flag.path, flag.reason


def _is_of_content(flag: Flag) -> bool:
    """A flag of the same words about other bytes is another one: one token is not the next."""
    return flag.category == "secret" or flag.line > 0


def _of_words(message: str, number: int, held: Any) -> Iterator[Flag]:
    for flag in secrets_found.of_text(message.encode(), held):
        yield replace(flag, reason=f"in its message, {flag.reason}", commit=number)


def _row(kept: Kept, changed: Sequence[ChangedPath]) -> dict[str, Any]:
    return {
        "tree": kept.tree,
        "message": kept.message,
        "files": len(changed),
        "added_lines": sum(each.added_lines for each in changed),
        "deleted_lines": sum(each.deleted_lines for each in changed),
    }
