"""Snapshots as rows: taken before and after every wakeup, held for review, restored.

A snapshot is the newest row with what the workspace held. What differs from it later was written
by an agent if one could write since (a wakeup that never came to its end, a run started by hand),
and by a person of this host otherwise.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
from django.conf import settings
from django.db import IntegrityError, transaction

from assistants.config import Config, restored
from assistants.memory import restoring, retention, trust
from assistants.memory.capture import MB, Captured, capture
from assistants.memory.manifest import Damaged
from assistants.memory.store import Store
from assistants.models import Assistant, MemorySnapshot, Wakeup
from runs import clock
from runs.host_fault import refusal_of
from runs.models import Run
from runs.overlap import refuse_overlap
from runs.refusal import Refusal

_Moment, _Review = MemorySnapshot.Moment, MemorySnapshot.Review
BY_HOST = "changed on this host while nothing ran"


def workspace_of(assistant: Assistant) -> Path:
    """Where an assistant works, without a link in it."""
    return Path(os.path.realpath(Path(assistant.directory) / "workspace"))


def store_of(assistant: Assistant) -> Store:
    home: Path = settings.SANDUK_HOME
    return Store(home / "memory" / str(assistant.pk))


@dataclass(frozen=True, slots=True)
class Memory:
    """One assistant's memory, locked: what every change of it works on."""

    assistant: Assistant
    config: Config
    workspace: Path
    store: Store

    def capture(self) -> Captured:
        """What the workspace holds now, kept in the store. No row is written."""
        place = str(self.workspace)
        reports = Run.objects.filter(workspace=place, report_state=Run.Report.SAVED)
        # as many as a run looks at when it removes a report that is stored whole
        kept = set(reports.values_list("report_sha256", flat=True)[:50])
        limit = self.config.memory_max_mb * MB
        return capture(
            place, self.store, max_bytes=limit, is_kept_report=lambda sha256: sha256 in kept
        )

    def record(
        self,
        captured: Captured,
        moment: str,
        *,
        wakeup: Wakeup | None = None,
        review: str = _Review.NOT_ASKED,
        reason: str = "",
    ) -> MemorySnapshot:
        """Write the row of what was captured; that of the same moment stays if there is one."""
        is_accepted = review == _Review.ACCEPTED
        try:
            with transaction.atomic():
                return MemorySnapshot.objects.create(
                    assistant=self.assistant,
                    wakeup=wakeup,
                    moment=moment,
                    digest=captured.manifest.digest,
                    files=captured.manifest.files,
                    size_bytes=captured.manifest.size,
                    left_out=[each.stored() for each in captured.left_out],
                    review=review,
                    reviewed_at=clock.now() if is_accepted else None,
                    reviewed_by="this host" if is_accepted else "",
                    reason=reason,
                )
        except IntegrityError:
            return MemorySnapshot.objects.get(wakeup=wakeup, moment=moment)

    def observe(self) -> tuple[Captured, MemorySnapshot | None]:
        """Capture the workspace; with it the row of what it holds, written where there is none."""
        captured = self.capture()
        last = trust.newest(self.assistant)
        if last is None or (last.digest == captured.manifest.digest and not _adds(captured, last)):
            return captured, last
        if last.moment == _Moment.BEFORE or self._agent_worked_since(last):
            # a wakeup that never came to its end, or a run that was none
            wakeup = last.wakeup if last.moment == _Moment.BEFORE else None
            review = _Review.WAITING if self.config.memory_review else _Review.NOT_ASKED
            moment = _Moment.AFTER if wakeup else _Moment.BY_HAND
            return captured, self.record(captured, moment, wakeup=wakeup, review=review)
        rows = MemorySnapshot.objects.filter(assistant=self.assistant)
        known = rows.filter(digest=captured.manifest.digest).order_by("-pk").first()
        if known is not None and not captured.loses:
            return captured, known  # a process that put it back was killed before it wrote its row
        review = inherited(last)
        if review != _Review.WAITING:
            is_reviewed = trust.is_reviewed(self.assistant, last.digest)
            review = _Review.ACCEPTED if is_reviewed else _Review.NOT_ASKED
        return captured, self.record(captured, _Moment.BY_HAND, review=review, reason=BY_HOST)

    def put(self, snapshot: MemorySnapshot, now: Captured) -> Path | None:
        """Make the workspace hold a snapshot; where the old one stayed, if it did.

        Args:
            now: what it holds. What a snapshot lacks stays in the old workspace.
        """
        manifest = self.store.load(snapshot.digest)
        return restoring.replace(self.workspace, manifest, self.store, keep_old=now.loses)

    def _agent_worked_since(self, last: MemorySnapshot) -> bool:
        runs = Run.objects.filter(workspace=str(self.workspace))
        return runs.filter(created_at__gt=last.taken_at).exists()


@contextlib.contextmanager
def locked(assistant: Assistant) -> Iterator[Memory]:
    """The memory of an assistant, alone among all processes; waits for another's end.

    Raises Refusal when the store or the workspace cannot be used, with the reason.
    """
    try:
        config = restored(assistant.config)
    except msgspec.ValidationError as exc:
        raise Refusal(f"the settings of {assistant.name} cannot be read: {exc}") from None
    try:
        store = store_of(assistant)
        with store.locked():
            place = workspace_of(assistant)
            restoring.mend(place)
            yield Memory(assistant, config, place, store)
    except (OSError, Damaged) as exc:
        reason = (exc.strerror if isinstance(exc, OSError) else None) or str(exc)
        where = f" ({exc.filename})" if isinstance(exc, OSError) and exc.filename else ""
        why = f"the memory of {assistant.name} cannot be kept: {reason}{where}"
        raise refusal_of(exc, why) from exc


def take(assistant: Assistant, wakeup: Wakeup | None, moment: str) -> MemorySnapshot:
    """Keep what the workspace holds now.

    Args:
        wakeup: which wakeup it is taken for; None only by hand.
        moment: one of MemorySnapshot.Moment. A second snapshot of one moment of one wakeup is not
            taken: the first stands; so does, by hand, one of the same that waits for review.

    Raises Refusal when it cannot be kept.
    """
    if moment == _Moment.BEFORE and wakeup is not None:
        return before_wakeup(assistant, wakeup)
    if moment == _Moment.AFTER and wakeup is not None:
        return after_wakeup(assistant, wakeup)
    with locked(assistant) as memory:
        refuse_while_running(memory)
        captured, last = memory.observe()
        is_same = last is not None and last.digest == captured.manifest.digest
        # what is held already would only wait for the same decision twice
        if last is not None and (
            last.moment == _Moment.BY_HAND or (is_same and last.review == _Review.WAITING)
        ):
            return last
        review = _Review.NOT_ASKED if last is None else inherited(last)
        return memory.record(captured, _Moment.BY_HAND, review=review)


def before_wakeup(assistant: Assistant, wakeup: Wakeup) -> MemorySnapshot:
    """Make the workspace what this wakeup may start from, and keep that.

    With `memory_review` the workspace is put back to the last trusted snapshot when it holds
    anything newer that no person accepted; that is kept, and waits for review.
    Raises Refusal when it cannot be kept or put back. Never call it in a transaction: another
    process may hold the memory and wait for the database.
    """
    with locked(assistant) as memory:
        done = _taken(wakeup, _Moment.BEFORE)
        if done is not None:
            return done
        captured, last = memory.observe()
        is_held = last is not None and last.review == _Review.REJECTED
        start = None
        if memory.config.memory_review or is_held:
            start = trust.start_from(assistant)
        if start is not None and last is not None and start.pk != last.pk:
            if start.digest != captured.manifest.digest or captured.loses:
                memory.put(start, captured)
            captured = Captured(memory.store.load(start.digest))
        return memory.record(captured, _Moment.BEFORE, wakeup=wakeup)


def after_wakeup(assistant: Assistant, wakeup: Wakeup) -> MemorySnapshot:
    """Keep what a wakeup left, once its run has ended; held for review where that is asked.

    Raises Refusal when it cannot be kept.
    """
    with locked(assistant) as memory:
        done = _taken(wakeup, _Moment.AFTER)
        if done is not None:
            return done
        captured = memory.capture()
        before = _taken(wakeup, _Moment.BEFORE)
        is_same = (
            before is not None
            and before.digest == captured.manifest.digest
            and not _adds(captured, before)
        )
        asks = memory.config.memory_review and not is_same
        review = _Review.WAITING if asks else _Review.NOT_ASKED
        taken = memory.record(captured, _Moment.AFTER, wakeup=wakeup, review=review)
        retention.apply(assistant, memory.store)
        return taken


def put_by_hand(
    memory: Memory, snapshot: MemorySnapshot
) -> tuple[MemorySnapshot, MemorySnapshot | None, Path | None]:
    """Make the workspace hold a snapshot again; `review.restore` says what is returned."""
    now, undo = memory.observe()
    if undo is None:
        undo = memory.record(now, _Moment.BY_HAND)
    aside = memory.put(snapshot, now)
    taken = memory.record(
        Captured(memory.store.load(snapshot.digest)),
        _Moment.BY_HAND,
        review=inherited(snapshot),
        reason=f"snapshot {snapshot.pk} restored",
    )
    return taken, undo, aside


def refuse_while_running(memory: Memory) -> None:
    """Raise Refusal while a wakeup or any run works in the workspace."""
    name = memory.assistant.name
    if Wakeup.objects.filter(assistant=memory.assistant, state=Wakeup.State.RUNNING).exists():
        raise Refusal(f"a wakeup of {name} is running; wait for its end")
    refuse_overlap(str(memory.workspace), [])


def _taken(wakeup: Wakeup, moment: str) -> MemorySnapshot | None:
    return MemorySnapshot.objects.filter(wakeup=wakeup, moment=moment).first()


def inherited(snapshot: MemorySnapshot) -> MemorySnapshot.Review:
    """What a copy of a snapshot is: never more trusted, and a rejected one waits again."""
    if snapshot.review in (_Review.WAITING, _Review.REJECTED):
        return _Review.WAITING
    return MemorySnapshot.Review(snapshot.review)


def _adds(captured: Captured, before: MemorySnapshot) -> bool:
    """Whether there is content that is in no snapshot and was not mentioned before."""
    told = {(each.get("path"), each.get("why")) for each in before.left_out}
    return any(each.is_lost and (each.path, each.why) not in told for each in captured.left_out)
