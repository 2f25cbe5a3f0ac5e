"""What the site's pages cost over many runs, beside the stock list of a small table."""

from __future__ import annotations

import os
import time
from typing import Any

from tests.bench.rounds import sampled
from tests.bench.setting import Setting
from tests.bench.tick_cost import use

LIST = "100 people"
PAGE, QUERIES = "a page, seconds", "queries"
LIMIT, MOST_QUERIES = 5.0, 25
PEOPLE, ITEMS, LONG_TRACE = 100, 200, 20_000
STEP_MIN = 5  # minutes between two runs: 100,000 of them are a year

# rows like one that is there, of the columns that may not repeat new ones
_RUNS = """
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {number})
INSERT INTO runs_run (uid, workspace, created_at, spent_usd, report, {rest})
SELECT printf('%012x', i), '/srv/' || i, datetime('now', '-' || (i * {step}) || ' minutes'),
       0.01, '', {rest} FROM n, runs_run WHERE runs_run.id = {model}
"""
_EVENTS = """
WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 9)
INSERT INTO runs_runevent (run_id, sequence, at, kind, text, detail)
SELECT id, i + 1, created_at, 'text', 'a line of a trace', '' FROM n, runs_run WHERE id > {model}
"""
_CALLS = """
WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 4)
INSERT INTO runs_relaycall (run_id, sequence, method, path, protocol, model_asked, model_answered,
  refusal, error, completed, started_at, bytes_in, bytes_out, raw_usage, cost_usd, cost_kind,
  clamped)
SELECT id, i + 1, 'POST', '/v1/messages', 'anthropic', 'model-' || (id % 7), '', '', '', 1,
  created_at, 1, 1, '{{}}', 0.002, 'exact', 0 FROM n, runs_run WHERE id > {model}
"""


def measure_pages(setting: Setting) -> None:
    """Home, the lists and a long run over a year's rows, beside the admin's list of 100 people."""
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    django.setup()
    from django.core.management import call_command

    from runs.installation import prepare_home

    prepare_home()
    number = setting.effort.runs
    setting.report.section(f"pages: {number:,} runs, {10 * number:,} lines, {5 * number:,} calls")
    use(setting.root / "pages.sqlite3")
    call_command("migrate", interactive=False, verbosity=0)
    pages, client = {LIST: "/admin/auth/user/", **_filled(number)}, _visitor()

    def sample(name: str) -> dict[str, float]:
        return _looked(client, pages[name])

    def failed(why: str) -> None:
        raise AssertionError(why)

    for name in pages:
        sample(name)  # templates are read the first time
    found = sampled({name: name for name in pages}, setting.effort.rounds, sample, failed)
    setting.report.figure(PAGE, found[PAGE])
    setting.report.figure(QUERIES, found[QUERIES])
    for name in pages.keys() - {LIST}:
        ratio = found[PAGE][name] / found[PAGE][LIST]
        setting.report.target(f"{name} beside the list of {LIST}", ratio, LIMIT)
        setting.report.target(f"queries of {name}", found[QUERIES][name], MOST_QUERIES)


def _filled(number: int) -> dict[str, str]:
    """Make the rows; the pages to look at, by name."""
    from django.contrib.auth import get_user_model
    from django.db import connection

    from assistants import outbox
    from assistants.models import OutboxItem
    from runs import clock
    from runs.models import Run, RunEvent
    from tests.factories import make_assistant, make_run, make_schedule, make_wakeup

    get_user_model().objects.bulk_create(
        get_user_model()(username=f"person-{each}") for each in range(PEOPLE)
    )
    model = make_run(state="ended", report="# A report\n" * 100, report_state="saved")
    given = {"id", "uid", "workspace", "created_at", "spent_usd", "report"}
    columns = [field.column for field in Run._meta.concrete_fields if field.column not in given]
    facts: dict[str, Any] = {"number": number, "step": STEP_MIN, "model": model.pk}
    facts["rest"] = ", ".join(f'"{column}"' for column in columns)
    with connection.cursor() as cursor:
        for statement in (_RUNS, _EVENTS, _CALLS):
            cursor.execute(statement.format(**facts))
    RunEvent.objects.bulk_create(
        RunEvent(run=model, sequence=each, at=clock.now(), kind="text", text=f"line {each}")
        for each in range(1, LONG_TRACE + 1)
    )
    assistant = make_assistant("daily")
    make_schedule(assistant, next_at=clock.now())
    wakeup = make_wakeup(assistant, state="ended", run=model)
    OutboxItem.objects.bulk_create(
        OutboxItem(assistant=assistant, body=body, sha256=outbox.digest_of(body),
                   wakeup=None if each else wakeup)
        for each, body in enumerate(["# A letter\n" * 50] * ITEMS)
    )  # fmt: skip
    return {
        "home": "/",
        "runs": "/admin/runs/run/",
        "run": f"/runs/{model.uid}/",
        "outbox": "/outbox/",
        "spend": "/spend/",
        "spend by model": "/spend/?by=model",
    }


def _visitor() -> Any:
    from django.conf import settings
    from django.contrib.auth import get_user_model
    from django.test import Client

    settings.ALLOWED_HOSTS = [*settings.ALLOWED_HOSTS, "testserver"]
    client = Client()
    client.force_login(get_user_model().objects.create_superuser("ada"))
    return client


def _looked(client: Any, address: str) -> dict[str, float]:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    with CaptureQueriesContext(connection) as asked:
        began = time.perf_counter()
        answer = client.get(address)
        took = time.perf_counter() - began
    if answer.status_code != 200:
        raise AssertionError(f"{address} answered {answer.status_code}")
    return {PAGE: took, QUERIES: float(len(asked))}
