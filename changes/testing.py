"""The operator's tests on one attempt: base and stored patch, in a fresh box without a network.

Nothing of the agent's clone is there: the files are written from the tree in our own store. What
runs is what the operator of this host says, or the person who asks for it; never the branch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
from django.db import transaction

from changes import attempts, fresh, missing_tools, repository_image, rules
from changes.git import GitError
from changes.models import Attempt, Change, TestRun
from changes.rules import Rules
from runs import audit
from runs.agents import get_agent
from runs.agents.base import AgentRefusal, Trace
from runs.agents.command import Command, Ending
from runs.interrupts import Interrupts
from runs.lifecycle import execute, start_here
from runs.models import Run
from runs.models.run import Outcome
from runs.order import Order, restored
from runs.plan import Ground, Plan, make_plan
from runs.refusal import Refusal
from runs.verdicts import Person
from runs.visible import visible

Tell = Callable[[str], None]
OUTPUT_KEPT = 64 << 10  # bytes
COMMAND_MAX = 20_000  # characters
_LINE = 400


def quiet(text: str) -> None:
    """Tell nobody; everything is in the rows anyway."""


def test(
    uid: str,
    person: Person,
    *,
    command: str = "",  # noqa: PT028 - this is no test of pytest's
    tell: Tell = quiet,  # noqa: PT028
) -> TestRun:
    """Run the tests on the attempt of a change that is looked at, in this process, to their end.

    Args:
        command: what to run, for `/bin/sh`; "": what the operator's rules name.
        tell: is given each line of progress, and what the tests print, made printable.
    Returns:
        the ended row: `passed`, `failed`, `timed_out`, or `not_run` with the reason.
    Raises:
        Refusal: there is no such change, nothing to test yet, no command, or its rules cannot be
            read, or this host cannot run anything now. Nothing was written down then.
    """
    return carried_out(asked(uid, command), person, tell=tell)


test.__test__ = False  # type: ignore[attr-defined]  # pytest would collect it by its name


class Taken(Refusal):
    """Another process runs these tests."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be tested, by which command and rules."""

    change: Change
    attempt: Attempt
    command: str
    said: Rules


def asked(uid: str, command: str = "") -> Asked:
    """Everything that can be refused at once. Raises Refusal as `test` does."""
    change = Change.objects.select_related("repository", "attempt").filter(uid=uid).first()
    if change is None:
        raise Refusal(f"there is no change {uid}; sanduk change list shows them")
    if change.attempt is None:
        raise Refusal(f"{change} is {change.state}: there is nothing to test")
    said = rules.of(change.repository.uid)
    chosen = command.strip() or said.test_command.strip()
    if not chosen:
        raise Refusal(
            f"no tests are named for {visible(change.repository.name, limit=80)}: give --test-cmd, "
            f"or write test_command in {rules.file_of(change.repository.uid)}"
        )
    if "\0" in chosen or len(chosen) > COMMAND_MAX:
        raise Refusal(f"a test command is a text of at most {COMMAND_MAX:,} characters")
    return Asked(change, change.attempt, chosen, said)


def plan_of(wanted: Asked, directory: Path) -> Plan:
    """The run, in the repository's image and without a network. Raises Refusal, GitError."""
    repository, base = wanted.change.repository, wanted.attempt.base_commit
    order = repository_image.fitted(_order(wanted), repository, wanted.said, base)
    if not (order.recipe or order.image or order.containerfile):
        order = msgspec.structs.replace(order, recipe=_agents_recipe(wanted))
    return make_plan(order, ground=Ground(directory))


def carried_out(
    wanted: Asked, person: Person, *, row: TestRun | None = None, tell: Tell = quiet
) -> TestRun:
    """Run the tests; the ended row.

    Args:
        row: where it was written down before, for a worker; without one it is made here.
    Raises:
        Taken: another process runs what the row says.
        Refusal: as `test`; a row that was there is left as it is.
    """
    console = _Console(tell)
    ending = Ending(OUTPUT_KEPT)
    try:
        store = attempts.kept_store(wanted.change.repository)
        if not attempts.is_intact(wanted.attempt, store):
            raise Refusal(f"{wanted.change} is not what came back: its digest does not fit")
        tell("writing the base with the patch, from our own store")
        with fresh.directory(wanted.attempt, store) as directory:
            plan = replace(plan_of(wanted, directory), agent=Command(ending))
            with Interrupts() as interrupts:
                run, row = _begun(wanted, plan, person, row)
                run = execute(run, plan, console, interrupts)
    except GitError as exc:
        raise Refusal(f"what {wanted.change} holds cannot be read any more: {exc}") from None
    return _ended(row, run, wanted, ending)


def outcome_of(run: Run) -> tuple[str, str]:
    """How the tests ended, by their run, and the reason in words."""
    code = run.agent_exit_code
    if run.outcome == Outcome.SUCCEEDED and code == 0:
        return TestRun.Outcome.PASSED, ""
    if run.outcome == Outcome.TIMED_OUT:
        # the time is of the rules, and no flag of a command
        return TestRun.Outcome.TIMED_OUT, run.reason.replace("(--timeout)", "(test_timeout)")
    if run.outcome in (Outcome.FAILED, Outcome.OUT_OF_MEMORY) and code is not None:
        return TestRun.Outcome.FAILED, run.reason
    return TestRun.Outcome.NOT_RUN, run.reason or f"its run ended as {run.outcome}"


def _order(wanted: Asked) -> Order:
    """Where the change's own run was made, without what was for its agent alone."""
    change = wanted.change
    try:
        asked_for = restored({"task": "", **change.order}, wanted.command)
    except msgspec.ValidationError:
        asked_for = Order(task=wanted.command)
    return Order(
        task=wanted.command,
        agent="command",
        workdir="",
        recipe=asked_for.recipe,
        image=asked_for.image,
        containerfile=asked_for.containerfile,
        kits=asked_for.kits,
        browser=asked_for.browser,
        runtime=asked_for.runtime,
        oci_runtime=asked_for.oci_runtime,
        cpus=asked_for.cpus,
        memory=asked_for.memory,
        no_network=True,
        report_instruction=False,
        timeout_s=wanted.said.test_timeout_s,
    )


def _agents_recipe(wanted: Asked) -> str:
    try:
        return get_agent(wanted.attempt.agent).recipe
    except AgentRefusal as exc:
        raise Refusal(str(exc)) from None


def _begun(wanted: Asked, plan: Plan, person: Person, row: TestRun | None) -> tuple[Run, TestRun]:
    """Both rows in one transaction: tests that go on always have a run, which has a lease."""
    account = "" if person.user is not None else person.account
    with transaction.atomic():
        run = start_here(
            plan,
            trigger=Run.Trigger.CHANGE,
            requested_by=person.user,
            requested_as=account,
        )
        if row is None:
            row = TestRun.objects.create(
                attempt=wanted.attempt,
                digest=wanted.attempt.digest,
                command=wanted.command,
                run=run,
                requested_by=person.user,
                requested_as=account,
            )
        elif not TestRun.objects.filter(pk=row.pk, run=None, outcome="").update(run=run):
            raise Taken("another process runs these tests")
    return run, row


def _ended(row: TestRun, run: Run, wanted: Asked, ending: Ending) -> TestRun:
    outcome, reason = outcome_of(run)
    printed = _text(ending)
    if outcome == TestRun.Outcome.FAILED:
        file = rules.file_of(wanted.change.repository.uid)
        reason = missing_tools.named(wanted.command, run.agent_exit_code, printed, file) or reason
    if TestRun.objects.finish(
        row.pk,
        outcome,
        exit_code=run.agent_exit_code,
        reason=reason[:2000],
        output=printed,
        output_bytes=ending.total,
    ):
        who = {"actor": row.requested_by} if row.requested_by is not None else {}
        audit.record(
            "change.test", f"change:{wanted.change.uid}", **who, sha256=row.digest,
            command=wanted.command[:2000], outcome=outcome,
        )  # fmt: skip
    row.refresh_from_db()
    return row


def _text(ending: Ending) -> str:
    """The end of the output, from the beginning of a line where something is missing before it."""
    data = ending.read()
    if ending.total > len(data):
        data = data.partition(b"\n")[2] or data
    return data.decode("utf-8", "replace").replace("\0", "\N{SYMBOL FOR NULL}")


class _Console:
    """Everything of the run goes to whoever is told, as plain text."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell

    def progress(self, text: str) -> None:
        self._tell(visible(text, limit=_LINE))

    def warn(self, text: str) -> None:
        self._tell(visible(text, limit=_LINE))

    def trace(self, trace: Trace) -> None:
        if trace.kind != "text" or trace.text.strip():
            self._tell(f"  {visible(trace.text, limit=_LINE)}")
