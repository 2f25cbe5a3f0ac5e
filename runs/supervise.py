"""One run, from its claim to its end, in one event loop.

Relay, engine commands, deadlines and heartbeat live in this loop; rows are written by two threads
of their own. Whatever happens in here, `Holdings` gives back what was taken before the run is
marked ended.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Coroutine
from functools import partial
from typing import Any, TypeVar

from django.conf import settings
from django.db import DatabaseError

import relay
from relay import CallRecord, EgressAttempt, Ledger
from runs import clock, disk_watch, keys, link, report, seal
from runs.agents.base import Result, Trace
from runs.attending import Attending
from runs.box import Box
from runs.console import Console
from runs.duration import spoken
from runs.ending import Ending
from runs.engines.base import LABEL_INSTALL, LABEL_RUN, ContainerState, EngineError
from runs.engines.failures import why_not_started
from runs.following import Following
from runs.hidden import Hiding
from runs.holdings import Holdings
from runs.host_fault import is_by_host
from runs.installation import install_id, run_directory
from runs.models import Run
from runs.models.run import Outcome
from runs.outcome import Halt, Seen, decide
from runs.plan import Plan
from runs.recorder import Recorder
from runs.refusal import Refusal
from runs.shown import place
from runs.starting import Starting
from runs.stream import Listener, OutputLog
from runs.visible import visible

T = TypeVar("T")
STOP_GRACE_S = 10
SHELL_GRACE_S = 1  # an interactive shell does not heed a TERM
DRAIN_S = 5.0
# early for an agent that ends at once, then for one whose container takes long to start
NAMESPACE_LOOKS_S = (0.03, 0.05, 0.1, 0.2, 0.4, 0.4, 0.8, 0.8)


class Halted(Exception):
    """We end the run ourselves."""

    def __init__(self, kind: Halt, reason: str) -> None:
        super().__init__(reason)
        self.kind: Halt = kind
        self.reason = reason


class Supervision:
    """Args:
    run: the claimed row.
    plan: what to run.
    recorder: writes its events and calls.
    console: where trace and progress go besides the rows.
    """

    def __init__(self, run: Run, plan: Plan, recorder: Recorder, console: Console) -> None:
        self.run, self.plan, self.console = run, plan, console
        self._recorder = recorder
        self._engine = plan.engine
        self._ledger = Ledger(on_call=self._on_call)
        self._halted: Halted | None = None
        self._halt_event, self._hurry = asyncio.Event(), asyncio.Event()
        self._listener = Listener(plan.agent.reader())
        self._log = OutputLog(run_directory(run.uid) / "output.log")
        self._starting: Starting | None = None
        self._container = ""
        self._hiding = Hiding(_keys(plan))
        shell = plan.order.shell
        follower = partial(Attending, tty=shell in ("tty", "agent")) if shell else Following
        self._following: Following = follower(
            plan.engine,
            self._listener,
            self._log,
            on_trace=self.trace,
            on_error_line=lambda text: recorder.event("stderr", text),
            on_silence=self._ask_link,
            hurry=self._hurry,
            hiding=self._hiding,
        )

    # -- what may end it from outside ---------------------------------------------------------
    def halt(self, kind: Halt, reason: str) -> None:
        """End the run for this reason; the first reason stands. A second call hurries it."""
        if self._halted is None:
            self._halted = Halted(kind, reason)
            self._halt_event.set()
            self.step(f"ending: {reason}")
        else:
            self._hurry.set()

    def step(self, text: str) -> None:
        """Note one step of sanduk's own, in the rows and on the console."""
        self._recorder.event("step", text)
        self.console.progress(text)

    def trace(self, trace: Trace) -> None:
        self._recorder.event(trace.kind, trace.text, trace.detail)
        self.console.trace(trace)

    def _on_call(self, record: CallRecord) -> None:
        if not self._container:
            return  # the link's probe, which has no token: the certificate tells of it
        self._recorder.call(record)
        if record.refusal:
            self.console.progress(f"relay refused {record.method} {record.path}: {record.refusal}")

    def _on_attempt(self, attempt: EgressAttempt) -> None:
        self._recorder.attempt(attempt)
        if not attempt.allowed:
            hint = f"; {attempt.flag} would allow it" if attempt.flag else ""
            where = place(attempt.host, attempt.port)
            self.console.progress(f"egress refused {where}: {attempt.reason}{hint}")

    # -- the whole life -----------------------------------------------------------------------
    async def live(self, box: Box, owner: str) -> Ending:
        """Run it, decide how it ended, store that, give everything back."""
        labels = {LABEL_INSTALL: install_id(), LABEL_RUN: self.run.uid}
        try:
            async with Holdings(self._engine, labels, box) as holdings:
                ending = await self._to_the_end(holdings, owner)
                columns = ending.columns()
                try:
                    await self._recorder.rows(
                        lambda: Run.objects.mark_ending(self.run.uid, owner, **columns)
                    )
                except DatabaseError as exc:
                    ending.unwritten = str(exc)
        finally:
            if self._log.failure:
                self.step(f"the raw output is not stored whole: {self._log.failure}")
            self._log.close()
        ending.left = holdings.left
        return ending

    async def _to_the_end(self, holdings: Holdings, owner: str) -> Ending:
        state: ContainerState | None = None
        starting = self._starting = Starting(
            self.plan, holdings, self._ledger, self.console, self.step, self._on_attempt
        )
        try:
            self._container = await self._unless_halted(starting.container())
            facts = {"image": starting.image_tag, "certificate": self._certificate()}
            await self._recorder.rows(
                lambda: Run.objects.mark_running(self.run.uid, owner, **facts)
            )
            state = await self._watch(self._container)
        except Halted:
            pass
        except (Refusal, EngineError, relay.InvalidCredential, seal.ProbeFailed) as exc:
            if not self._following.started:
                return Ending(
                    Outcome.REFUSED,
                    str(exc),
                    certificate=self._certificate(),
                    by_host=await is_by_host(self._engine, exc),
                )
            self.halt("interrupted", f"the engine stopped answering: {exc}")
        return await self._conclude(holdings, state)

    async def _conclude(self, holdings: Holdings, state: ContainerState | None) -> Ending:
        result, halted = self._result(state), self._halted
        outcome, reason = decide(
            Seen(
                halt=halted.kind if halted else None,
                halt_reason=halted.reason if halted else "",
                exit_code=state.exit_code if state else None,
                oom_killed=bool(state and state.oom_killed),
                result=result,
                checks_calls=self.plan.checks_calls,
                calls_completed=self._ledger.completed,
                memory=self.plan.order.memory,
                exhausted=_exhausted(self._ledger),
                last_words=visible(self._following.last_error, limit=200),
                not_started=self._why_not_started(state),
            )
        )
        if state and state.error and state.started and not result:
            reason = f"{reason}: {state.error}"
        if state and state.oom_killed and outcome != Outcome.OUT_OF_MEMORY:
            self.trace(Trace("note", "the kernel killed a process of this run for memory"))
        ending = Ending(
            outcome,
            reason,
            ledger=self._ledger,
            agent_exit_code=state.exit_code if state else None,
            result=result,
            certificate=self._certificate(),
            kept=self._container if self.plan.order.keep else "",
        )
        holdings.keeps = bool(ending.kept)
        if self._following.started:
            ending.report = await asyncio.to_thread(self._collect_report)
            if ending.report.note:
                self.trace(Trace("note", f"report: {ending.report.note}"))
        if self._hiding.found:
            self.trace(Trace("note", "a key stood in what the agent wrote; it is not kept"))
        return ending

    def _result(self, state: ContainerState | None) -> Result | None:
        """What the agent said of itself; a shell or a command says it by its exit code."""
        what = "shell" if self.plan.order.shell else "command"
        if what == "command" and not self.plan.agent.is_command:
            return self._listener.result()
        if state is None or state.exit_code is None:
            return None
        return Result(state.exit_code == 0, error=f"the {what} exited with {state.exit_code}")

    def _why_not_started(self, state: ContainerState | None) -> str:
        """The engine's reason, when the agent's command never ran: that is no failure of it."""
        if state is None or state.started:
            return ""
        return why_not_started(state.error or self._following.last_error)

    def _certificate(self) -> dict[str, Any]:
        found = self._starting.certificate if self._starting else None
        if found and self._following.started:
            found = seal.namespace_checked(found)
        return found.as_stored() if found else {}

    def _collect_report(self) -> report.Report:
        if self.plan.order.shell or self.plan.ground is not None:
            return report.Report(Run.Report.NONE)
        workspace = str(self.plan.workspace.path)
        found = report.collect(workspace, limit=settings.SANDUK_REPORT_MAX_BYTES)
        if found.state == Run.Report.MISSING and not self.plan.order.report_instruction:
            return report.Report(Run.Report.NONE)  # nobody asked for one
        return report.hidden(found, self._hiding)

    # -- watching -----------------------------------------------------------------------------
    async def _watch(self, container: str) -> ContainerState | None:
        """Follow the container to its end, or end it. Returns its state as `inspect` gives it."""
        follow = asyncio.create_task(self._following.to_the_end(container))
        tasks = {follow, *(asyncio.create_task(each) for each in self._watchers())}
        halted = asyncio.create_task(self._halt_event.wait())
        try:
            await asyncio.wait({follow, halted}, return_when=asyncio.FIRST_COMPLETED)
            if not follow.done():
                await self._stop(container, follow)
            return await follow if follow.done() else await self._following.state(container)
        finally:
            for task in (*tasks, halted):
                task.cancel()
            await asyncio.gather(*tasks, halted, return_exceptions=True)

    def _watchers(self) -> list[Coroutine[Any, Any, None]]:
        """What may halt a running run. Each ends quietly or calls `halt`."""
        order = self.plan.order
        watchers = [self._deadline(order.timeout_s)]
        if order.idle_timeout_s:
            watchers.append(self._silence(order.idle_timeout_s))
        if self.plan.agent.is_command:
            watchers.append(self._disk())
        if self._starting and self._starting.link:
            watchers.append(self._link_end(self._starting.link))
            watchers.append(self._same_namespace(self._starting))
        return watchers

    async def _deadline(self, limit_s: float) -> None:
        await clock.sleep(limit_s)
        self.halt("timed_out", f"not done within {spoken(limit_s)} (--timeout)")

    async def _silence(self, limit_s: float) -> None:
        """Neither output nor relay traffic for `limit_s`."""
        relayed, following = self._ledger.last_activity, self._following
        while True:
            await clock.sleep(min(1.0, limit_s / 4))
            if self._ledger.last_activity != relayed:
                relayed = self._ledger.last_activity
                following.last_seen = clock.monotonic()
            if clock.monotonic() - following.last_seen >= limit_s:
                break
        unanswered = self._ledger.in_flight
        waiting = f", {unanswered} model call(s) unanswered" if unanswered else ""
        quiet = f"no output and no model traffic for {spoken(limit_s)} (--idle-timeout)"
        self.halt("stalled", f"{quiet}{waiting}")

    async def _disk(self) -> None:
        self.halt("interrupted", await disk_watch.filled(self.plan.workspace.path))

    async def _link_end(self, running: link.Link) -> None:
        await link.watch(running)
        try:
            # the pipe alone proves nothing; the engine says whether the container ended
            while (state := await self._following.state(running.container)) is not None:
                if state.status != "running":
                    break
                await asyncio.sleep(1)
        except EngineError as exc:
            self.halt("interrupted", f"the engine stopped answering: {exc}")
        else:
            self.halt("link_lost", "the link to the relay ended: the engine or the host did it")

    async def _same_namespace(self, starting: Starting) -> None:
        """Compare the agent's network namespace with the probed one, from the host."""
        for pause_s in NAMESPACE_LOOKS_S:
            await asyncio.sleep(pause_s)
            state = await self._following.state(self._container)
            if state is None or starting.certificate is None or state.status == "exited":
                return
            same = seal.same_namespace(starting.certificate, state.pid)
            if same is False:
                self.halt("interrupted", "the agent's network namespace is not the probed one")
            elif same:
                starting.certificate = seal.with_namespace_check(starting.certificate)
            if same is not None:
                return

    # -- asking and ending --------------------------------------------------------------------
    async def _ask_link(self) -> None:
        """Before any outcome: a daemon that was stopped looks like a clean exit."""
        running = self._starting.link if self._starting else None
        if running is None or self._halted is not None:
            return
        state = await self._following.state(running.container)
        if state is None or state.status != "running":
            self.halt("link_lost", "the link to the relay had ended before the agent did")

    async def _stop(self, container: str, follow: asyncio.Task[Any]) -> None:
        """Ask the container to stop; hurried, let the removal kill it. Then drain its output."""
        grace = SHELL_GRACE_S if self.plan.order.shell else STOP_GRACE_S
        grace = 0 if self._hurry.is_set() else grace
        stopping = asyncio.create_task(self._engine.stop(container, grace_s=grace))
        hurried = asyncio.create_task(self._hurry.wait())
        try:
            await asyncio.wait({stopping, hurried}, return_when=asyncio.FIRST_COMPLETED)
            if stopping.done():
                stopping.result()
                await asyncio.wait({follow}, timeout=DRAIN_S)
        except EngineError as exc:
            self.step(f"the container did not stop when asked: {exc}")
        finally:
            stopping.cancel()
            hurried.cancel()
            await asyncio.gather(stopping, hurried, return_exceptions=True)

    async def _unless_halted(self, work: Awaitable[T]) -> T:
        """Await `work`; a halt meanwhile cancels it and raises Halted."""
        task = asyncio.ensure_future(work)
        halted = asyncio.create_task(self._halt_event.wait())
        try:
            await asyncio.wait({task, halted}, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            raise self._halted or Halted("interrupted", "stopped")
        finally:
            halted.cancel()


def _keys(plan: Plan) -> list[str]:
    """Every key that this run could have come across."""
    found = keys.held_keys()
    if plan.provider is not None and plan.provider.key_env:
        with contextlib.suppress(Refusal):  # a key that cannot be read cannot get out
            found.append(keys.value_of(plan.provider.key_env))
    return found


def _exhausted(ledger: Ledger) -> str:
    if not ledger.exhausted:
        return ""
    if not ledger.tokens and not ledger.spent_usd:
        return "the budget has no room for a call"
    least = "≥ " if ledger.spent_is_lower_bound else ""
    money = f"{least}${ledger.spent_usd:.4f} and " if ledger.spent_usd else ""
    return f"the budget is used up: {money}{ledger.tokens:,} tokens"
