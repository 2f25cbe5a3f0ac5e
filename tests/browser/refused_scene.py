"""Runs that were refused a host, for the pages that allow it."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from django.conf import settings

from assistants.config import Config
from assistants.models import Assistant
from runs import clock
from runs.models import EgressAttempt, Run
from tests.accounts import ORDINARY
from tests.factories import make_assistant, make_run, make_wakeup

PLACE = "api.example:443"


def of_assistant() -> list[str]:
    """The name of an assistant, and the run of its wakeup that was refused a host."""
    work = _work()
    config = Config(agent="claude", provider="rehearsal", allow_hosts=("first.example",))
    found = make_assistant(f"scout-{secrets.token_hex(3)}", config=config, directory=str(work))
    run = make_run(state="ended")
    make_wakeup(found, state="ended", run=run)
    return [found.name, _refused(run)]


def by_hand(task: str) -> str:
    """A run that somebody started, and that was refused a host."""
    work = str(_work())
    order = {"workdir": work, "agent": "claude", "provider": "rehearsal"}
    fields = {"agent": "claude", "provider": "rehearsal", "task": task, "order": order}
    return _refused(make_run(state="ended", workspace=work, **fields))


def hosts_of(assistant: str) -> list[str]:
    return list(Assistant.objects.get(name=assistant).config.get("allow_hosts", []))


def allow_another(assistant: str) -> None:
    """As if somebody else had allowed it a host meanwhile."""
    found = Assistant.objects.get(name=assistant)
    found.config["allow_hosts"] = [*found.config.get("allow_hosts", []), "other.example"]
    found.save()


def order_of(uid: str) -> list[str]:
    """Of a run: its state, its task, and which hosts it may reach."""
    run = Run.objects.get(uid=uid)
    return [run.state, run.task, *run.order.get("allow_hosts", [])]


def _work() -> Path:
    home: Path = settings.SANDUK_HOME
    work = home.parent / f"work-{secrets.token_hex(3)}"
    for each in (work, work / "workspace"):
        each.mkdir()
        if os.geteuid() == 0:
            os.chown(each, ORDINARY, ORDINARY)  # no agent runs as root
    (work / "brief.md").write_text("look around")
    return work


def _refused(run: Run) -> str:
    host, _, port = PLACE.partition(":")
    EgressAttempt.objects.create(
        run=run, sequence=1, host=host, port=int(port), allowed=False,
        flag=f"--allow-host {PLACE}", started_at=clock.now(),
    )  # fmt: skip
    return str(run.uid)
