"""One text in every place where a page shows what an agent, or a provider, or a person wrote."""

from __future__ import annotations

import datetime as dt
import secrets
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db.models import Model

from assistants import briefs, outbox
from assistants.config import Config
from assistants.memory import after_wakeup, before_wakeup
from assistants.models import Assistant, Delivery, Destination, InboxMessage, OutboxItem, Wakeup
from runs import audit, clock
from runs.models import Decision, EgressAttempt, RelayCall, Run, RunEvent
from runs.verdicts import Person
from sanduk_site.models import LoginSession
from tests.factories import make_assistant, make_run, make_schedule, make_wakeup

ADMIN_LISTS = (
    "runs_run", "runs_runevent", "runs_relaycall", "runs_decision", "runs_auditevent",
)  # fmt: skip


def show(text: str, names: list[str]) -> dict[str, str]:
    """Put `text` everywhere; `names` are files that an assistant keeps in its memory.

    Returns the paths of the pages that show it, by what they are.
    """
    name = f"scout-{secrets.token_hex(3)}"
    place: Path = settings.SANDUK_HOME.parent / name
    (place / "workspace").mkdir(parents=True)
    (place / "brief.md").write_text(text)
    config = Config(brief="brief.md", model=text[:200], approvals=2, memory_review=True)
    assistant = make_assistant(name, config=config, directory=str(place))
    make_schedule(assistant, next_at=clock.now() + dt.timedelta(hours=1))
    run = _run(text)
    wakeup = make_wakeup(assistant, state="running", run=run)
    briefs.keep(assistant, f"Earlier.\n{text}", wakeup=wakeup)
    memory = _remember(assistant, wakeup, text, names)
    item = outbox.write(wakeup, text, config)
    late = _more(assistant, text)
    going = make_run(state="running", agent=text[:200], reason=text, started_at=clock.now())
    _trace(going, text)
    LoginSession.objects.create(user=get_user_model().objects.first(), browser=text[:200])
    paths = {
        "home": "/",
        "run": f"/runs/{run.uid}/",
        "run, raw": f"/runs/{run.uid}/?show=raw",
        "run that goes on": f"/runs/{going.uid}/",
        "outbox": "/outbox/?show=all",
        "gate": f"/outbox/{item.pk}/",
        "gate, raw": f"/outbox/{item.pk}/?show=raw",
        "gate, decided": f"/outbox/{late.pk}/",
        "assistants": "/assistants/",
        "assistant": f"/assistants/{name}/",
        "outbox, waiting": "/outbox/?risk=",
        "assistant, brief": f"/assistants/{name}/brief",
        "assistant, security": f"/assistants/{name}/security",
        "run, allow a host": f"/runs/{run.uid}/allow/3",
        "memory": f"/memory/{memory}/",
        "spend": "/spend/?by=model",
        "spend, by provider": "/spend/?by=provider",
        "system": "/system/",
        "sessions": "/sessions",
        "keys": "/keys",
        "notices": "/notices",
        "start a run": "/runs/new",
        "recipes": "/images/",
        "recipe": "/images/pi/",
    }
    for each in ADMIN_LISTS:
        paths[f"admin, {each}"] = f"/admin/{each.replace('_', '/')}/"
    rows: tuple[Model, ...] = (run, run.events.first(), run.calls.first())
    rows += (Decision.objects.last(), audit.record("scene.show", text[:100], said=text))
    for row in rows:
        meta = row._meta
        paths[f"admin, one {meta.model_name}"] = (
            f"/admin/{meta.app_label}/{meta.model_name}/{row.pk}/change/"
        )
    return paths


def _run(text: str) -> Run:
    checks = [{"verdict": each, "sentence": text} for each in ("closed", "open", "unknown")]
    run = make_run(
        state="ended", outcome="failed", exit_code=1, agent=text[:200], provider=text[:100],
        model=text[:200], task=text, reason=text, report=text, report_state="saved",
        report_bytes=len(text.encode()), report_sha256="0" * 64, final_text=text, image=text[:500],
        recipe=text[:1000], requested_as=text[:150], spent_usd=0.25, spent_tokens=1200,
        started_at=clock.now(), certificate={"headline": text, "checks": checks},
        order={"timeout_s": 900, "allow_hosts": [text], "env_names": [text]},
    )  # fmt: skip
    _trace(run, text)
    now = clock.now()
    for sequence, facts in enumerate(
        (
            {"status": 200, "protocol": "openai-chat", "cost_kind": "exact", "cost_usd": 0.25},
            {"status": 403, "refusal": text[:500]},
            {"error": text[:500], "cost_kind": "lower_bound", "cost_usd": 0.0},
        ),
        1,
    ):
        fields: dict[str, Any] = {"input_tokens": 1000, "output_tokens": 200, "ended_at": now}
        RelayCall.objects.create(
            run=run, sequence=sequence, method="POST", path=f"/v1/{text}"[:2000],
            model_asked=text[:200], started_at=now, **fields, **facts,
        )  # fmt: skip
    for sequence, is_allowed in enumerate((True, False), 1):
        EgressAttempt.objects.create(
            run=run, sequence=sequence, host=text[:300], port=443, allowed=is_allowed,
            reason=text[:500], flag=text[:400], started_at=now,
        )  # fmt: skip
    EgressAttempt.objects.create(
        run=run, sequence=3, host="api.example", port=443, allowed=False,
        flag="--allow-host api.example:443", started_at=now,
    )  # fmt: skip
    return run


def _trace(run: Run, text: str) -> None:
    for sequence, kind in enumerate(RunEvent.Kind.values, 1):
        RunEvent.objects.create(
            run=run, sequence=sequence, kind=kind, at=clock.now(), text=text, detail=text
        )


def _remember(assistant: Assistant, wakeup: Wakeup, text: str, names: list[str]) -> int:
    workspace = Path(assistant.directory) / "workspace"
    (workspace / "notes.md").write_text("the first time\n")
    before_wakeup(assistant, wakeup)
    (workspace / "notes.md").write_text(text)
    for name in names:
        (workspace / name).write_text(text)
    taken = after_wakeup(assistant, wakeup)
    Wakeup.objects.end(wakeup.pk, "nobody", "succeeded")
    return int(taken.pk)


def _more(assistant: Assistant, text: str) -> OutboxItem:
    """A failed wakeup, messages, a decided item whose delivery failed, and a disabled assistant."""
    make_wakeup(assistant, state="ended", outcome="failed", reason=text)
    author = get_user_model().objects.first()
    for facts in ({"author": author}, {"consumed_at": clock.now(), "account": "ann"}):
        InboxMessage.objects.create(assistant=assistant, body=text, source="web", **facts)
    make_assistant(disabled_at=clock.now(), disabled_reason=text[:500])
    item = outbox.write(make_wakeup(assistant, state="ended"), text, Config(hold=True))
    outbox.decide(item.pk, Decision.Verdict.APPROVE, Person(user=author, via="web"), reason=text)
    place = Destination.objects.create(
        name=f"there-{secrets.token_hex(3)}", kind="file", config={"path": f"/{text}"}
    )
    place.assistants.add(assistant)
    for number, state in enumerate(("failed", "unknown", "given_up", "sent"), 1):
        Delivery.objects.create(
            item=item, destination=place, number=number, state=state, error=text[:500], output=text
        )
    item.refresh_from_db()
    return item
