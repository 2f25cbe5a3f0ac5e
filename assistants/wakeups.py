"""One wakeup, from its claim to its end: gate, task, budget, memory, run, outbox.

Whatever happens in between, it ends: in the process that claimed it, or, when that one is gone, in
the next that looks (`recover`), from what the run's row says.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

import msgspec
from django.conf import settings
from django.db import IntegrityError, close_old_connections, transaction

from assistants import (
    briefing,
    briefs,
    budgets,
    collaborators,
    consequences,
    gate,
    lending,
    papers,
    reach,
)
from assistants.asked import asker_of
from assistants.config import Config, restored
from assistants.consequences import Verdict
from assistants.holding import Hold
from assistants.models import Assistant, InboxMessage, Wakeup
from runs import audit, lease, workspace
from runs.console import Console, Silent
from runs.engines.base import EngineError
from runs.lifecycle import execute, start_here
from runs.models import Run
from runs.plan import Plan, make_plan
from runs.refusal import HostRefusal, Refusal
from runs.visible import visible

W = Wakeup.Outcome
GATE_SHOWN = 120  # characters of what the gate printed that stand in the reason
LOST = "the process that executed it is gone"


class _Over(Exception):
    """It ends here, with this verdict."""

    def __init__(self, outcome: str, reason: str) -> None:
        super().__init__(reason)
        self.verdict = Verdict(outcome, reason)


class HoldLost(Exception):
    """Another process ended this wakeup: nothing of ours was written."""


def wake(pk: int, console: Console | None = None) -> Wakeup | None:
    """Claim a waiting wakeup and live it to its end in this process. None: it is not ours.

    It never raises because of the assistant's files, its gate, its agent or its run.
    """
    owner = lease.owner()
    if not _claimed(pk, owner):
        return None
    with Hold(pk, owner) as hold:
        life = _Life(_read(pk), owner, hold, console or Silent())
        # who ended it in our place wrote everything down
        with contextlib.suppress(HoldLost):
            life.end(_verdict(life))
    return _read(pk)


def _verdict(life: _Life) -> Verdict:
    """Live it; whatever breaks that off is written down before it goes on."""
    try:
        return life.live()
    except HoldLost:
        raise
    except (SystemExit, KeyboardInterrupt):
        life.end(Verdict(W.INTERRUPTED, "this process was told to stop"))
        raise
    except BaseException as exc:
        life.end(Verdict(W.FAILED, f"sanduk itself failed: {type(exc).__name__}"))
        raise


def recover(wakeup: Wakeup, console: Console | None = None) -> Wakeup | None:
    """End a wakeup whose process is gone, from what its run came to. None: it is not ours.

    A result that was there is not lost with the process that should have written it down. While
    the run's row still counts as live nothing is done: its own reconciliation comes first.
    """
    if wakeup.run is not None and wakeup.run.state != Run.State.ENDED:
        return None
    owner = lease.owner()
    if not Wakeup.objects.take_over(wakeup, owner, settings.SANDUK_LEASE_SECONDS):
        return None
    wakeup = _read(wakeup.pk)
    with Hold(wakeup.pk, owner) as hold:
        life = _Life(wakeup, owner, hold, console or Silent())
        with contextlib.suppress(HoldLost):
            life.end(life.of_run(wakeup.run) if wakeup.run else Verdict(W.INTERRUPTED, LOST))
    return _read(wakeup.pk)


def _claimed(pk: int, owner: str) -> bool:
    try:
        with transaction.atomic():
            return Wakeup.objects.claim(pk, owner, settings.SANDUK_LEASE_SECONDS)
    except IntegrityError:
        return False  # another wakeup of this assistant runs: this one waits


def _read(pk: int) -> Wakeup:
    return Wakeup.objects.select_related("assistant", "schedule", "run", "again_of").get(pk=pk)


@dataclass(frozen=True, slots=True)
class _Ready:
    """What a run needs, found and checked."""

    plan: Plan
    messages: list[InboxMessage]


class _Life:
    """A wakeup that this process holds."""

    def __init__(self, wakeup: Wakeup, owner: str, hold: Hold, console: Console) -> None:
        self.wakeup, self.assistant = wakeup, wakeup.assistant
        self._owner, self._hold, self._console = owner, hold, console
        self._notes: list[str] = []
        self._remembered = False  # the memory before it was taken

    # -- from the claim to the end of the run -----------------------------------------------------
    def live(self) -> Verdict:
        """Everything but the end. The verdict says how far it came."""
        try:
            config = self._config()
            self._still_wanted()
            self._check_reach(config)
            self._through_gate(config)
            ready = self._ready(config)
            self._remember_before()
            return self.of_run(self._executed(ready))
        except _Over as over:
            return over.verdict
        except briefing.BrokenSettings as exc:
            return Verdict(W.BROKEN, str(exc))

    def _config(self) -> Config:
        try:
            return restored(self.assistant.config)
        except msgspec.ValidationError as exc:
            raise _Over(W.BROKEN, f"its settings cannot be read: {exc}") from None

    def _still_wanted(self) -> None:
        if self.assistant.removed_at is not None:
            raise _Over(W.CANCELLED, "the assistant was removed")
        by_hand = self.wakeup.trigger == Wakeup.Trigger.HAND
        if self.assistant.disabled_at is not None and not by_hand:
            raise _Over(W.CANCELLED, "the assistant was disabled")

    def _check_reach(self, config: Config) -> None:
        """Before anything of its directory runs here: what its agent can write may not."""
        try:
            reach.check(self.assistant.name, briefing.directory(self.assistant), config)
        except Refusal as exc:
            raise _Over(W.BROKEN, str(exc)) from None

    def _through_gate(self, config: Config) -> None:
        if not config.gate:
            return
        try:
            answer = gate.ask(
                briefing.directory(self.assistant),
                config.gate,
                timeout_s=config.gate_timeout_s,
                name=self.assistant.name,
            )
        except gate.BrokenGate as exc:
            raise _Over(W.BROKEN, str(exc)) from None
        Wakeup.objects.filter(pk=self.wakeup.pk).update(gate_output=answer.output)
        if not answer.passes:
            said = visible(answer.output.strip(), limit=GATE_SHOWN)
            reason = f"the gate said no (exit {answer.code})"
            raise _Over(W.GATE, f"{reason}: {said}" if said else reason)

    def _ready(self, config: Config) -> _Ready:
        """The run, planned, with its part of the budget set aside."""
        brief, messages = briefing.brief(self.assistant, config), briefing.chosen(self.assistant)
        task = briefing.task(brief, messages)
        if not task:
            raise _Over(W.NOTHING, f"{config.brief} is empty and no message waits")
        try:
            budget = budgets.reserve(self.wakeup, config)
        except budgets.Exhausted as exc:
            raise _Over(W.BUDGET, str(exc)) from None
        order = briefing.order(self.assistant, config, task, budget_usd=budget)
        try:
            plan = make_plan(lending.with_key(self.assistant, order))
            workspace.prepare(plan.workspace)
        except HostRefusal as exc:
            raise _Over(W.MISSED, f"{consequences.BY_HOST}{exc}") from None
        except Refusal as exc:
            raise _Over(W.BROKEN, str(exc)) from None
        briefs.keep(self.assistant, brief, wakeup=self.wakeup)
        self._paper(papers.TASK, task)
        return _Ready(plan, messages)

    def _remember_before(self) -> None:
        try:
            collaborators.before_wakeup(self.assistant, self.wakeup)
        except HostRefusal as exc:
            raise _Over(W.MISSED, f"{consequences.BY_HOST}{exc}") from None
        except (OSError, Refusal) as exc:
            raise _Over(W.BROKEN, f"its memory could not be kept: {exc}") from None
        self._remembered = True

    def _executed(self, ready: _Ready) -> Run:
        try:
            with transaction.atomic():
                by = asker_of(self.wakeup)
                run = start_here(
                    ready.plan,
                    trigger=by.trigger,
                    requested_by=by.user,
                    requested_as=by.account,
                )
                self._bind(run, ready.messages)
        except Refusal as exc:
            # no room now, or somebody works there: no failure of the assistant's
            why = consequences.BY_HOST if isinstance(exc, HostRefusal) else ""
            raise _Over(W.MISSED, f"{why}{exc}") from None
        if self._hold.lost:
            raise HoldLost
        try:
            return execute(run, ready.plan, self._console)
        except EngineError:
            run.refresh_from_db()
            return run

    def _bind(self, run: Run, messages: list[InboxMessage]) -> None:
        """From here on the wakeup's end can be told from the run's row, by whoever looks."""
        Wakeup.objects.filter(pk=self.wakeup.pk, lease_owner=self._owner).update(run=run)
        self.wakeup.run = run
        self.wakeup.messages.set(messages)

    # -- the end ----------------------------------------------------------------------------------
    def of_run(self, run: Run) -> Verdict:
        """What the run came to, its report copied to where people look for it."""
        if run.report_state in (Run.Report.SAVED, Run.Report.CUT):
            self._paper(papers.REPORT, run.report)
        return consequences.of_run(run)

    def end(self, verdict: Verdict) -> None:
        """End the wakeup, with everything that follows from it, in one transaction.

        Raises HoldLost, with nothing written, when another process was faster.
        """
        close_old_connections()  # of before the run: the server may have been started again
        if self.wakeup.run is not None or self._remembered:
            self._remember_after()
        disabled = ""
        with transaction.atomic():
            self._end_row(verdict)
            if verdict.outcome == W.SUCCEEDED:
                InboxMessage.objects.consume(self.wakeup)
            disabled = consequences.apply(self.wakeup, verdict, self._config_or_none())
            # last, as it is audited: whoever disables it holds its row and waits for the audit
            self._say(verdict)
            if disabled:
                subject = f"assistant:{self.assistant.pk}"
                audit.record_policy("assistant.disable", subject, reason=disabled)
        self._console.progress(_told(self.assistant, verdict, disabled))

    def _end_row(self, verdict: Verdict) -> None:
        reason = "; ".join(part for part in (verdict.reason, *self._notes) if part)
        self.wakeup.refresh_from_db(fields=["reserved_usd"])
        ended = Wakeup.objects.end(
            self.wakeup.pk,
            self._owner,
            verdict.outcome,
            reason=reason[:2000],
            reserved_usd=budgets.settled(self.wakeup, self.wakeup.run),
        )
        if not ended:
            raise HoldLost(f"wakeup {self.wakeup.pk} was ended by another process")

    def _say(self, verdict: Verdict) -> None:
        """The outbox item, if there is something to say. A failure is said only when asked for."""
        config, run = self._config_or_none(), self.wakeup.run
        if config is None:
            return
        body = run.report if run and run.report_state in (Run.Report.SAVED, Run.Report.CUT) else ""
        succeeded = verdict.outcome == W.SUCCEEDED
        failed = verdict.outcome in (*consequences.FAILURES, W.INTERRUPTED)
        if failed and config.deliver_failures:
            code = "" if run is None or run.exit_code is None else f", exit {run.exit_code}"
            body = body or f"(no report{code}: {visible(verdict.reason)})"
        elif not succeeded:
            return
        if body.strip():
            collaborators.write_item(self.wakeup, body, config)

    def _config_or_none(self) -> Config | None:
        try:
            return restored(self.assistant.config)
        except msgspec.ValidationError:
            return None

    def _remember_after(self) -> None:
        try:
            collaborators.after_wakeup(self.assistant, self.wakeup)
        except (OSError, Refusal) as exc:
            self._notes.append(f"its memory could not be kept: {exc}")

    def _paper(self, kind: str, text: str) -> None:
        """A copy in reports/. Where it cannot be written the rows still hold everything."""
        try:
            papers.write(self.assistant, self.wakeup, kind, text)
        except OSError as exc:
            self._notes.append(f"no copy in reports/: {exc.strerror or exc}")


def _told(assistant: Assistant, verdict: Verdict, disabled: str) -> str:
    why = f": {verdict.reason}" if verdict.reason else ""
    ending = "; it is disabled now" if disabled else ""
    return f"{assistant.name}: {verdict.outcome.replace('_', ' ')}{why}{ending}"
