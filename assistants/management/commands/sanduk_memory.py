"""`sanduk memory`: what an assistant remembers, what changed in it, and a person's yes or no."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from assistants import memory
from assistants.memory import showing, snapshots, trust
from assistants.memory.capture import Captured
from assistants.memory.comparing import compared, earlier
from assistants.memory.differences import Difference, Texts, held
from assistants.memory.manifest import Damaged
from assistants.models import Assistant, MemorySnapshot, Wakeup
from assistants.named import one_assistant
from runs import audit
from runs.hidden import Hiding
from runs.management.action_help import Actions
from runs.management.numbers import whole
from runs.management.terminal import SandukCommand, add_actions, add_json_flag
from runs.models import Run
from runs.models.people import user_of
from runs.refusal import Refusal
from runs.visible import visible

ACTIONS = {
    "log": "its snapshots, newest first",
    "diff": "what the last wakeup changed; ID: what it did; two: between them; now: since the last",
    "show": "one snapshot (the newest), with every entry",
    "report": "the last report, and what that wakeup changed in the memory",
    "take": "keep what the workspace holds now",
    "restore": "make the workspace hold a snapshot again; what it holds now is kept first",
    "accept": "trust held memory: the next wakeup starts from it",
    "reject": "distrust it, with --reason; the workspace goes back to the last trusted one",
}
NOW = "now"
_IDS = {"diff": 2, "show": 1, "restore": 1, "accept": 1, "reject": 1}
_NEED = {"restore", "accept", "reject"}
_ONLY = {
    "reason": ("accept", "reject"),
    "back": ("accept",),
    "limit": ("log",),
    "names_only": ("diff", "report"),
}


class Command(SandukCommand):
    help = "What an assistant remembers: its workspace, kept by this host."
    examples = (
        "memory daily-report log",
        "memory daily-report report",
        "memory daily-report diff",
        "memory daily-report diff 41 now --names-only",
        "memory daily-report accept 42",
        'memory daily-report reject 42 --reason "it takes orders from a web page"',
        "memory daily-report restore 37",
    )
    actions = Actions(
        ACTIONS,
        only={**_ONLY, "ids": _IDS},
        more=("memory daily-report show 41", "memory daily-report take"),
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", metavar="NAME", help="the assistant")
        add_actions(parser, ACTIONS)
        parser.add_argument(
            "ids", nargs="*", default=[], metavar="ID", help="snapshots, as log numbers them"
        )
        parser.add_argument("--reason", default="", metavar="TEXT", help="accept, reject: why")
        parser.add_argument(
            "--back", action="store_true", help="accept: even back behind a newer memory in force"
        )
        parser.add_argument(
            "--limit", type=whole(high=10_000), metavar="N", help="log: at most N (30)"
        )
        parser.add_argument(
            "--names-only", action="store_true", help="diff, report: without lines of texts"
        )
        add_json_flag(parser)

    def print(self, text: str = "") -> None:
        super().print(self._hiding.text(text))

    def print_json(self, value: Any) -> None:
        super().print_json(_without_keys(value, self._hiding))

    @cached_property
    def _hiding(self) -> Hiding:
        """Names and reasons may hold a key of this host, too."""
        return held()

    def act(self, **options: Any) -> int:
        action, ids = options["action"], options["ids"]
        _check(action, ids, options)
        assistant = one_assistant(options["name"])
        try:
            return int(getattr(self, f"_{action}")(assistant, ids, options))
        except Damaged as exc:
            raise Refusal(f"{exc}; other snapshots may be whole") from None

    def _log(self, assistant: Assistant, ids: list[str], options: dict[str, Any]) -> int:
        found = assistant.snapshots.order_by("-pk")[: options["limit"] or 30]
        now = trust.in_force(assistant)
        if options["json"]:
            self.print_json([
                {**showing.as_json(each), "superseded": trust.is_superseded(each, now)}
                for each in found
            ])  # fmt: skip
        elif not found:
            self.say(f"{assistant.name} has no snapshot yet; its first wakeup takes one")
        else:
            self.print_table(showing.COLUMNS, [showing.cells(each, now) for each in found])
            self._tell_start(assistant)
        return 0

    def _show(self, assistant: Assistant, ids: list[str], options: dict[str, Any]) -> int:
        snapshot = _one(assistant, ids[0]) if ids else _newest(assistant)
        manifest = snapshots.store_of(assistant).load(snapshot.digest)
        if options["json"]:
            entries = [showing.entry_as_json(each) for each in manifest.entries]
            self.print_json({**showing.as_json(snapshot), "entries": entries})
            return 0
        for line in showing.facts(snapshot):
            self.print(line)
        for entry in manifest.entries:
            self.print(f"  {showing.entry_line(entry)}")
        return 0

    def _diff(self, assistant: Assistant, ids: list[str], options: dict[str, Any]) -> int:
        old, new = _asked(assistant, ids)
        found = compared(assistant, old, new)
        if options["json"]:
            self.print_json(_diff_as_json(old, new, found))
            return 0
        self._print_diff(assistant, old, new, found, options)
        return 0

    def _report(self, assistant: Assistant, ids: list[str], options: dict[str, Any]) -> int:
        ended = assistant.wakeups.filter(state=Wakeup.State.ENDED, run__isnull=False)
        wakeup = ended.select_related("run").order_by("-pk").first()
        if wakeup is None or wakeup.run is None:
            raise Refusal(f"{assistant.name} has no wakeup with a run yet")
        new = wakeup.snapshots.filter(moment=MemorySnapshot.Moment.AFTER).first()
        old = earlier(new) if new is not None else None
        found = compared(assistant, old, new) if new is not None else []
        if options["json"]:
            report = {"state": wakeup.run.report_state, "text": wakeup.run.report}
            diff = _diff_as_json(old, new, found) if new is not None else None
            self.print_json(
                {"wakeup": wakeup.pk, "outcome": wakeup.outcome, "run": wakeup.run.uid,
                 "report": report, "memory": diff}
            )  # fmt: skip
            return 0
        self._print_report(wakeup, wakeup.run)
        if new is None:
            self.print("no snapshot was taken after it")
        else:
            self._print_diff(assistant, old, new, found, options)
        return 0

    def _take(self, assistant: Assistant, ids: list[str], options: dict[str, Any]) -> int:
        return self._told_one(memory.take(assistant, None, MemorySnapshot.Moment.BY_HAND), options)

    def _restore(self, assistant: Assistant, ids: list[str], options: dict[str, Any]) -> int:
        done, undo, aside = memory.restore(assistant, _one(assistant, ids[0]), actor=_here())
        if options["json"]:
            self.print_json(
                {"restored": showing.as_json(done), "undo": undo.pk if undo else None,
                 "left_beside": str(aside) if aside else None}
            )  # fmt: skip
            return 0
        self.print(f"the workspace of {assistant.name} holds snapshot {ids[0]} again")
        if undo is not None:
            self.say(f"to undo it: sanduk memory {assistant.name} restore {undo.pk}")
        self._tell_aside(aside)
        if done.review == MemorySnapshot.Review.WAITING:
            self.say(
                "nobody accepted that memory: the next wakeup starts without it, unless you do: "
                f"sanduk memory {assistant.name} accept {done.pk}"
            )
        return 0

    def _accept(self, assistant: Assistant, ids: list[str], options: dict[str, Any]) -> int:
        snapshot = _one(assistant, ids[0])
        newer = trust.newer_in_force(snapshot) if options["back"] else None
        done = memory.accept(
            assistant,
            snapshot,
            actor=_here(),
            reason=options["reason"],
            behind=newer.pk if newer is not None else None,
        )
        return self._told_one(done, options)

    def _reject(self, assistant: Assistant, ids: list[str], options: dict[str, Any]) -> int:
        snapshot = _one(assistant, ids[0])
        done, back, aside = memory.reject(
            assistant, snapshot, reason=options["reason"], actor=_here()
        )
        code = self._told_one(done, options)
        if back is not None and not options["json"]:
            self.say(f"the workspace is put back: {back.reason}")
        self._tell_aside(aside)
        return code

    def _told_one(self, snapshot: MemorySnapshot, options: dict[str, Any]) -> int:
        if options["json"]:
            self.print_json(showing.as_json(snapshot))
        else:
            for line in showing.facts(snapshot):
                self.print(line)
            self._tell_start(snapshot.assistant)
        return 0

    def _tell_start(self, assistant: Assistant) -> None:
        """Which memory counts next, where that is a question."""
        start = memory.start_from(assistant)
        if assistant.config.get("memory_review") and start is not None:
            self.say(f"the next wakeup starts from snapshot {start.pk}")
        waiting = assistant.snapshots.filter(review=MemorySnapshot.Review.WAITING)
        pks = [str(pk) for pk in waiting.order_by("pk").values_list("pk", flat=True)]
        if pks:
            self.say(f"waiting for review: {', '.join(pks[-20:])}")

    def _tell_aside(self, aside: Path | None) -> None:
        if aside is not None:
            self.say(f"what no snapshot holds is still in {aside}, until the next such time")

    def _print_report(self, wakeup: Wakeup, run: Run) -> None:
        outcome = wakeup.outcome.replace("_", " ")
        self.print(f"wakeup {wakeup.pk}, {outcome}, {wakeup.planned_at:%Y-%m-%d %H:%M} UTC,"
                   f" run {run.uid}")  # fmt: skip
        self.print()
        if run.report:
            self.print(visible(run.report.rstrip("\n"), lines=True))
        else:
            self.print(f"report: {run.report_state or 'none'}")
        self.print()

    def _print_diff(
        self,
        assistant: Assistant,
        old: MemorySnapshot | None,
        new: MemorySnapshot | Captured,
        found: list[Difference],
        options: dict[str, Any],
    ) -> None:
        begin = f"snapshot {old.pk}" if old else "nothing"
        end = NOW if isinstance(new, Captured) else f"snapshot {new.pk}"
        self.print(f"memory from {begin} to {end}: {_many(len(found), 'difference')}")
        texts = Texts(snapshots.store_of(assistant), self._hiding)
        for difference in found:
            self.print(texts.head(difference))
            if not options["names_only"]:
                for line in texts.lines(difference):
                    self.print(f"    {line}")
        if isinstance(new, MemorySnapshot):
            for line in showing.left_out(new, old):
                self.print(line)
            if new.review == MemorySnapshot.Review.WAITING:
                self.say(f"it waits: sanduk memory {assistant.name} accept|reject {new.pk}")


def _here() -> Any:
    """The site user whom the account at this terminal is mapped to, or None."""
    return user_of(audit.account())


def _many(count: int, what: str) -> str:
    return f"1 {what}" if count == 1 else f"{count:,} {what}s"


def _without_keys(value: Any, hiding: Hiding) -> Any:
    match value:
        case str():
            return hiding.text(value)
        case dict():
            return {name: _without_keys(each, hiding) for name, each in value.items()}
        case list() | tuple():
            return [_without_keys(each, hiding) for each in value]
    return value


def _check(action: str, ids: list[str], options: dict[str, Any]) -> None:
    most = _IDS.get(action, 0)
    if len(ids) > most:
        takes = "one ID" if most == 1 else "two IDs" if most else "no ID"
        raise Refusal(f"{action} takes {takes} at most" if most else f"{action} takes {takes}")
    if action in _NEED and not ids:
        raise Refusal(f"{action} needs the ID of a snapshot; log lists them")
    for flag, actions in _ONLY.items():
        if options[flag] and action not in actions:
            raise Refusal(f"--{flag.replace('_', '-')} is for {' and '.join(actions)}")


def _one(assistant: Assistant, text: str) -> MemorySnapshot:
    is_number = text.isascii() and text.isdigit() and len(text) < 19
    found = assistant.snapshots.filter(pk=int(text)).first() if is_number else None
    if found is None:
        raise Refusal(
            f"{assistant.name} has no snapshot {visible(text, limit=40)!r}; "
            f"sanduk memory {assistant.name} log lists them"
        )
    return found


def _asked(
    assistant: Assistant, ids: list[str]
) -> tuple[MemorySnapshot | None, MemorySnapshot | Captured]:
    """The two memories that `diff` compares."""
    if len(ids) == 2:
        return _one(assistant, ids[0]), _one_or_now(assistant, ids[1])
    if ids == [NOW]:
        return _newest(assistant), _one_or_now(assistant, NOW)
    snapshot = _one(assistant, ids[0]) if ids else _last_after(assistant)
    return earlier(snapshot), snapshot


def _one_or_now(assistant: Assistant, text: str) -> MemorySnapshot | Captured:
    if text != NOW:
        return _one(assistant, text)
    with snapshots.locked(assistant) as held:
        return held.capture()


def _newest(assistant: Assistant) -> MemorySnapshot:
    found = assistant.snapshots.order_by("-pk").first()
    if found is None:
        raise Refusal(f"{assistant.name} has no snapshot yet; its first wakeup takes one")
    return found


def _last_after(assistant: Assistant) -> MemorySnapshot:
    after = assistant.snapshots.filter(moment=MemorySnapshot.Moment.AFTER)
    return after.order_by("-pk").first() or _newest(assistant)


def _diff_as_json(
    old: MemorySnapshot | None, new: MemorySnapshot | Captured, found: list[Difference]
) -> dict[str, Any]:
    return {
        "from": showing.as_json(old) if old is not None else None,
        "to": NOW if isinstance(new, Captured) else showing.as_json(new),
        "differences": [showing.difference_as_json(each) for each in found],
    }
