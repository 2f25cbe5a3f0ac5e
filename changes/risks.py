"""What to look at first in a change: typed flags, and what could not be looked at.

Everything comes from the two trees in our own store. What the change itself says about how it is
to be compared, converted or left out is never asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain

from changes import added, risky_content, risky_paths, risky_shape
from changes.flag import GRAVEST, Findings, Flag
from changes.globs import matches
from changes.own_paths import spelled
from changes.patches import ChangedPath
from changes.rules import Rules
from changes.secrets_found import Scan
from changes.store import Store, object_id
from runs import secret_scan

FLAGS_MAX = 2000  # kept of one change; what is above is told as a number
_TREE_MAX = 256 << 20  # bytes of a list of paths
_UNCHECKED_MAX = 200

__all__ = ["Findings", "Flag", "by_rules", "flags", "joined"]


def flags(
    store: Store,
    base_tree: str,
    tree: str,
    changed: Sequence[ChangedPath],
    rules: Rules,
    *,
    also: Iterable[Flag] = (),
) -> Findings:
    """Everything worth a look in what lies between two trees.

    Args:
        changed: `changes.patches.changed_paths` of the same two trees.
        rules: the operator's, never the branch's.
        also: flags from elsewhere, to be held to the same rules.
    Raises:
        GitError: a tree cannot be read.
    """
    held, problems = secret_scan.held_secrets()
    scan, unread = Scan(held), added.Unread()
    found = [*also, *_of_list(store, tree, changed, rules)]
    for file in added.read(store, changed, unread):
        found += risky_shape.of_file(file, largest=rules.largest_file_mb << 20)
        found += risky_content.of_lines(file)
        scan.add(file)
        if kind := risky_shape.packed(file.content):
            unread.reasons.append(f"{spelled(file.changed.path)}: what is packed in it ({kind})")
    scan.add_names(changed)
    scan.finish()
    found += _large(store, changed, rules)
    reasons = [*unread.reasons, *scan.could_not_check, *(each.name for each in problems)]
    reasons += [
        f"{spelled(each.path)}: what the submodule's commit holds"
        for each in changed
        if each.new_mode == added.SUBMODULE
    ]
    settled = (_settled(each, rules) for each in _once([*found, *scan.flags]))
    return Findings(
        flags=_cut(sorted(settled, key=_order)),
        could_not_check=_some(reasons),
        lines_scanned=scan.lines,
    )


def by_rules(found: Iterable[Flag], rules: Rules) -> list[Flag]:
    """Flags from elsewhere, held to the operator's rules."""
    return [_settled(each, rules) for each in found]


def joined(
    whole: Findings, *more: Iterable[Flag], unchecked: Iterable[str], lines: int
) -> Findings:
    """Findings with others beside them, which are held to the rules already."""
    return Findings(
        flags=_cut(sorted(_once([*whole.flags, *chain(*more)]), key=_order)),
        could_not_check=_some([*whole.could_not_check, *unchecked]),
        lines_scanned=max(whole.lines_scanned, lines),
    )


def _of_list(
    store: Store, tree: str, changed: Sequence[ChangedPath], rules: Rules
) -> Iterator[Flag]:
    said = store.git(
        "ls-tree", "-r", "-z", "--name-only", "--full-tree", object_id(tree), limit_bytes=_TREE_MAX
    )
    yield from risky_shape.of_paths(changed, present=said.split(b"\0")[:-1])
    for each in changed:
        for path in {each.path, each.old_path or each.path}:
            yield from risky_paths.flags_of(path)
            for rule in rules.flag:
                if matches(path, rule.paths):
                    yield Flag(
                        rule.category, rule.severity, path, 0, rule.reason, rule.second_person
                    )


def _large(store: Store, changed: Sequence[ChangedPath], rules: Rules) -> Iterator[Flag]:
    """Those that were too large to be read."""
    sizes = store.sizes({each.new_id for each in changed if each.new_id != each.old_id} - {""})
    for each in changed:
        size = sizes.get(each.new_id, 0)
        if size > max(added.FILE_MAX, rules.largest_file_mb << 20):
            yield risky_shape.too_large(each.path, size)


def _settled(flag: Flag, rules: Rules) -> Flag:
    """A flag as the operator's rules have it. Nothing is taken away by them."""
    if flag.category in rules.second_person:
        flag = replace(flag, needs_second_person=True)
    for rule in rules.expected:
        if flag.category == rule.category and matches(flag.path, rule.paths):
            reason = f"{flag.reason} (expected here: {rule.reason})"
            return replace(flag, severity="low", reason=reason)
    return flag


def _once(found: Iterable[Flag]) -> list[Flag]:
    return list(dict.fromkeys(found))


def _order(flag: Flag) -> tuple[int, bool, str, bytes, int]:
    """The gravest first, and of those the secrets."""
    return (
        GRAVEST.index(flag.severity), flag.category != "secret", flag.category, flag.path, flag.line
    )  # fmt: skip


def _cut(found: Sequence[Flag]) -> tuple[Flag, ...]:
    if len(found) <= FLAGS_MAX:
        return tuple(found)
    more = found[FLAGS_MAX:]
    second = any(each.needs_second_person for each in more)
    reason = f"{len(more):,} more flags, none graver than those above"
    return (*found[:FLAGS_MAX], Flag("size", more[0].severity, b"", 0, reason, second))


def _some(reasons: Sequence[str]) -> tuple[str, ...]:
    unique = list(dict.fromkeys(reasons))
    if len(unique) <= _UNCHECKED_MAX:
        return tuple(unique)
    return (*unique[:_UNCHECKED_MAX], f"{len(unique) - _UNCHECKED_MAX:,} more")
