"""One run, from its claim to its end, in one event loop.

Relay, engine commands, deadlines and heartbeat live in this loop; rows are written by two threads
of their own. Whatever happens in here, `Holdings` gives back what was taken before the run is
marked ended.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Coroutine
from contextlib import AsyncExitStack
from typing import Any, TypeVar

from django.conf import settings

import relay
from relay import CallRecord, Ledger
from runs import clock, images, keys, link, report, seal
from runs.agents.base import Trace
from runs.box import Box
from runs.console import Console
from runs.duration import spoken
from runs.ending import Ending
from runs.engines.base import (
    LABEL_INSTALL,
    LABEL_ROLE,
    LABEL_RUN,
    ContainerSpec,
    ContainerState,
    EngineError,
    ImageFacts,
    Mount,
)
from runs.holdings import Holdings
from runs.installation import install_id, run_directory
from runs.locality import require_local
from runs.models import Run
from runs.models.run import Outcome
from runs.mounts import BOX, WORK
from runs.outcome import Halt, Seen, decide
from runs.plan import Image, Plan
from runs.recorder import Recorder
from runs.refusal import Refusal
from runs.stream import Lines, Listener, OutputLog

T = TypeVar("T")
U = TypeVar("U")
AFTER_DEADLINE_S = 120  # the container's own limit lies this far behind ours
STOP_GRACE_S = 10
DRAIN_S = 5.0
UNANSWERED_S = 60.0  # how long an engine may be silent before a running run is given up
LINK_MARGIN_S = 60


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
    console: where trace and progress go besides the rows.
    """

    def __init__(self, run: Run, plan: Plan, recorder: Recorder, console: Console) -> None:
        self.run, self.plan = run, plan
        self.console = console
        self._recorder = recorder
        self._engine = plan.engine
        self._ledger = Ledger(on_call=self._on_call)
        self._token = secrets.token_urlsafe(24)
        self._halted: Halted | None = None
        self._halt_event = asyncio.Event()
        self._hurry = asyncio.Event()
        self._listener = Listener(plan.agent.reader())
        self._log = OutputLog(run_directory(run.uid) / "output.log")
        self._last_seen = clock.monotonic()
        self._certificate: seal.Certificate | None = None
        self._link: link.Link | None = None
        self._agent_started = False

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
        self._recorder.call(record)
        if record.refusal:
            self.console.progress(f"relay refused {record.method} {record.path}: {record.refusal}")

    # -- the whole life -----------------------------------------------------------------------
    async def live(self, box: Box, owner: str) -> Ending:
        """Run it, decide how it ended, store that, give everything back."""
        labels = {LABEL_INSTALL: install_id(), LABEL_RUN: self.run.uid}
        try:
            async with Holdings(self._engine, labels, box) as holdings:
                ending = await self._to_the_end(holdings, owner)
                columns = ending.columns()
                await self._recorder.rows(
                    lambda: Run.objects.mark_ending(self.run.uid, owner, **columns)
                )
        finally:
            self._log.close()
        ending.left = holdings.left
        return ending

    async def _to_the_end(self, holdings: Holdings, owner: str) -> Ending:
        state: ContainerState | None = None
        try:
            container = await self._start(holdings, owner)
            state = await self._watch(container)
            await self._ask_link()
        except Halted:
            pass
        except (Refusal, EngineError, relay.InvalidCredential) as exc:
            if not self._agent_started:
                return Ending(Outcome.REFUSED, str(exc), certificate=self._stored_certificate())
            self.halt("interrupted", f"the engine stopped answering: {exc}")
        except seal.ProbeFailed as exc:
            return Ending(Outcome.REFUSED, f"the seal could not be checked: {exc}")
        return await self._conclude(holdings, state)

    async def _conclude(self, holdings: Holdings, state: ContainerState | None) -> Ending:
        result = self._listener.result()
        halted = self._halted
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
            )
        )
        if state and state.error and not result:
            reason = f"{reason}: {state.error}"
        if state and state.oom_killed and outcome != Outcome.OUT_OF_MEMORY:
            self.trace(Trace("note", "the kernel killed a process of this run for memory"))
        ending = Ending(
            outcome,
            reason,
            agent_exit_code=state.exit_code if state else None,
            result=result,
            certificate=self._stored_certificate(),
            kept=await self._keep(holdings),
        )
        if self._agent_started:
            ending.report = await asyncio.to_thread(self._collect_report)
        return ending

    def _stored_certificate(self) -> dict[str, Any]:
        return self._certificate.as_stored() if self._certificate else {}

    def _collect_report(self) -> report.Report:
        workspace = str(self.plan.workspace.path)
        found = report.collect(workspace, limit=settings.SANDUK_REPORT_MAX_BYTES)
        if found.state == Run.Report.MISSING and not self.plan.order.report_instruction:
            return report.Report(Run.Report.NONE)  # nobody asked for one
        return found

    async def _keep(self, holdings: Holdings) -> str:
        if not (self.plan.order.keep and self._container):
            return ""
        holdings.kept = self._container
        try:
            await self._engine.stop(self._container, grace_s=0)
        except EngineError as exc:
            self.step(f"the kept container could not be stopped: {exc}")
        return self._container

    _container = ""

    # -- starting -----------------------------------------------------------------------------
    async def _start(self, holdings: Holdings, owner: str) -> str:
        order, plan = self.plan.order, self.plan
        credential = keys.provider_key(plan.provider) if plan.provider else ""
        if order.relayed:
            await self._unless_halted(require_local(self._engine))
            facts, _ = await self._unless_halted(
                _both(self._images(), self._relay(holdings, credential))
            )
            network = await self._unless_halted(self._sealed_link(holdings))
        else:
            facts = await self._unless_halted(self._image(plan.image))
            network = "none" if order.no_network else order.network or "default"
        launch = plan.launch(self._token if order.relayed else credential)
        files = self._files(holdings.box, facts, launch.env, launch.task_on_stdin)
        spec = self._spec(facts, launch.argv, files, network, holdings.labels)
        self._container = await self._unless_halted(holdings.create(spec))
        await self._recorder.rows(
            lambda: Run.objects.mark_running(self.run.uid, owner, image=plan.image.tag)
        )
        return self._container

    async def _image(self, image: Image) -> ImageFacts:
        return await images.ensure(
            self._engine, image, self.console, rebuild=self.plan.order.rebuild
        )

    async def _images(self) -> ImageFacts:
        """The agent's image and the link's, at the same time."""
        if self.plan.link_image is None:
            return await self._image(self.plan.image)
        link_image = images.ensure(self._engine, self.plan.link_image, self.console)
        facts, _ = await _both(self._image(self.plan.image), link_image)
        return facts

    async def _relay(self, holdings: Holdings, key: str) -> None:
        """Bind and serve the relay's socket, and the rehearsal model's behind it."""
        provider = self.plan.provider
        if provider is None:
            return
        stack = AsyncExitStack()
        holdings.take("the relay", stack.aclose)
        upstream = None
        if provider.name == "rehearsal":
            path = holdings.box.rehearsal_socket
            model = relay.create_rehearsal_app()
            await stack.enter_async_context(relay.serving(model, relay.bind_unix(path)))
            upstream = relay.Endpoint.at_socket(str(path))
        policy = relay.Policy(provider, upstream)
        credential = relay.Credential(key, provider.key_env) if key else None
        app = relay.create_app(policy, credential, self._token, self._ledger)
        listening = relay.bind_unix(holdings.box.relay_socket)
        link.hand_over(holdings.box.relay_socket)
        await stack.enter_async_context(relay.serving(app, listening))

    async def _sealed_link(self, holdings: Holdings) -> str:
        """Start the link, hear its probe, judge the seal. Returns the network for the agent."""
        order, plan = self.plan.order, self.plan
        network = "none"
        if order.mode == "key-safe":
            network = await holdings.network(f"sanduk-{self.run.uid}", internal=False)
        tag = plan.link_image.tag if plan.link_image else ""
        container = await holdings.create(
            link.spec(
                image=tag,
                network=network,
                box=holdings.box,
                labels=holdings.labels,
                limit_s=order.timeout_s + AFTER_DEADLINE_S + LINK_MARGIN_S,
                oci_runtime=order.oci_runtime or None,
            )
        )
        self._link = await link.start(self._engine, container)
        found = await link.answer(self._link)
        self._certificate = seal.judge(found, mode=order.mode)
        self.step(self._certificate.headline)
        if self._certificate.holes:
            raise Refusal("; ".join(self._certificate.holes))
        return f"container:{container}"

    def _files(
        self, box: Box, facts: ImageFacts, env: Any, task_on_stdin: bool
    ) -> tuple[Mount, ...]:
        import os

        order, place = self.plan.order, self.plan.workspace
        passed = {name: os.environ[name] for name in order.env_names if name in os.environ}
        files = box.agent_files(
            uid=place.uid,
            gid=place.gid,
            home=_home(facts, self.plan.image),
            env={**env, **order.env, **passed},
            stdin=self.plan.task if task_on_stdin else None,
        )
        return (
            files
            if order.mode == "open" and not order.no_network
            else (
                *files,
                *box.network_files(),
            )
        )

    def _spec(
        self,
        facts: ImageFacts,
        argv: tuple[str, ...],
        files: tuple[Mount, ...],
        network: str,
        labels: dict[str, str],
    ) -> ContainerSpec:
        order, place = self.plan.order, self.plan.workspace
        if not facts.entrypoint:
            raise Refusal(
                f"image {self.plan.image.tag} has no entrypoint; it must be the agent's command"
            )
        limit = order.timeout_s + AFTER_DEADLINE_S
        return ContainerSpec(
            image=self.plan.image.tag,
            entrypoint=f"{BOX}/entry",
            argv=(str(limit), *facts.entrypoint, *argv),
            labels={**labels, LABEL_ROLE: "agent"},
            user=f"{place.uid}:{place.gid}",
            extra_groups=(0,),
            env={"HOME": _home(facts, self.plan.image)},
            mounts=(
                Mount(str(place.path), WORK, read_only=False),
                *files,
                *self.plan.mounts,
            ),
            workdir=WORK,
            network=network,
            memory=order.memory,
            cpus=order.cpus,
            oci_runtime=order.oci_runtime or None,
            share_userns_of=self._link.container if self._link else None,
        )

    # -- watching -----------------------------------------------------------------------------
    async def _watch(self, container: str) -> ContainerState | None:
        """Follow the container to its end, or end it. Returns its state as `inspect` gives it."""
        self._last_seen = clock.monotonic()
        follow = asyncio.create_task(self._follow(container))
        watchers = [asyncio.create_task(c) for c in self._watchers()]
        try:
            waiting = {follow, *watchers, asyncio.create_task(self._halt_event.wait())}
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            if self._halted is not None and not follow.done():
                await self._stop(container, follow)
            return await follow if follow.done() else await self._state(container)
        finally:
            for task in (*waiting, *watchers):
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)

    def _watchers(self) -> list[Coroutine[Any, Any, None]]:
        order = self.plan.order
        watchers = [self._deadline(order.timeout_s)]
        if order.idle_timeout_s:
            watchers.append(self._silence(order.idle_timeout_s))
        if self._link is not None:
            watchers.append(self._link_end(self._link))
            watchers.append(self._same_namespace())
        return watchers

    async def _deadline(self, limit_s: float) -> None:
        await clock.sleep(limit_s)
        self.halt("timed_out", f"not done within {spoken(limit_s)} (--timeout)")
        await self._halt_event.wait()

    async def _silence(self, limit_s: float) -> None:
        """Neither output nor relay traffic for `limit_s`."""
        activity = self._ledger.last_activity
        while True:
            await clock.sleep(min(1.0, limit_s / 4))
            if self._ledger.last_activity != activity:
                activity = self._ledger.last_activity
                self._last_seen = clock.monotonic()
            if clock.monotonic() - self._last_seen >= limit_s:
                self.halt("stalled", self._silence_in_words(limit_s))
                return

    def _silence_in_words(self, limit_s: float) -> str:
        open_calls = self._ledger.in_flight
        waiting = f", {open_calls} model call(s) unanswered" if open_calls else ""
        return f"no output and no model traffic for {spoken(limit_s)} (--idle-timeout){waiting}"

    async def _link_end(self, running: link.Link) -> None:
        await link.watch(running)
        # the pipe alone proves nothing; the engine says whether the container ended
        state = await self._state(running.container)
        while state is not None and state.status == "running":
            await asyncio.sleep(1)
            state = await self._state(running.container)
        self.halt("link_lost", "the link to the relay ended: the engine or the host stopped it")

    async def _same_namespace(self) -> None:
        """Compare the agent's network namespace with the probed one, from the host."""
        if self._certificate is None:
            return
        state = await self._state(self._container)
        same = seal.same_namespace(self._certificate, state.pid if state else None)
        if same is False:
            self.halt("interrupted", "the agent is not in the network namespace that was probed")
        elif same:
            self._certificate = seal.with_namespace_check(self._certificate)
        await self._halt_event.wait()

    async def _follow(self, container: str) -> ContainerState | None:
        """Read its output to the end, attaching again when only the pipe broke."""
        process = await self._engine.start_attached(container)
        self._agent_started = True
        while True:
            out, err = link.pipes(process)
            await asyncio.gather(self._read(out), self._read_errors(err))
            await process.wait()
            state = await self._state(container)
            if state is None or state.status != "running":
                return state
            self.trace(Trace("note", "the engine's client ended early; output may be missing here"))
            process = await self._engine.reattach(container)

    async def _read(self, stream: asyncio.StreamReader) -> None:
        lines = Lines()
        while data := await stream.read(1 << 16):
            self._last_seen = clock.monotonic()
            self._log.write(data)
            for line, cut in lines.feed(data):
                self._hear(line, cut)
        for line, cut in lines.rest():
            self._hear(line, cut)

    def _hear(self, line: bytes, cut: bool) -> None:
        for trace in self._listener.hear(line, cut=cut):
            self.trace(trace)

    async def _read_errors(self, stream: asyncio.StreamReader) -> None:
        lines = Lines(limit=4096)
        while data := await stream.read(1 << 16):
            self._last_seen = clock.monotonic()
            for line, _ in lines.feed(data):
                self._note_error(line)
        for line, _ in lines.rest():
            self._note_error(line)

    def _note_error(self, line: bytes) -> None:
        text = line.decode("utf-8", "replace").strip()
        if text:
            self._recorder.event("stderr", text)

    # -- asking and ending --------------------------------------------------------------------
    async def _state(self, container: str) -> ContainerState | None:
        """Ask the engine, patiently: a daemon that restarts answers again."""
        since = clock.monotonic()
        while True:
            try:
                return await self._engine.inspect(container)
            except EngineError:
                if clock.monotonic() - since > UNANSWERED_S or self._hurry.is_set():
                    raise
                await asyncio.sleep(1)

    async def _ask_link(self) -> None:
        """Before any outcome: a daemon that was stopped looks like a clean exit."""
        if self._link is None or self._halted is not None:
            return
        state = await self._state(self._link.container)
        if state is None or state.status != "running":
            self.halt("link_lost", "the link to the relay had ended before the agent did")

    async def _stop(self, container: str, follow: asyncio.Task[Any]) -> None:
        grace = 0 if self._hurry.is_set() else STOP_GRACE_S
        stopping = asyncio.create_task(self._engine.stop(container, grace_s=grace))
        hurried = asyncio.create_task(self._hurry.wait())
        try:
            await asyncio.wait({stopping, hurried}, return_when=asyncio.FIRST_COMPLETED)
            if not stopping.done():
                await self._engine.remove([container] if not self.plan.order.keep else [])
            await asyncio.wait({follow}, timeout=DRAIN_S)
        except EngineError as exc:
            self.step(f"the container did not stop when asked: {exc}")
        finally:
            for task in (stopping, hurried):
                task.cancel()
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


async def _both(first: Awaitable[T], second: Awaitable[U]) -> tuple[T, U]:
    """Both at once; when one fails the other is cancelled, and its failure is the one raised."""
    one, two = asyncio.ensure_future(first), asyncio.ensure_future(second)
    try:
        return await asyncio.gather(one, two)
    finally:
        one.cancel()
        two.cancel()
        await asyncio.gather(one, two, return_exceptions=True)


def _home(facts: ImageFacts, image: Image) -> str:
    return facts.labels.get("sanduk.home") or image.home or facts.env.get("HOME") or "/tmp/home"  # noqa: S108
