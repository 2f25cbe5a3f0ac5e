"""`change show` and `change diff`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sized
from typing import Any

from django.core.management.base import CommandParser

from changes import attempts, comparing, patches, pending
from changes.git import GitError
from changes.management import as_data, telling
from changes.management.acting import ChangeCommand, add_change
from changes.models import Attempt, Change
from changes.named import one_change
from changes.own_paths import spelled
from changes.patches import ChangedPath
from changes.skills import compared
from runs.management.numbers import whole
from runs.management.terminal import add_json_flag
from runs.printing import print_line
from runs.refusal import Refusal
from runs.visible import visible

Trees = tuple[str, str] | None  # None: the base and what came back

_COLOURS = {b"+": "\x1b[32m", b"-": "\x1b[31m", b"@": "\x1b[36m"}
_BOLD, _PLAIN = "\x1b[1m", "\x1b[m"


def _add_attempt(parser: CommandParser) -> None:
    parser.add_argument(
        "--attempt", type=whole(), metavar="N", help="an attempt before the one in review"
    )


def _chosen(change: Change, options: dict[str, Any]) -> Attempt | None:
    """The attempt that was asked for, or the one in review."""
    number = options["attempt"]
    return attempt_of(change, number) if number else change.attempt


class Show(ChangeCommand):
    help = (
        "Show a change: what to look at first, what it conflicts with, what the tests said, the "
        "skills and files the agent left, and what to do next."
    )
    examples = ("change show 3f2a9c", "change show 3f2a9c --patch", "change show 3f2a9c --json")
    ends_lost_runs = False

    def add_arguments(self, parser: CommandParser) -> None:
        add_change(parser)
        parser.add_argument("--patch", action="store_true", help="the patch as well, at the end")
        _add_attempt(parser)
        add_json_flag(parser)

    def act(self, **options: Any) -> int:
        change = one_change(options["change"])
        attempt = _chosen(change, options)
        if options["patch"] and attempt is None:
            raise _nothing(change)
        if options["json"]:
            self.print_json(_as_json(change, attempt, patch=options["patch"]))
            return 0
        self.print(f"change {change.uid}")
        for line in change.task.strip().splitlines()[: telling.OUTPUT_LINES]:
            self.print(f"  | {visible(line, limit=500)}")
        for name, value in telling.facts(change):
            self.print(f"  {name:<10} {visible(value, limit=1000)}")
        if attempt is not None:
            self._attempt(change, attempt, is_reviewed=attempt == change.attempt)
        if options["patch"] and attempt is not None:
            self.print("\npatch")
            _write_visible(patch_of(change, attempt), colours=sys.stdout.isatty())
        return 0

    def _attempt(self, change: Change, attempt: Attempt, *, is_reviewed: bool) -> None:
        if not is_reviewed:
            self.print(f"\nattempt {attempt.number}, which is not the one in review")
            self.print(f"  digest {attempt.digest}")
        self._part("flags", telling.flags(attempt))
        if change.state == Change.State.REVIEW and is_reviewed:
            self._part("conflicts", _conflict_lines(change))
        tests = attempt.tests.select_related("run").order_by("-started_at", "-pk")[:1]
        self._part(
            "tests", (line for run in tests for line in telling.tests(run, whole=False)), "not run"
        )
        self._part("commits, which land one by one", telling.commits(attempt), "")
        head = f"{attempt.files:,} changed, +{attempt.added_lines:,} -{attempt.deleted_lines:,}"
        self._part(f"files: {head}", _file_lines(change, attempt))
        self._part("left out", telling.left_out(attempt), "")
        self._part("the agent's account, which proves nothing", telling.results(attempt), "")
        for skill in attempt.skills.select_related("repository").order_by("name"):
            lines = list(telling.skill(skill))
            if skill.state == skill.State.PROPOSED and skill.version > 1:
                lines += ["  the difference to what is in force:"]
                lines += [f"  {visible(line)}" for line in compared(skill).splitlines()]
            self._part("skill for later agents", lines)
        self._part("left for you to look at", map(telling.artifact, attempt.artifacts.all()), "")
        if is_reviewed:
            self._part("decisions", telling.decisions(change), "")
            self._part("next", telling.next_steps(change), "")

    def _part(self, head: str, lines: Iterable[str], none: str = "none") -> None:
        told = list(lines) or ([none] if none else [])
        if told:
            self.print(f"\n{head}")
            for line in told:
                self.print(f"  {line}")


class Diff(ChangeCommand):
    help = (
        "Print the patch of a change: its exact bytes in a pipe or a file, as git apply takes "
        "them; on a terminal in colour, with every hidden character visible. With --against, what "
        "two attempts of it do differently: the patch from the earlier one to the later one. With "
        "--commit, what one of the agent's own commits does, where these are kept."
    )
    examples = (
        "change diff 3f2a9c",
        "change diff 3f2a9c | git apply --check",
        "change diff 3f2a9c --path lib/parser.py",
        "change diff 3f2a9c --attempt 1 --against 2",
        "change diff 3f2a9c --commit 1",
        "change diff 3f2a9c --files --json",
    )
    ends_lost_runs = False

    def add_arguments(self, parser: CommandParser) -> None:
        add_change(parser)
        parser.add_argument(
            "--path", action="append", default=[], metavar="PATH", help="only of this; repeatable"
        )
        parser.add_argument("--files", action="store_true", help="the paths that changed, no lines")
        _add_attempt(parser)
        parser.add_argument(
            "--against", type=whole(), metavar="N", help="another attempt to compare it with"
        )
        parser.add_argument(
            "--commit", type=whole(), metavar="N", help="only what this commit of it changes"
        )
        add_json_flag(parser)

    def act(self, **options: Any) -> int:
        change = one_change(options["change"])
        attempt = _chosen(change, options)
        if attempt is None:
            raise _nothing(change)
        between = None
        if options["commit"]:
            if options["against"]:
                raise Refusal("--commit goes without --against")
            between = _trees_of(change, attempt, options["commit"])
        elif options["against"]:
            other = attempt_of(change, options["against"])
            earlier, attempt = comparing.earlier_first(attempt, other)
            between = (earlier.tree, attempt.tree)
            self.say(f"from attempt {earlier.number} to attempt {attempt.number} of {change}")
        if options["files"] or options["json"]:
            files = files_of(change, attempt, between)
            wanted = {os.fsencode(path) for path in options["path"]}
            files = [each for each in files if not wanted or each.path in wanted]
            _check_there(files, options["path"])
            if options["json"]:
                self.print_json([as_data.file(each) for each in files])
            else:
                for each in files:
                    self.print(telling.file(each))
            return 0
        paths = [os.fsencode(path) for path in options["path"]]
        patch = patch_of(change, attempt, paths, between)
        _check_there(patch, options["path"])
        if sys.stdout.isatty():
            _write_visible(patch, colours=True)
        else:
            _write_bytes(patch)
        return 0


def _check_there(found: Sized, paths: list[str]) -> None:
    """Nothing at all would look like no difference. Raises Refusal."""
    if paths and not found:
        names = ", ".join(visible(path, limit=200) for path in paths[:3])
        raise Refusal(f"nothing that changed is called {names}; change diff --files lists what did")


def attempt_of(change: Change, number: int) -> Attempt:
    found: Attempt | None = change.attempts.filter(number=number).first()
    if found is None:
        raise Refusal(f"{change} has no attempt {number}; it has {change.attempts.count()}")
    return found


def _trees_of(change: Change, attempt: Attempt, commit: int) -> tuple[str, str]:
    if (trees := attempt.trees_of(commit)) is None:
        many = len(attempt.commits)
        which = f"it has {many}" if many else "it lands as one commit"
        raise Refusal(f"{change} has no commit {commit}: {which}")
    return trees


def files_of(change: Change, attempt: Attempt, between: Trees = None) -> list[ChangedPath]:
    """The files that differ between two trees."""
    store = attempts.kept_store(change.repository)
    return patches.changed_paths(store, *(between or (attempt.base_tree, attempt.tree)))


def patch_of(
    change: Change, attempt: Attempt, paths: Iterable[bytes] = (), between: Trees = None
) -> bytes:
    """The patch from one tree to another."""
    store = attempts.kept_store(change.repository)
    trees = between or (attempt.base_tree, attempt.tree)
    return patches.patch(store, *trees, paths=tuple(paths))


def _file_lines(change: Change, attempt: Attempt) -> list[str]:
    files, why = _asked(lambda: files_of(change, attempt))
    if why:
        return [f"? they cannot be read any more: {visible(why)}"]
    lines = [telling.file(each) for each in files[: telling.FILES_TOLD]]
    if len(files) > len(lines):
        lines.append(f"… {len(files) - len(lines):,} more: --json names them all")
    return lines


def _nothing(change: Change) -> Refusal:
    return Refusal(f"{change} is {change.state}: there is no patch")


def _conflict_lines(change: Change) -> list[str]:
    lines = []
    branch = change.base_ref or "what is checked out"
    for what, ask in (
        (f"with {visible(branch)} as it is now", lambda: pending.with_head(change)),
        ("", lambda: pending.with_waiting(change)),
    ):
        found, why = _asked(ask)
        if why:
            lines.append(f"? could not check {what or 'against others that wait'}: {visible(why)}")
        elif what and found:
            lines.append(f"! {what}: {telling.paths(found)}")
        else:
            lines += [
                f"! with change {each.change.uid} ({visible(each.change.task, limit=50)}): "
                f"{telling.paths(each.paths)}"
                for each in found
            ]
    return lines


def _asked(question: Callable[[], Any]) -> tuple[Any, str]:
    """An answer, or why there is none: the repository may have been moved away."""
    try:
        return question(), ""
    except (Refusal, GitError, OSError) as exc:
        return (), str(exc)


def _as_json(change: Change, attempt: Attempt | None, *, patch: bool) -> dict[str, Any]:
    told = as_data.change(change)
    usd, least = as_data.spent([change])
    told |= {"spent_usd": usd, "spent_is_lower_bound": least}
    told["attempts"] = [as_data.attempt(each) for each in change.attempts.select_related("run")]
    if attempt is None:
        return told
    told["shown_attempt"] = attempt.number
    told["risk_flags"] = [as_data.flag(each) for each in attempt.flags.all()]
    told["could_not_check"] = attempt.could_not_check
    told["lines_scanned"] = attempt.lines_scanned
    told["conflicts"] = None
    if change.state == Change.State.REVIEW:
        head, why_head = _asked(lambda: pending.with_head(change))
        others, why_others = _asked(lambda: pending.with_waiting(change))
        told["conflicts"] = {
            "head": [spelled(path) for path in head],
            "changes": [as_data.conflict(each) for each in others],
            "could_not_check": [why for why in (why_head, why_others) if why],
        }
    tests = attempt.tests.select_related("run")
    told["tests"] = [as_data.tested(each) for each in tests]
    files, why = _asked(lambda: files_of(change, attempt))
    told["files_changed"] = None if why else [as_data.file(each) for each in files]
    told["ignored_created"], told["refused"] = attempt.ignored_created, attempt.refused
    told["results"] = attempt.results
    skills = attempt.skills.select_related("repository", "attempt__change")
    told["skills"] = [as_data.skill(each) for each in skills]
    told["artifacts"] = [as_data.artifact(each) for each in attempt.artifacts.all()]
    told["decisions"] = [as_data.decision(each) for each in telling.decided(change)]
    if patch:  # for its exact bytes there is `change diff`
        told["patch"] = patch_of(change, attempt).decode(errors="backslashreplace")
    return told


def _write_bytes(patch: bytes) -> None:
    """Through the buffer below the text, so that no byte is altered; a reader may leave."""
    sys.stdout.flush()
    try:
        sys.stdout.buffer.write(patch)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        print_line("", sys.stdout, end="")  # which remembers that nobody reads


def _write_visible(patch: bytes, *, colours: bool) -> None:
    in_hunk = False
    for raw in patch.split(b"\n"):
        if raw.startswith(b"diff --git "):
            in_hunk = False
        elif raw.startswith(b"@@"):
            in_hunk = True
        text = visible(raw.decode(errors="backslashreplace"), lines=True)
        print_line(_coloured(raw, text, in_hunk=in_hunk) if colours else text, sys.stdout)


def _coloured(raw: bytes, text: str, *, in_hunk: bool) -> str:
    if not in_hunk:
        return f"{_BOLD}{text}{_PLAIN}" if raw else text
    colour = _COLOURS.get(raw[:1], "")
    return f"{colour}{text}{_PLAIN}" if colour else text
