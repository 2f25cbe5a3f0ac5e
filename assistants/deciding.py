"""What a person should see before they decide on an item: its risks, and what it rests on."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice
from typing import Any

from assistants import destinations, excerpts, memory, places
from assistants.memory.comparing import compared, earlier
from assistants.memory.differences import Texts
from assistants.memory.manifest import Damaged
from assistants.memory.snapshots import store_of
from assistants.models import MemorySnapshot, OutboxItem
from runs import secret_scan
from runs.models import Decision, Run

SHOWN_MAX = 400_000  # characters of a body on the page; the whole is there to download
DIFFERENCES_MAX = 200  # entries of one memory's difference on a page

# characters that a reader does not see, or that turn the direction of what follows
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\U000e0000-\U000e007f]"
)


@dataclass(frozen=True, slots=True)
class Risk:
    """One thing to look at first. `kind` is a chip's; `quote` is somebody else's, hostile."""

    kind: str
    head: str
    text: str
    quote: str = ""


def risks(item: OutboxItem) -> list[Risk]:
    """The gravest first. Empty means that what is named by `looked_at` found nothing."""
    found = [_of_secret(each) for each in secret_scan.restored(item.secrets_found)]
    found.sort(key=lambda risk: risk.kind != "secret")
    found += _of_places(item)
    found += _of_the_run(item)
    if item.unreviewed_memory:
        text = "It was made from memory that no person has accepted; notes may steer it."
        found.append(Risk("flagged", "From unreviewed memory", text))
    if unseen := sum(1 for _ in _UNSEEN.finditer(item.body)):
        many = "A character" if unseen == 1 else f"{unseen:,} characters"
        tail = "stands here as a mark" if unseen == 1 else "stand here as marks"
        text = f"{many} that nobody would see {tail} such as \\u202e."
        found.append(Risk("flagged", "Hidden characters", text))
    if (snapshot := snapshot_of(item)) is not None:
        found += of_memory(snapshot)
        found.sort(key=lambda risk: risk.kind != "secret")
    if len(item.body) > SHOWN_MAX:
        text = f"Only the first {SHOWN_MAX:,} characters are on this page. Download it to read all."
        found.append(Risk("flagged", "Longer than this page", text))
    if not excerpts.destinations(item.assistant):
        text = "The assistant has no destination: once approved, it is taken by command only."
        found.append(Risk("unknown", "It goes nowhere by itself", text))
    return found


def _of_secret(finding: secret_scan.Finding) -> Risk:
    if finding.kind == "unchecked":
        return Risk("unknown", "Could not check for secrets", finding.name)
    heads = {"held": "A secret of this host", "replaced": "A secret of this host was taken out"}
    head = heads.get(finding.kind, "The shape of a secret")
    return Risk("secret", head, f"In {finding.told()}.")


def _of_places(item: OutboxItem) -> list[Risk]:
    """Approvals that were given before where the item goes was changed."""
    if item.state != OutboxItem.State.PENDING:
        return []
    given = Decision.objects.filter(subject=f"outbox:{item.pk}").select_related("actor")
    rows = {each.pk: each for each in given}
    lost = places.elsewhere(rows.values(), places.digest_of_places(item))
    found = []
    for pk, names in lost.items():
        decision = rows[pk]
        who = decision.actor.get_username() if decision.actor else decision.account
        text = (
            f"{who} approved it for {', '.join(names) or 'no place'}, as that was set up then. "
            "That counts no more, until the same person approves it for where it goes now."
        )
        found.append(Risk("flagged", "Where it goes has changed", text))
    return found


def _of_the_run(item: OutboxItem) -> list[Risk]:
    run = run_of(item)
    if run is None:
        text = "The run it comes from is not recorded any more."
        return [Risk("unknown", "Run unknown", text)]
    found = []
    if run.outcome != Run.Outcome.SUCCEEDED:
        words = f"It ended as {run.outcome.replace('_', ' ')}."
        found.append(Risk("flagged", "Its run did not succeed", words, run.reason))
    if run.report_state == Run.Report.CUT:
        found.append(Risk("flagged", "The report was cut", "The end of it is missing."))
    if run.mode == "open":
        text = "The run had the key and the network in its container."
        found.append(Risk("flagged", "Open mode", text))
    return found


def of_memory(snapshot: MemorySnapshot) -> list[Risk]:
    """What was found in what a wakeup wants to remember; held values are taken out of it."""
    return [
        Risk("unknown", "Could not check what it wants to remember", each.line)
        if each.is_unchecked
        else Risk("secret", "A secret in what it wants to remember?", each.line)
        for each in memory.findings(snapshot)
    ]


def run_of(item: OutboxItem) -> Run | None:
    return item.wakeup.run if item.wakeup is not None else None


def looked_at(item: OutboxItem) -> str:
    """What the all-clear rests on."""
    size = len(item.body.encode())
    return (
        f"Looked at {size:,} bytes for held secrets, shapes of tokens and hidden characters, at "
        "the run's outcome and at the memory it started from."
    )


def leads(item: OutboxItem) -> list[dict[str, str]]:
    """Where an approved item goes: name, kind, and where that leads without a secret."""
    return [
        {"name": each.name, "kind": each.kind, "leads": destinations.told(each)}
        for each in places.places_of(item)
    ]


def snapshot_of(item: OutboxItem) -> MemorySnapshot | None:
    """What the workspace held after the wakeup that wrote the item."""
    if item.wakeup is None:
        return None
    rows = item.wakeup.__dict__  # a page asks more than once
    if "_after" not in rows:
        after = MemorySnapshot.objects.filter(
            wakeup=item.wakeup_id, moment=MemorySnapshot.Moment.AFTER
        )
        rows["_after"] = after.select_related("assistant").first()
    found: MemorySnapshot | None = rows["_after"]
    return found


def changes(snapshot: MemorySnapshot) -> dict[str, Any]:
    """What a wakeup did to its memory, as entries with their lines, safe to show."""
    assistant = snapshot.assistant
    try:
        found = compared(assistant, earlier(snapshot), snapshot)
        texts = Texts(store_of(assistant))
        entries = [
            {"line": texts.head(each), "lines": [marked(line) for line in texts.lines(each)]}
            for each in islice(found, DIFFERENCES_MAX)
        ]
    except (Damaged, OSError) as exc:
        return {"trouble": f"the snapshot cannot be read: {exc}", "entries": [], "more": 0}
    return {"trouble": "", "entries": entries, "more": max(len(found) - DIFFERENCES_MAX, 0)}


_MARKS = {"+": "add", "-": "del", "@": "hunk"}


def marked(line: str) -> tuple[str, str]:
    """A line of a difference, and which kind it is: the style sheet's."""
    return _MARKS.get(line[:1], "same"), line
