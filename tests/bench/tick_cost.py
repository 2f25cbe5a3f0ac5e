"""What one look at what is due costs when most assistants are not."""

from __future__ import annotations

import datetime as dt
import os
import time
from pathlib import Path

from tests.bench.rounds import sampled
from tests.bench.setting import Setting

DUE = 100
MANY = 10_000
FEW_NAME, MANY_NAME, TICK = "all due", "100 due", "a look, seconds"
QUERIES = "queries"
LIMIT = 3.0


def measure_tick(setting: Setting, many: int = MANY, due: int = DUE) -> None:
    """A look over `many` assistants of which `due` are due, beside one over `due` of them."""
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    django.setup()
    from django.core.management import call_command

    from runs.installation import prepare_home

    prepare_home()
    setting.report.section(f"tick: {due} of {many:,} assistants are due")
    places = {FEW_NAME: (setting.root / "few.sqlite3", due)}
    places[MANY_NAME] = (setting.root / "many.sqlite3", many)
    for file, number in places.values():
        use(file)
        call_command("migrate", interactive=False, verbosity=0)
        _fill(number, due)

    def sample(name: str) -> dict[str, float]:
        use(places[name][0])
        return _looked(due)

    def failed(why: str) -> None:
        raise AssertionError(why)

    found = sampled({name: name for name in places}, setting.effort.rounds + 1, sample, failed)
    names = [MANY_NAME, FEW_NAME]
    rows = [(TICK, found[TICK]), (QUERIES, found[QUERIES])]
    setting.report.table(names, MANY_NAME, rows)
    ratio = found[TICK][MANY_NAME] / found[TICK][FEW_NAME]
    setting.report.target("a look over many beside one over those due", ratio, LIMIT)
    more = found[QUERIES][MANY_NAME] / found[QUERIES][FEW_NAME]
    setting.report.target("queries of the first beside the second", more, 1.0)


def use(file: Path) -> None:
    """Have the default database be this file."""
    from django.db import connection

    connection.close()
    connection.settings_dict["NAME"] = str(file)


def _fill(number: int, due: int) -> None:
    from assistants.config import Config
    from assistants.models import Assistant, Schedule
    from runs import clock

    stored, now = Config().stored(), clock.now()
    assistants = Assistant.objects.bulk_create(
        Assistant(name=f"a-{each}", directory=f"/srv/a-{each}", config=stored)
        for each in range(number)
    )
    Schedule.objects.bulk_create(
        Schedule(assistant=each, every_s=3600, next_at=now + dt.timedelta(minutes=30))
        for each in assistants
    )


def _looked(due: int) -> dict[str, float]:
    """Have `due` slots come, look once, and see that each became a wakeup."""
    from django.conf import settings
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    from assistants import ticking
    from assistants.models import Schedule, Wakeup
    from runs import clock

    settings.SANDUK_MAX_RUNS = due
    Wakeup.objects.all().delete()
    first = list(Schedule.objects.order_by("pk").values_list("pk", flat=True)[:due])
    planned = clock.now() - dt.timedelta(seconds=30)
    anchor = planned - dt.timedelta(hours=1)
    Schedule.objects.filter(pk__in=first).update(next_at=planned, anchor_at=anchor)
    rung: list[int] = []
    began = time.perf_counter()
    with CaptureQueriesContext(connection) as asked:
        ticking.tick(lambda wakeup: rung.append(wakeup.pk))
    took = time.perf_counter() - began
    if len(rung) != due or Wakeup.objects.count() != due:
        raise AssertionError(f"{len(rung)} wakeups were started, not {due}")
    return {TICK: took, QUERIES: float(len(asked))}
