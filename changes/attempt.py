"""One attempt, from its claim to the gate: base, clone, skills, run, and what is in the clone.

The agent's clone lies in a directory of its own that is gone when this ends; of what it holds only
files are ever read, by descriptor, once the container is gone.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import msgspec
from django.db import DatabaseError, close_old_connections, transaction

from changes import (
    artifacts,
    attempts,
    base,
    budgets,
    clone,
    interruption,
    place,
    repository_image,
    results,
    rules,
    series,
    skills,
    tree,
    wording,
)
from changes.git import GitError
from changes.landing_plan import branch_of
from changes.models import Attempt, Change
from changes.store import Store
from runs import clock
from runs.console import Console
from runs.engines.base import EngineError
from runs.holding import Holding
from runs.interrupts import Interrupts
from runs.lifecycle import execute, start_here
from runs.models import Run
from runs.models.run import Outcome
from runs.order import Order, restored
from runs.plan import Ground, Plan, make_plan
from runs.refusal import Refusal
from runs.visible import visible
from runs.workspace import agents_account

S = Change.State


class Over(Exception):
    """The attempt ends here, as `failed` or `unchanged`."""

    def __init__(self, reason: str, state: str = S.FAILED) -> None:
        super().__init__(reason)
        self.reason, self.state = reason, state


def execute_here(run: Run, plan: Plan, tell: Console, interrupts: Interrupts) -> Run:
    """Execute a claimed run in this process; its ended row."""
    return execute(run, plan, tell, interrupts)


class Attempting:
    """An attempt that this process holds.

    Args:
        change: claimed by `owner`; with an attempt, this is a revision of that one.
        task: what this attempt is asked for.
        hold: says whether the claim was lost.
        run_in_box: executes the run; in tests, and in a person's session, something else may.
    """

    def __init__(
        self,
        change: Change,
        owner: str,
        task: str,
        hold: Holding,
        tell: Console,
        run_in_box: Callable[[Run, Plan, Console, Interrupts], Run],
    ) -> None:
        self.change, self._owner, self._task = change, owner, task
        self._hold, self._tell, self._run_in_box = hold, tell, run_in_box
        self._before = change.attempt
        self._run: Run | None = None

    # -- from the claim to the gate -------------------------------------------------------------
    def make(self) -> None:
        """Everything but a bad end. Raises Over, `attempts.Lost`."""
        try:
            with place.made(self.change.uid) as directory:
                self._make(directory)
        except (Refusal, GitError) as exc:
            raise Over(str(exc)) from None
        except OSError as exc:
            where = f"{exc.filename}: " if exc.filename else ""
            raise Over(f"{where}{exc.strerror or exc}") from None

    def _make(self, directory: Path) -> None:
        self._still_wanted()
        provided = base.of(self.change)
        store = attempts.store_of(self.change.repository, provided.base_commit)
        store.take(provided.bundle, provided.base_commit, provided.shallow)
        for sentence in provided.left_out:
            self._tell.progress(f"left out: {visible(sentence)}")
        work = directory / "work"
        work.mkdir(mode=0o700)
        agent = self.change.agent or "agent"
        clone.make(
            store, provided, work,
            branch=branch_of(self.change),
            author=(agent, "agent@agents.invalid"),
            tree=self._before.tree if self._before else None,
            commits=self._commits_before(),
            owner=agents_account() if os.geteuid() == 0 else None,
        )  # fmt: skip
        kept, names = self._skills(directory / "skills")
        run = self._executed(provided.base_commit, Ground(work, skills=kept), names)
        self._check_ended(run)
        with interruption.put_off():
            self._take(work, provided.base_commit, run)

    def _commits_before(self) -> list[tuple[str, str]]:
        """The agent's commits that a revision goes on from; what it had not committed is none."""
        if self._before is None or not self.change.keep_commits:
            return []
        return [each for each in self._before.series if each[1]]

    def _skills(self, directory: Path) -> tuple[Path | None, list[str]]:
        """The approved ones, written where the run is given them from."""
        directory.mkdir()
        names = skills.write_into(directory, self.change.repository)
        for path in (directory, *directory.rglob("*")):  # whatever the umask is, the agent reads
            path.chmod(0o755 if path.is_dir() else 0o644)
        return (directory if names else None), names

    # -- the run ----------------------------------------------------------------------------------
    def _executed(self, base_commit: str, ground: Ground, names: list[str]) -> Run:
        order = self._order(base_commit, ground, names)
        with Interrupts() as interrupts:  # from here on a Ctrl-C is how the run ends
            with transaction.atomic():
                run, plan = self._begun(order, ground)
            if self._hold.lost:
                raise attempts.Lost
            self._tell.progress(f"run {run.uid}: {plan.agent.name} on {self.change}")
            try:
                ended = self._run_in_box(run, plan, self._tell, interrupts)
            except EngineError:
                run.refresh_from_db()
                ended = run
        _outlive_the_terminal()
        close_old_connections()  # of before the run: the server may have been started again
        return ended

    def _order(self, base_commit: str, ground: Ground, names: list[str]) -> Order:
        try:
            order = restored(self.change.order, self._task)
        except msgspec.ValidationError as exc:
            raise Over(f"its order is of another version of sanduk: {exc}") from None
        said = rules.of(self.change.repository.uid)
        order = repository_image.fitted(order, self.change.repository, said, base_commit)
        agent = make_plan(order, ground=ground).agent
        if order.shell:
            return order
        if self._before is None:
            text = wording.first(self._task, agent, names, keeps=self.change.keep_commits)
        else:
            text = wording.revision(
                self._task, self._before.task, agent, names, keeps=self.change.keep_commits
            )
        scoped = agent.repository_tools if not order.allowed_tools else order.allowed_tools
        return msgspec.structs.replace(order, task=text, allowed_tools=scoped)

    def _begun(self, order: Order, ground: Ground) -> tuple[Run, Plan]:
        """The run, written down with its part of the budget, and bound to the change.

        From here on the change's end can be told from the run's row, by whoever looks.
        """
        change = Change.objects.select_for_update(of=("self",)).get(pk=self.change.pk)
        if change.lease_owner != self._owner:
            raise attempts.Lost
        if change.stop_by:
            raise Over(f"cancelled by {change.stop_by}")
        try:
            budget = budgets.reserve(change, order)
        except budgets.Exhausted as exc:
            raise Over(str(exc)) from None
        plan = make_plan(msgspec.structs.replace(order, budget_usd=budget), ground=ground)
        run = start_here(
            plan,
            trigger=Run.Trigger.CHANGE,
            requested_by=change.requested_by,
            requested_as=change.requested_as,
        )
        if os.environ.get("Q_CLUSTER_NAME"):  # it takes the place of a run a worker was asked for
            Run.objects.filter(pk=run.pk).update(rung_at=clock.now())
        Change.objects.filter(pk=change.pk).update(run=run)
        self._run = run
        return run, plan

    def _check_ended(self, run: Run) -> None:
        """Raise Over unless the run leaves something to look at."""
        if run.state != Run.State.ENDED:
            raise Over(
                f"run {run.uid}: its container may still be there, so nothing is taken from it; "
                "try: sanduk clean"
            )
        if self._hold.lost:
            raise attempts.Lost
        if self.change.kind == Change.Kind.SHELL and run.started_at is not None:
            return  # however a person's own session ended, its work is theirs
        if run.outcome != Outcome.SUCCEEDED:
            why = f": {run.reason}" if run.reason else ""
            raise Over(f"run {run.uid} {run.outcome.replace('_', ' ')}{why}")

    # -- what is in the clone -----------------------------------------------------------------
    def _take(self, work: Path, base_commit: str, run: Run) -> None:
        account, wrong = results.take(work)
        left, proposed = artifacts.take(work), skills.take(work)
        unread = [(f".sanduk/skills/{name}", why) for name, why in proposed.refused]
        if wrong:
            file = f".sanduk/{results.FILE}"
            unread.insert(0, (file, wrong.removeprefix(f"{results.FILE}: ")))
        for path, why in unread:
            self._tell.warn(visible(f"{path}: {why}"))
        store = attempts.store_of(self.change.repository, base_commit)
        result = tree.read(work, store, base_commit)
        kept = self._series(work, store, base_commit, result.tree)
        before = self._before
        if result.tree == (before.tree if before else store.tree_of(base_commit)) and (
            before is None or kept is None or kept.pairs == before.series
        ):
            raise Over(
                "the revision changed nothing" if before else "nothing is different", S.UNCHANGED
            )
        if result.tree == store.tree_of(base_commit):
            raise Over("the revision took everything back", S.UNCHANGED)

        def beside(attempt: Attempt) -> None:
            artifacts.keep(attempt, left)
            skills.propose(attempt, proposed.proposals)
            budgets.settle(self.change, run)

        self._still_wanted()
        attempts.write(
            self.change, self._owner, base_commit, result,
            task=self._task, run=run, results=account, series=kept, unread=unread, beside=beside,
        )  # fmt: skip

    def _series(
        self, work: Path, store: Store, base_commit: str, result: str
    ) -> series.Series | None:
        """The agent's commits, where they are to be kept."""
        if not self.change.keep_commits:
            return None
        kept = series.read(work, store, base_commit, result)
        if kept.note:
            self._tell.progress(f"commits: {kept.note}")
        return kept

    # -- another end ----------------------------------------------------------------------------
    def end(self, state: str, reason: str) -> None:
        """Write down that nothing came of it; somebody else's end stands."""
        close_old_connections()
        try:
            with transaction.atomic():
                if Change.objects.give_up(self.change.pk, self._owner, state, reason[:2000]):
                    budgets.settle(self.change, self._run_now())
        except DatabaseError as exc:
            self._tell.warn(f"how {self.change} ended could not be written down: {exc}")

    def _run_now(self) -> Run | None:
        return Run.objects.filter(pk=self._run.pk).first() if self._run is not None else None

    def _still_wanted(self) -> None:
        found = Change.objects.filter(pk=self.change.pk).values_list("stop_by", flat=True).first()
        if found:
            raise Over(f"cancelled by {found}")


def _outlive_the_terminal() -> None:
    """What was made is read also when the terminal went away, which may be told more than once."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
