"""Spend and System: two pages about the whole installation."""

from __future__ import annotations

import csv
import datetime as dt
import platform
import shutil
from pathlib import Path
from typing import Any

import django
from django.conf import settings
from django.db import connection
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from runs import backup_age, clock, condition, csv_cells, pulse, queue, usage
from runs.host_states import ASLEEP_S
from runs.models import Run
from runs.pages import for_those_who_may, page
from sanduk_site import __version__, doctor_pages, spending

DAYS = (7, 30, 90, 365)


@require_safe
@for_those_who_may("runs.view_run")
def spend(request: HttpRequest) -> HttpResponse:
    """What was spent since some days ago, as a chart and a table, or as CSV."""
    group, days = request.GET.get("by", "day"), request.GET.get("days", "30")
    if group not in spending.GROUPS or not days.isdigit() or int(days) not in DAYS:
        raise Http404
    last = usage.today()
    first = last - dt.timedelta(days=int(days) - 1)
    found = spending.lines(group, first, request.user)
    if request.GET.get("format") == "csv":
        return _csv(found, group, first)
    by_day = found if group == "day" else spending.lines("day", first, request.user)
    context = {
        "lines": found[::-1] if group == "day" else found,
        "total": spending.total(found),
        "chart": spending.bars(by_day, first, last),
        "group": group,
        "groups": spending.GROUPS,
        "days": int(days),
        "all_days": DAYS,
    }
    return page(request, "site/spend.html", context, title="Spend", section="spend")


def _csv(found: list[spending.Line], group: str, first: dt.date) -> HttpResponse:
    response = HttpResponse(
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="spend-{group}-{first}.csv"'},
    )
    table = csv.writer(response)
    table.writerow(
        [group, "runs", "calls", "tokens", "exact_usd", "at_least_usd", "not_known_whole"]
    )
    for line in found:
        table.writerow(
            [csv_cells.safe(line.name), line.runs, line.calls, line.tokens, f"{line.exact_usd:.6f}",
             f"{line.least_usd:.6f}", line.unsure]
        )  # fmt: skip
    return response


@require_safe
@for_those_who_may("runs.view_run")
def system(request: HttpRequest) -> HttpResponse:
    """Versions, the worker, the queue, disk, database; engine and doctor when they were asked."""
    is_asked = request.GET.get("engine") == "ask"
    context: dict[str, Any] = {
        "versions": [
            ("sanduk", __version__),
            ("Python", platform.python_version()),
            ("Django", django.get_version()),
            ("database", connection.vendor),
        ],
        "pulses": [_pulse(name, what) for name, what in _PULSES],
        "queues": [(what, queue.waiting(name)) for name, what in _QUEUES],
        "runs": {
            "live": Run.objects.live().count(),
            "queued": Run.objects.filter(state=Run.State.QUEUED).count(),
            "recorded": Run.objects.count(),
            "at_once": settings.SANDUK_MAX_RUNS,
        },
        "disk": _disk(),
        "backup": {"made_at": backup_age.made_at(), "trouble": backup_age.trouble()},
        "engines": condition.of_engines(settings.SANDUK_RUNTIME) if is_asked else None,
        "doctor": doctor_pages.shown(request.user),
    }
    return page(request, "site/system.html", context, title="System", section="system")


_QUEUES = (
    (queue.CONTROL, "Looks and deliveries asked of the worker"),
    (queue.RUNS, "Runs asked of the worker"),
)
_PULSES = (("worker", "keeps both clusters alive"), ("tick", "looks at what is due"))


def _pulse(name: str, what: str) -> dict[str, Any]:
    age_s = pulse.age_s(name)
    kind = "unknown" if age_s is None else "clear" if age_s <= ASLEEP_S else "failed"
    return {"name": name, "what": what, "seen": pulse.seen_at(name), "kind": kind}


def _disk() -> dict[str, Any]:
    home: Path = settings.SANDUK_HOME
    usage_of = shutil.disk_usage(home)
    return {
        "home": str(home),
        "free_mb": usage_of.free // 2**20,
        "needed_mb": settings.SANDUK_MIN_FREE_MB,
        "database_mb": _database_mb(),
        "at": clock.now(),
    }


def _database_mb() -> int | None:
    """Of SQLite, the file with what was written lately; another one knows itself."""
    if connection.vendor != "sqlite":
        return None
    path = Path(str(connection.settings_dict["NAME"]))
    parts = [path, path.with_name(f"{path.name}-wal")]
    return sum(each.stat().st_size for each in parts if each.is_file()) // 2**20
