"""Ending what a dead process left behind, and removing what belongs to no live run.

If an engine cannot be asked, nothing is concluded about its runs. A kept container is left alone.
"""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings
from django.db.models import Max, Sum

from runs import bells, box, clock, leftovers, report, retention, rules
from runs.engines import get_engine
from runs.engines.base import LABEL_INSTALL, LABEL_RUN, ContainerRow, Engine, EngineError
from runs.holdings import agents_first
from runs.installation import install_id
from runs.lease import Watcher, owner_is
from runs.leftovers import Removed
from runs.locality import explained
from runs.models import Run
from runs.signals import looked, run_ended


@dataclass(slots=True)
class Reconciled:
    """What one pass did: `ended` and `rung` are uids, `troubles` are sentences."""

    ended: list[str] = field(default_factory=list)
    rung: list[str] = field(default_factory=list)
    removed: Removed = field(default_factory=Removed)
    troubles: list[str] = field(default_factory=list)


def reconcile(watcher: Watcher | None = None) -> Reconciled:
    """End every run whose owner is gone. Cheap when there is none: no engine is asked.

    A worker is told again of queued runs it never came for. Once an hour, request bodies that are
    kept no longer go.

    Args:
        watcher: of a process that looks again and again; without one only a provably dead owner
            counts.
    """
    done = Reconciled()
    for run in Run.objects.live():
        lost = watcher.is_lost(run) if watcher else owner_is(run.lease_owner) == "gone"
        if not lost:
            continue
        try:
            if not run.kept_container:
                gone = asyncio.run(_remove_all(get_engine(run.engine), _labels(run)))
                done.removed.add(gone)
        except EngineError as exc:
            done.troubles.append(f"run {run.uid} is lost, but its engine does not answer: {exc}")
            continue
        if _end(run):
            done.ended.append(run.uid)
    done.rung = bells.ring_again()
    done.troubles += retention.apply_if_due().troubles
    looked.send(sender=Reconciled, watcher=watcher, done=done)
    return done


def repair(run: Run) -> None:
    """End one live run now, whoever holds it. Raises EngineError when it cannot be cleaned up."""
    if not run.kept_container:
        asyncio.run(_remove_all(get_engine(run.engine), _labels(run)))
    _end(run)


def sweep(engine: Engine, *, kept_too: bool = False) -> Reconciled:
    """Remove what this installation left and no live run needs.

    That is containers and networks, what broken off probes made, and private directories of runs.

    Args:
        kept_too: also those that a person asked to keep.
    """
    done = Reconciled()
    try:
        # listed before the records are read: a run is written down before it makes anything, so
        # one that starts meanwhile is either not in this list or known as live
        rows, networks = asyncio.run(explained(engine, _all(engine)))
        spared = set(Run.objects.live().values_list("uid", flat=True))
        if not kept_too:
            spared |= set(Run.objects.exclude(kept_container="").values_list("uid", flat=True))
        mine = [row for row in rows if not leftovers.is_probe(row)]
        going = [row for row in mine if row.labels.get(LABEL_RUN) not in spared]
        done.removed.add(asyncio.run(_remove(engine, agents_first(going), networks, spared)))
        done.removed.add(asyncio.run(leftovers.remove_probes(engine)))
        done.removed.directories += leftovers.remove_boxes()
    except EngineError as exc:
        done.troubles.append(str(exc))
        return done
    if kept_too:
        ended = Run.objects.filter(state=Run.State.ENDED).exclude(kept_container="")
        ended.update(kept_container="")
    return done


async def _all(engine: Engine) -> tuple[list[ContainerRow], list[str]]:
    labels = {LABEL_INSTALL: install_id()}
    return await engine.containers(labels), await engine.networks(labels)


async def _remove(
    engine: Engine, containers: list[str], networks: list[str], spared: Iterable[str]
) -> Removed:
    await engine.remove(containers)
    used: set[str] = set()
    if networks:
        for uid in spared:
            used |= set(await engine.networks({LABEL_INSTALL: install_id(), LABEL_RUN: uid}))
    going = [network for network in networks if network not in used]
    for network in going:
        await engine.remove_network(network)
    return Removed(containers=len(containers), networks=len(going))


async def _remove_all(engine: Engine, labels: Mapping[str, str]) -> Removed:
    """Remove what carries these labels, and see that it is gone. Raises EngineError otherwise."""
    rows = await engine.containers(labels)
    if rows:
        try:
            await engine.remove(agents_first(rows))
        except EngineError:
            # somebody else may remove the same: what counts is whether they are gone
            if await engine.containers(labels):
                raise
        if left := await engine.containers(labels):
            raise EngineError(f"it still lists {left[0].id[:12]} after removing it")
    networks = await engine.networks(labels)
    for network in networks:
        await engine.remove_network(network)
    return Removed(containers=len(rows), networks=len(networks))


def _labels(run: Run) -> dict[str, str]:
    return {LABEL_INSTALL: install_id(), LABEL_RUN: run.uid}


def _end(run: Run) -> bool:
    """End a lost run and give the host back what it had; False when somebody else was faster."""
    box.remove_left(run.uid)
    if run.displaced_report:
        try:
            if report.put_back(run.workspace, run.displaced_report):
                Run.objects.filter(pk=run.pk).update(displaced_report="")
        except OSError:
            pass  # the directory is gone, or not ours any more: the row still names the file
    lost = "the process that executed it is gone"
    if not Run.objects.end_lost(run, lost, seen_at=_last_sign(run), **_spent_so_far(run)):
        return False
    run.refresh_from_db()
    run_ended.send(sender=Run, run=run)
    return True


def _last_sign(run: Run) -> dt.datetime:
    """When the run was last seen alive: its lease renewed, a line printed, a call ended."""
    signs: list[dt.datetime | None] = [
        run.started_at or run.claimed_at or run.created_at,
        run.events.aggregate(at=Max("at"))["at"],
        run.calls.aggregate(at=Max("ended_at"))["at"],
    ]
    if run.lease_until is not None:
        signs.append(run.lease_until - dt.timedelta(seconds=settings.SANDUK_LEASE_SECONDS))
    # a clock that was set back may have written a time that is still to come
    return min(max(sign for sign in signs if sign is not None), clock.now())


def _spent_so_far(run: Run) -> dict[str, Any]:
    """What the calls that were written down came to: the executor took its own sum with it.

    It is a lower bound, since calls may have been under way, unless they are known to cost nothing.
    """
    relayed = run.mode in ("sealed", "key-safe") and run.started_at is not None
    if not (relayed and run.provider):
        return {}
    names = ("cost_usd", "input_tokens", "output_tokens")
    sums = run.calls.aggregate(**{name: Sum(name, default=0) for name in names})
    return {
        "spent_usd": sums["cost_usd"],
        "spent_tokens": sums["input_tokens"] + sums["output_tokens"],
        "spent_is_lower_bound": not rules.is_free(run.provider),
        "calls_clamped": run.calls.filter(clamped=True).count(),
    }
