"""From an order to an ended run: one claim serves the terminal, the worker and `--detach`."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
from typing import Any

from django.conf import settings
from django.db import DatabaseError, IntegrityError, close_old_connections, transaction

from runs import box, clock, lease, narration, report, workspace
from runs.admission import require_memory
from runs.audit import account
from runs.console import Console
from runs.ending import Ending
from runs.installation import require_room
from runs.interrupts import Interrupts
from runs.models import Run
from runs.models.run import EXIT_CODES, Outcome
from runs.order import Order
from runs.overlap import look_alone, notes, refuse_overlap, writable_in
from runs.plan import Plan
from runs.recorder import Recorder
from runs.refusal import HostRefusal, Refusal
from runs.signals import run_ended
from runs.supervise import Supervision


def submit(plan: Plan, *, trigger: str = Run.Trigger.TERMINAL, requested_by: Any = None) -> Run:
    """Write the run down as queued. Nothing is started."""
    return Run.objects.create(**_columns(plan, trigger), requested_by=requested_by)


def start_here(
    plan: Plan,
    *,
    uid: str = "",
    trigger: str = Run.Trigger.TERMINAL,
    requested_by: Any = None,
    requested_as: str | None = None,
) -> Run:
    """Write the run down as already claimed by this process, so it can never wait for nobody.

    Args:
        requested_by: the site user who asked for it.
        requested_as: the OS account that did, "" for none; None: this process's.

    Raises Refusal when another live run works in the same directory, or in one lent to write in.
    """
    require_room()
    require_memory(plan.order.memory)
    now = clock.now()
    try:
        with transaction.atomic():
            look_alone()
            refuse_overlap(*_places(plan))
            return Run.objects.create(
                **_columns(plan, trigger, requested_as),
                state=Run.State.STARTING,
                claimed_at=now,
                lease_owner=lease.owner(),
                lease_until=now + dt.timedelta(seconds=settings.SANDUK_LEASE_SECONDS),
                **({"uid": uid} if uid else {}),
                requested_by=requested_by,
            )
    except IntegrityError:
        refuse_overlap(*_places(plan))
        raise


def claim(uid: str) -> bool:
    """Take a queued run for this process. False: it is somebody else's, or cancelled.

    Raises Refusal when another live run works in the same directory.
    """
    run = Run.objects.get(uid=uid)
    try:
        with transaction.atomic():
            look_alone()
            refuse_overlap(run.workspace, writable_in(run.order), uid=uid)
            return Run.objects.claim(uid, lease.owner(), settings.SANDUK_LEASE_SECONDS)
    except IntegrityError:
        refuse_overlap(run.workspace, writable_in(run.order), uid=uid)
        raise


def _places(plan: Plan) -> tuple[str, list[str]]:
    """Where it works, and what else it may write in."""
    lent = [mount.source for mount in plan.mounts if not mount.read_only]
    return str(plan.workspace.path), lent


def _columns(plan: Plan, trigger: str, requested_as: str | None = None) -> dict[str, Any]:
    order: Order = plan.order
    model = plan.request.model or (plan.provider.default_model if plan.provider else "")
    return {
        "trigger": trigger,
        "kind": Run.Kind.COMMAND if order.shell or plan.agent.is_command else Run.Kind.AGENT,
        "requested_as": account() if requested_as is None else requested_as,
        "agent": plan.agent.name if ":" not in order.agent else order.agent,
        "provider": plan.provider.name if plan.provider else "",
        "model": model or "",
        "mode": order.mode_name,
        # as it was asked for: a class of somebody's own is not found by its name
        "engine": order.runtime or settings.SANDUK_RUNTIME or plan.engine.name,
        "recipe": order.recipe or plan.agent.recipe,
        "image": plan.image.tag,
        "workspace": str(plan.workspace.path),
        "task": order.task,
        "order": order.stored(),
    }


def run_here(plan: Plan, console: Console) -> Run:
    """Write the run down as this process's and run it to its end; returns the ended row.

    Raises Refusal as `start_here` does.
    """
    with Interrupts() as interrupts:  # from here on a Ctrl-C is how the run ends
        run = start_here(plan)
        console.progress(narration.opening(run, plan))
        return execute(run, plan, console, interrupts)


def execute(run: Run, plan: Plan, console: Console, interrupts: Interrupts | None = None) -> Run:
    """Run it to its end in this process and return the ended row.

    The run must be claimed by this process. Whatever happens, it ends, or it is left to the
    reconciler with its lease provably dead.

    Args:
        interrupts: what already catches this process's signals, since before the claim.
    """
    owner = lease.owner()
    for note in notes(run, plan.mounts):
        console.progress(note)
    with contextlib.nullcontext(interrupts) if interrupts else Interrupts() as caught:
        try:
            ending = _live(run, plan, console, owner, caught)
        except Refusal as exc:
            ending = Ending(Outcome.REFUSED, str(exc), by_host=isinstance(exc, HostRefusal))
        except BaseException as exc:
            _end(run, owner, Ending(Outcome.FAILED, f"sanduk itself failed: {type(exc).__name__}"))
            raise
        if not ending.left:
            ending.unwritten = _written(run, owner, ending)
    run.refresh_from_db()
    for sentence in ending.left:
        console.warn(f"warning: {sentence}; try: sanduk clean")
    if ending.unwritten:
        console.warn(
            f"how the run ended could not be written down ({ending.unwritten}); once that is "
            "mended, the next command ends it as interrupted"
        )
        run.outcome, run.reason = ending.outcome, ending.reason
    elif ending.untraced:
        console.warn(f"warning: the trace is not stored whole ({ending.untraced})")
    if run.state == Run.State.ENDED:
        run_ended.send(sender=Run, run=run)
    return run


def _end(run: Run, owner: str, ending: Ending) -> None:
    Run.objects.mark_ended(run.uid, owner, **ending.columns())


def _written(run: Run, owner: str, ending: Ending) -> str:
    """End the run's row; why that was not possible, or ""."""
    try:
        _end(run, owner, ending)
    except DatabaseError as exc:
        return str(exc)
    return ""


def _live(run: Run, plan: Plan, console: Console, owner: str, interrupts: Interrupts) -> Ending:
    """Take what this host gives, run the loop, put a person's own report back."""
    workspace.prepare(plan.workspace)
    private = box.make(run.uid)
    try:
        return _beside_own_report(run, plan, console, owner, interrupts, private)
    finally:
        box.remove_left(run.uid)  # gone already, unless it failed before anything was held


def _beside_own_report(
    run: Run,
    plan: Plan,
    console: Console,
    owner: str,
    interrupts: Interrupts,
    private: box.Box,
) -> Ending:
    path = str(plan.workspace.path)
    try:
        # a shell writes no report, and the person at it may want to read the one that is there
        reports = not plan.order.shell and plan.ground is None
        aside = report.set_aside(path, run.uid, known=_own_reports(path)) if reports else ""
    except OSError as exc:
        raise Refusal(f"REPORT.md in {path} cannot be set aside: {exc.strerror}") from None
    if aside:
        console.progress(f"the REPORT.md that was there is set aside as {aside}")
        Run.objects.filter(pk=run.pk).update(displaced_report=aside)
    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            return runner.run(_in_loop(run, plan, console, owner, interrupts, private))
    finally:
        close_old_connections()  # of hours ago: the server may have been started again since
        # where the directory is gone, or the database is, a row that still names the file is right
        with contextlib.suppress(OSError, DatabaseError):
            if aside and report.put_back(path, aside):
                Run.objects.filter(pk=run.pk).update(displaced_report="")


def _own_reports(path: str) -> frozenset[str]:
    """Digests of reports that earlier runs left here and that are stored whole."""
    rows = Run.objects.filter(workspace=path, report_state=Run.Report.SAVED)
    return frozenset(rows.values_list("report_sha256", flat=True)[:50])


def _loop_factory() -> Any:
    import uvloop

    return uvloop.new_event_loop


async def _in_loop(
    run: Run,
    plan: Plan,
    console: Console,
    owner: str,
    interrupts: Interrupts,
    private: box.Box,
) -> Ending:
    recorder = Recorder(run.pk)
    recorder.start()
    supervision = Supervision(run, plan, recorder, console)
    heartbeat = lease.Heartbeat(
        run.uid,
        owner,
        on_stop=lambda by: supervision.halt("cancelled", f"stopped by {by}"),
        on_lost=lambda: supervision.halt("lease_lost", "this process lost its hold on the run"),
    )
    heartbeat.start()
    interrupts.listen(supervision.halt)
    try:
        ending = await supervision.live(private, owner)
    finally:
        await heartbeat.stop()
        await recorder.stop()
    ending.untraced = recorder.failure
    return ending


def exit_code(run: Run) -> int:
    """What a command that waited for this run exits with."""
    if run.state != Run.State.ENDED:
        # it ended, but something it made is still there: never a success
        return EXIT_CODES.get(run.outcome, 1) or 1
    return run.exit_code if run.exit_code is not None else 1
