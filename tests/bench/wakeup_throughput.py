"""Many wakeups, several at a time: none lost, none doubled, and how many a second.

Some run on an engine in this process, the others in real containers that a real worker starts.
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench import in_process
from tests.bench.setting import Setting
from tests.engine.engine_fixtures import told
from tests.engine.running import eventually, installed

if TYPE_CHECKING:
    from tests.engine.assistants import Home

ASSISTANTS = 10  # each is awake once at a time
MAX_RUNS = 4
WAIT_S = 180.0  # for one slot of each
LOST, DOUBLED, RATE = "lost", "doubled", "wakeups a second"
OURS, REAL = "in this process", "containers"
SCRIPT = """true
echo ran >> memory.txt
echo done > REPORT.md
echo '{"type": "result", "ok": true, "text": "done"}'
exit
"""


@dataclass(frozen=True)
class Traces:
    """What wakeups left. Each was told one message, which names everything of it.

    Attributes:
        wakeups: all there are, whatever came of them.
        read: wakeups that succeeded, each with the messages it answered.
        items: the wakeups that put something in the outbox.
        tasks: what each run was told.
        lines: how often each assistant's memory was written.
    """

    wakeups: list[int]
    read: list[tuple[int, str]]
    items: list[int]
    tasks: list[str]
    lines: Mapping[str, int]


@dataclass(frozen=True)
class Figures:
    seconds: float
    number: int
    lost: int
    doubled: int

    @property
    def rate(self) -> float:
        return self.number / self.seconds


def measure_wakeups(setting: Setting) -> None:
    """Wakeups of both kinds. Without Docker only those in this process."""
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    django.setup()
    from django.core.management import call_command

    from runs.installation import prepare_home
    from tests.bench.tick_cost import use

    effort, report = setting.effort, setting.report
    report.section(f"wakeups: {effort.wakeups:,} {OURS}, {effort.real_wakeups} of {REAL}")
    prepare_home()
    use(setting.root / "wakeups.sqlite3")
    call_command("migrate", interactive=False, verbosity=0)
    found = {OURS: in_this_process(setting.root / "assistants", effort.wakeups)}
    if told("docker", "info").returncode == 0:
        from tests.engine.assistants import Home

        with installed("docker") as made:
            found[REAL] = by_a_worker(Home(made), effort.real_wakeups)
    else:
        report.note("containers are left out: no Docker daemon answers")
    report.figure(RATE, {name: each.rate for name, each in found.items()})
    for name, each in found.items():
        report.target(f"{LOST}, {name}", each.lost, 0)
        report.target(f"{DOUBLED}, {name}", each.doubled, 0)


def slots(number: int) -> Iterator[dict[str, str]]:
    """The message of each assistant that is due at once, until there were `number` of them."""
    for first in range(0, number, ASSISTANTS):
        yield {
            f"a-{n - first}": f"message-{n}" for n in range(first, min(first + ASSISTANTS, number))
        }


def judged(number: int, seconds: float, traces: Traces) -> Figures:
    """Count what should be there once and is not, and whatever is there beside it."""
    by_wakeup = dict(traces.read)
    wanted = Counter((kind, f"message-{n}") for n in range(number) for kind in ("read", "run"))
    wanted += Counter((kind, f"message-{n}") for n in range(number) for kind in ("wakeup", "item"))
    wanted += Counter(("line", name) for told_once in slots(number) for name in told_once)
    found = Counter(("read", text) for _, text in traces.read)
    found += Counter(("wakeup", by_wakeup.get(pk, f"wakeup {pk}")) for pk in traces.wakeups)
    found += Counter(("item", by_wakeup.get(pk, f"wakeup {pk}")) for pk in traces.items)
    found += Counter(("run", text) for task in traces.tasks for text in _messages(task))
    found += Counter({("line", name): count for name, count in traces.lines.items()})
    return Figures(seconds, number, (wanted - found).total(), (found - wanted).total())


def _messages(task: str) -> list[str]:
    return re.findall(r"^#? ?(message-\d+)$", task, re.MULTILINE) or ["no message"]


def _lines(places: Iterable[Path]) -> dict[str, int]:
    files = {each.name: each / "workspace" / "memory.txt" for each in places}
    return {name: file.read_text().count("\n") for name, file in files.items() if file.exists()}


# -- in this process ------------------------------------------------------------------------------
def in_this_process(place: Path, number: int) -> Figures:
    """Live through `number` wakeups, in threads that race for each of them."""
    from django.conf import settings

    settings.SANDUK_MAX_RUNS = ASSISTANTS
    pks = {
        f"a-{n}": in_process.take_in(place / f"a-{n}").pk for n in range(min(ASSISTANTS, number))
    }
    began = time.perf_counter()
    for slot in slots(number):
        in_process.live_through({pks[name]: text for name, text in slot.items()})
    return judged(number, time.perf_counter() - began, _traces_here(place))


def _traces_here(place: Path) -> Traces:
    from assistants.models import InboxMessage, OutboxItem, Wakeup
    from runs.models import Run

    read = InboxMessage.objects.filter(consumed_by__outcome=Wakeup.Outcome.SUCCEEDED)
    return Traces(
        wakeups=list(Wakeup.objects.values_list("pk", flat=True)),
        read=list(read.values_list("consumed_by_id", "body")),
        items=list(OutboxItem.objects.values_list("wakeup_id", flat=True)),
        tasks=list(Run.objects.values_list("task", flat=True)),
        lines=_lines(place.iterdir()),
    )


# -- real containers ------------------------------------------------------------------------------
def by_a_worker(home: Home, number: int) -> Figures:
    """Have a worker execute `number` wakeups in containers."""
    names = [f"a-{n}" for n in range(min(ASSISTANTS, number))]
    home.take_in(*(home.lay_out(name, SCRIPT) for name in names))
    worker = home.made.start("worker", SANDUK_MAX_RUNS=str(MAX_RUNS)).until("the worker is up")
    began, so_far = time.perf_counter(), 0
    for slot in slots(number):
        for name, text in slot.items():
            home.tell(name, f"# {text}")  # a comment to the shell that reads it
            home.due(name)
        so_far += len(slot)
        eventually(lambda expected=so_far: len(home.items()) >= expected, WAIT_S)
    seconds = time.perf_counter() - began
    if worker.signal(signal.SIGTERM).end().code != 0:
        raise AssertionError("the worker failed")
    return judged(number, seconds, _traces_of(home))


def _traces_of(home: Home) -> Traces:
    read = home.rows(
        "SELECT m.body, m.consumed_by_id FROM assistants_inboxmessage m "
        "JOIN assistants_wakeup w ON w.id = m.consumed_by_id WHERE w.outcome = 'succeeded'"
    )
    return Traces(
        wakeups=[row["id"] for row in home.wakeups()],
        read=[(row["consumed_by_id"], row["body"].removeprefix("# ")) for row in read],
        items=[item["wakeup_id"] for item in home.items()],
        tasks=[row["task"] for row in home.made.rows()],
        lines=_lines(home.made.ground.glob("a-*")),
    )
