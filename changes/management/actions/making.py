"""`change run`, `change revise` and `change batch`: attempts, made here or left to others."""

from __future__ import annotations

import argparse
import signal
import tempfile
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from changes import asking, batch, bundle, handover, making, reviewing, usual
from changes.asking import Options
from changes.management import as_data, telling
from changes.management.acting import ChangeCommand, add_change, add_repository, here
from changes.models import Change
from changes.models.change import State
from changes.named import one_change
from relay.flags import Replaced
from runs import preview
from runs.console import Terminal
from runs.lifecycle import exit_code
from runs.management.commands.sanduk_run import order_from, task_of
from runs.management.numbers import dollars, whole
from runs.management.run_flags import add_attempt_flags
from runs.management.terminal import add_engine_flags, add_json_flag
from runs.paths import expanded
from runs.refusal import Refusal
from runs.visible import visible

# what `run` has flags for, and an attempt has not
NOT_ASKED: dict[str, Any] = {
    "workdir": ".", "task_file": None, "no_report_instruction": True, "keep": False,
}  # fmt: skip
# flags of the second program
REPLACED = {
    "--max-budget-usd": "--budget is what one attempt may cost",
    "--total-budget-usd": "--total-budget is what all of a batch may cost",
}
TASKS_FILE_MAX = 4 << 20  # bytes


class Run(ChangeCommand):
    help = (
        "Give an agent a task on a repository. It works on a throwaway clone of one commit, in a "
        "container of its own; your checkout, its configuration and its untracked files stay out "
        "of it. What it changed waits for you to read it; nothing lands before you accept it."
    )
    examples = (
        'change run --repo ~/code/app --task "make the parser faster"',
        'change run --repo . --base v1.2 --agent claude --provider anthropic --task "fix #7"',
        "change run --repo . --task-file task.md --budget 2 --timeout 1h",
        'change run --repo . --task "tidy up" --detach',
    )

    def add_arguments(self, parser: CommandParser) -> None:
        add_place(parser)
        parser.add_argument("--task", metavar="TEXT", help="what the agent should do")
        _add_task_file(parser)
        add_attempt_flags(parser)
        _add_output(parser, dry_run=True)

    def act(self, **options: Any) -> int:
        path = place_of(options)
        asked = _with_task(options, "change run --repo PATH")
        wanted = options_of(asked, path)
        if options["dry_run"]:
            return self._describe(path, wanted, as_json=options["json"])
        change = asking.ask(str(path), wanted.order.task, options=wanted, person=here())
        if options["detach"]:
            if not handover.give(change.uid):
                handover.beside(change.uid)
            return _told_id(self, "change", change.uid, options)
        if not options["quiet"]:
            self.say(f"{change} on {change.repository.name}, from {change.base_commit[:12]}")
        done = making.make(change.uid, tell=_console(options))
        return told_end(self, done, options)

    def _describe(self, path: Path, wanted: Options, *, as_json: bool) -> int:
        plan = asking.planned(wanted.order.task, wanted.order)
        with tempfile.TemporaryDirectory() as scratch:
            provided = bundle.provide(
                path, wanted.base or None, wanted.history, directory=Path(scratch)
            )
        # the clone is our own, and whose it is comes out when it is made
        hidden = ("workdir", "workdir_is_made", "uid", "gid", "runs as")
        if as_json:
            told = preview.as_json(plan)
            about: dict[str, Any] = {
                "repository": str(provided.repository),
                "base": provided.base_commit,
                "history": wanted.history or 1,
                "left_out": list(provided.left_out),
            }
            rest = {name: value for name, value in told.items() if name not in hidden}
            self.print_json({**about, **rest})
            return 0
        commits = "1 commit" if (wanted.history or 1) == 1 else f"{wanted.history:,} commits deep"
        lines = [
            ("repository", visible(str(provided.repository))),
            ("base", f"{provided.base_commit[:12]}, {commits}"),
            *(("left out", visible(each)) for each in provided.left_out),
            *preview.lines(plan),
        ]
        for name, value in lines:
            if name not in hidden:
                self.print(f"{name + ':':<12} {value}")
        return 0


class Revise(ChangeCommand):
    help = (
        "Have another attempt made on top of the one in review, by the same agent. The one before "
        "it stays as it was, and in review, unless the new one brings something."
    )
    examples = (
        'change revise 3f2a9c --task "keep the old name as an alias"',
        "change revise 3f2a9c --task-file comments.md --detach",
    )

    def add_arguments(self, parser: CommandParser) -> None:
        add_change(parser)
        parser.add_argument("--task", metavar="TEXT", help="what is to be different")
        _add_task_file(parser)
        _add_output(parser)

    def act(self, **options: Any) -> int:
        change = one_change(options["change"])
        task = _task(options, f"change revise {change.uid}")
        if options["detach"]:
            if not handover.give_revision(change.uid, here(), task):
                raise Refusal("no worker is up that would make it; leave --detach out")
            return _told_id(self, "change", change.uid, options)
        before = change.attempt_id
        done = making.revise(change.uid, here(), task, tell=_console(options))
        if done.state == State.REVIEW and done.attempt_id == before:
            why = f": {done.reason}" if done.reason else ""
            self.say(f"the attempt before is still the one in review{why}")
            code = _run_code(done) or 1
            if options["json"]:
                self.print_json(as_data.change(done))
            return code
        return told_end(self, done, options)


class Batch(ChangeCommand):
    help = (
        "Give several tasks on one repository to agents, some at a time, each on a clone of its "
        "own. Ctrl-C drops those that wait and ends those under way."
    )
    examples = (
        'change batch --repo . --task "fix the typos" --task "sort the imports"',
        "change batch --repo . --tasks-file tasks.txt --max-parallel 4 --total-budget 10",
    )

    def add_arguments(self, parser: CommandParser) -> None:
        add_place(parser)
        parser.add_argument(
            "--task", action="append", default=[], metavar="TEXT", help="a task; repeatable"
        )
        parser.add_argument(
            "--tasks-file", metavar="PATH", help="one a line; empty lines and # comments are left"
        )
        parser.add_argument(
            "--max-parallel", type=whole(high=batch.PARALLEL_MAX), default=2, metavar="N",
            help="so many at a time (2)",
        )  # fmt: skip
        parser.add_argument(
            "--total-budget", type=dollars, metavar="USD", help="what all of them together may cost"
        )
        add_attempt_flags(parser)
        _add_output(parser)

    def act(self, **options: Any) -> int:
        path = place_of(options)
        tasks = [*options["task"], *_tasks_of(options["tasks_file"])]
        if not tasks:
            raise Refusal("there is no task: give --task, or --tasks-file with one in it")
        asked = {**NOT_ASKED, **options, "task": tasks[0]}
        made = batch.ask_all(
            str(path), tasks,
            options=options_of(asked, path), person=here(),
            max_parallel=options["max_parallel"], total_budget_usd=options["total_budget"],
        )  # fmt: skip
        if options["detach"]:
            if not batch.give(made):
                batch.cancel(made, here().name)
                raise Refusal("no worker is up that would make them; leave --detach out")
            return _told_id(self, "batch", made.uid, options)
        if not options["quiet"]:
            self.say(f"{made}: {len(tasks)} tasks, {made.max_parallel} at a time")
        done = batch.run(made, self._quiet if options["quiet"] else self._told_each)
        return self._finish(done, options)

    def _told_each(self, change: Change) -> None:
        why = f": {change.reason}" if change.reason else ""
        self.say(f"{change} ({' '.join(change.task.split())[:60]}) {change.state}{why}")

    def _quiet(self, change: Change) -> None:
        if change.state == State.FAILED:
            self._told_each(change)

    def _finish(self, done: list[Change], options: dict[str, Any]) -> int:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if options["json"]:
            counts = as_data.flag_counts(done)
            self.print_json([as_data.change(each, counts) for each in done])
        else:
            for each in done:
                self.print(_one_line(each))
        if not options["quiet"]:
            self._tell_conflicts(done)
        return 0 if all(each.state in (State.REVIEW, State.UNCHANGED) for each in done) else 1

    def _tell_conflicts(self, done: list[Change]) -> None:
        conflicts, unchecked = reviewing.between(done)
        for one, conflict in conflicts:
            paths = ", ".join(reviewing.told(conflict.paths))
            self.say(
                f"{one} conflicts with {conflict.change} in {visible(paths)}: land one of them"
            )
        for sentence in unchecked:
            self.say(f"not looked at for conflicts: {visible(sentence)}")


def add_place(parser: CommandParser) -> None:
    add_repository(parser, needed=True, what="a directory in the repository")
    parser.add_argument(
        "--base", default="", metavar="REF", help="the branch, tag or commit to work on (HEAD)"
    )
    parser.add_argument(
        "--history", type=whole(high=10**6), metavar="N",
        help="how many commits the agent sees; alone the base, where it is left out",
    )  # fmt: skip
    parser.add_argument(
        "--keep-commits", action="store_true",
        help="the agent's own commits land as a series, instead of one commit",
    )  # fmt: skip
    for flag, instead in REPLACED.items():
        parser.add_argument(flag, action=Replaced, nargs="?", const=instead, help=argparse.SUPPRESS)


def _add_task_file(parser: CommandParser) -> None:
    parser.add_argument(
        "--task-file", metavar="PATH", help="read the task from a file, - for stdin"
    )


def _add_output(parser: CommandParser, *, dry_run: bool = False) -> None:
    parser.add_argument("--detach", action="store_true", help="print the id and return")
    if dry_run:
        parser.add_argument(
            "--dry-run", action="store_true", help="say what would be started; do nothing"
        )
        add_engine_flags(parser)
    elif any(action.dest == "mode" for action in parser._actions):
        add_engine_flags(parser)
    else:
        parser.add_argument("-q", "--quiet", action="store_true", help="say only what went wrong")
    add_json_flag(parser)


def place_of(options: dict[str, Any]) -> Path:
    return expanded(options["repo"], what="--repo").absolute()


def options_of(asked: dict[str, Any], path: Path) -> Options:
    """The flags, completed by what the repository's operator says, then by the environment."""
    order = order_from(usual.completed(asked, path))
    return Options(
        order=order,
        base=asked["base"],
        history=asked["history"],
        keep_commits=asked.get("keep_commits", False),
    )


def told_end(command: ChangeCommand, change: Change, options: dict[str, Any]) -> int:
    """Say what became of an attempt; the exit code."""
    # it is over: a late Ctrl-C may not cost the last lines or change the exit code
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if options["json"]:
        command.print_json(as_data.change(change))
    elif change.state == State.REVIEW and change.attempt is not None:
        command.print(_one_line(change))
        if not options["quiet"]:
            for line in telling.flags(change.attempt):
                command.print(f"  {line}")
            command.print("next")
            command.print(f"  sanduk change show {change.uid}")
            for line in telling.next_steps(change):
                command.print(f"  {line}")
    else:
        command.print(_one_line(change))
    if change.state in (State.REVIEW, State.UNCHANGED):
        return 0
    return _run_code(change) or 1


def _run_code(change: Change) -> int:
    return exit_code(change.run) if change.run is not None else 0


def _one_line(change: Change) -> str:
    attempt = change.attempt
    if attempt is None:
        why = f": {visible(change.reason)}" if change.reason else ""
        return f"{change} {change.state}{why}"
    files = "1 file" if attempt.files == 1 else f"{attempt.files:,} files"
    return (
        f"{change} is in {change.state}: {files}, +{attempt.added_lines:,} "
        f"-{attempt.deleted_lines:,}, digest {attempt.digest}"
    )


def _console(options: dict[str, Any]) -> Terminal:
    return Terminal(quiet=options["quiet"], trace_to_stderr=options["json"])


def _told_id(command: ChangeCommand, what: str, uid: str, options: dict[str, Any]) -> int:
    """Of what goes on without this terminal."""
    if options["json"]:
        command.print_json({what: uid})
    else:
        command.print(uid)
    return 0


def _task(options: dict[str, Any], usage: str) -> str:
    """The task, as `sanduk run` reads it."""
    if options["task"] is None and not options["task_file"]:
        raise Refusal(f'give a task: sanduk {usage} --task "what to do", or --task-file PATH')
    return task_of(options)


def _with_task(options: dict[str, Any], usage: str) -> dict[str, Any]:
    task = _task(options, usage)
    return {**NOT_ASKED, **options, "task": task, "task_file": None}


def _tasks_of(name: str | None) -> list[str]:
    if not name:
        return []
    try:
        with expanded(name, what="--tasks-file").open("rb") as file:
            data = file.read(TASKS_FILE_MAX + 1)
        text = data.decode()
    except OSError as exc:
        raise Refusal(f"--tasks-file {name} cannot be read: {exc.strerror}") from None
    except UnicodeDecodeError:
        raise Refusal(f"--tasks-file {name} is not UTF-8 text") from None
    if len(data) > TASKS_FILE_MAX:
        raise Refusal(f"--tasks-file {name} is larger than {TASKS_FILE_MAX >> 20} MiB")
    lines = (line.strip() for line in text.splitlines())
    return [line for line in lines if line and not line.startswith("#")]
