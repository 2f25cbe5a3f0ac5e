"""Changes as processes of an installation make them: `python -m tests.engine.changing WHAT WORDS`.

Used as a module it starts those processes; each prints one JSON object about the change.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.changes.making import person_git, repository
from tests.engine.running import Installation

ROOT = Path(__file__).parents[2]
END = """; echo '{"type": "result", "ok": true, "text": "done"}'; exit"""


@dataclass
class Changing:
    """A repository of a person's, and an installation that makes changes to it."""

    made: Installation
    files: dict[str | bytes, bytes] = field(default_factory=dict)
    there: Path | None = None  # one that is there already

    def __post_init__(self) -> None:
        self.path = self.there or repository(self.made.ground / "project", self.files)
        self.before = self.host()

    def start(self, what: str, *words: str, **env: str) -> subprocess.Popen[bytes]:
        given = {
            **self.made.environment, "PYTHONPATH": str(ROOT),
            "DJANGO_SETTINGS_MODULE": "sanduk_site.settings", **env,
        }  # fmt: skip
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.engine.changing", what, *words], env=given, cwd=ROOT,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True,
        )  # fmt: skip
        return process

    def do(self, what: str, *words: str, limit_s: float = 120, **env: str) -> dict[str, Any]:
        return self.end(self.start(what, *words, **env), limit_s=limit_s)

    def end(self, process: subprocess.Popen[bytes], *, limit_s: float = 120) -> dict[str, Any]:
        out, err = process.communicate(timeout=limit_s)
        assert process.returncode in (0, 130), (process.returncode, err.decode()[-3000:])
        found: dict[str, Any] = json.loads(out) if out.strip() else {}
        return found | {"err": err.decode()}

    def words(self, script: str, **order: Any) -> tuple[str, str]:
        """The task, and the order in JSON, of a scripted agent on the rehearsal model."""
        asked = {
            "agent": "scripted-offline", "provider": "rehearsal", "runtime": self.made.engine,
            "skip_key_check": True, **order,
        }  # fmt: skip
        return script, json.dumps(asked)

    def make(self, script: str, **order: Any) -> dict[str, Any]:
        """Ask for a change and make it in one process."""
        return self.do("make", str(self.path), *self.words(script + END, **order))

    def begin(self, script: str, **env: str) -> subprocess.Popen[bytes]:
        return self.start("make", str(self.path), *self.words(script + END), **env)

    def rows(self, table: str) -> list[dict[str, Any]]:
        with contextlib.closing(sqlite3.connect(self.made.home / "sanduk.sqlite3")) as database:
            database.row_factory = sqlite3.Row
            found = database.execute(f"SELECT * FROM {table} ORDER BY id").fetchall()  # noqa: S608
            return [dict(row) for row in found]

    @property
    def row(self) -> dict[str, Any]:
        """The newest change."""
        return self.rows("changes_change")[-1]

    def until(self, **facts: Any) -> dict[str, Any]:
        """Wait until the newest change is so."""
        deadline = time.monotonic() + 40
        while True:
            rows = self.rows("changes_change")
            if rows and all(rows[-1][name] == value for name, value in facts.items()):
                return rows[-1]
            assert time.monotonic() < deadline, rows
            time.sleep(0.05)

    def clones(self) -> list[str]:
        place = self.made.home / "clones"
        return sorted(each.name for each in place.iterdir()) if place.exists() else []

    def host(self) -> dict[str, bytes]:
        """Everything in the person's repository, .git included."""
        return {
            str(path.relative_to(self.path)): path.read_bytes()
            for path in sorted(self.path.rglob("*"))
            if path.is_file() and not path.is_symlink()
        }

    def git(self, *words: str) -> str:
        return os.fsdecode(person_git(self.path, *words)).strip()


def _killed_at(name: str) -> None:
    """Have this process killed where it would enter a function."""
    if not name:
        return
    module_name, _, attribute = name.rpartition(".")
    module = importlib.import_module(module_name)

    def killed(*words: Any, **named: Any) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    assert hasattr(module, attribute)
    setattr(module, attribute, killed)


def _signalled_at(name: str, often: int) -> None:
    """Have this process told to stop where it enters a function, and go on."""
    if not name:
        return
    module_name, _, attribute = name.rpartition(".")
    module = importlib.import_module(module_name)
    real = getattr(module, attribute)

    def told(*words: Any, **named: Any) -> Any:
        for _ in range(often):
            os.kill(os.getpid(), signal.SIGTERM)
        return real(*words, **named)

    setattr(module, attribute, told)


def _accepted_on_the_site(uid: str, typed: str) -> dict[str, Any]:
    """As a person does it there: the page is read, and its form is sent with what stands in it."""
    import re

    from django.contrib.auth import get_user_model
    from django.test import Client
    from django.urls import reverse

    from sanduk_site import roles

    user = get_user_model().objects.create_user(
        "anna", email="anna@example.org", first_name="Anna", last_name="Person"
    )
    roles.give(user, ["approver"], is_new=True)
    client = Client(SERVER_NAME="127.0.0.1")
    client.force_login(user)
    page = client.get(reverse("change", args=[uid]))
    digest = re.search(r'name="digest" value="([0-9a-f]{64})"', page.content.decode())
    assert digest is not None, page.content.decode()[-3000:]
    form = {"verdict": "accept", "digest": digest[1], "reason": typed, "typed_by": user.pk}
    answer = client.post(reverse("change-decide", args=[uid]), form, follow=True)
    said = re.search(r'<ul class="messagelist">(.*?)</ul>', answer.content.decode(), re.S)
    return {"status": answer.status_code, "said": said and re.sub(r"<[^>]*>", "", said[1]).strip()}


def _main(what: str, words: list[str]) -> None:
    import django

    django.setup()
    _killed_at(os.environ.get("KILL_AT", ""))
    _signalled_at(os.environ.get("STOP_AT", ""), int(os.environ.get("STOP_OFTEN", "1")))
    from changes import asking, batch, deciding, gate, handover, making, pending, skills
    from changes.models import Change, Skill
    from runs.console import Terminal
    from runs.home import prepare
    from runs.order import Order
    from runs.reconcile import reconcile
    from runs.verdicts import Person

    prepare()
    person = Person(account="anna")
    tell = Terminal(trace_to_stderr=True)

    def options(text: str) -> asking.Options:
        beside = json.loads(text)
        rest = {name: beside.pop(name) for name in ("base", "history") if name in beside}
        return asking.Options(order=Order(task="", **beside), **rest)

    def told(change: Change) -> dict[str, Any]:
        change.refresh_from_db()
        attempt = change.attempt
        return {
            "uid": change.uid, "state": change.state, "reason": change.reason,
            "attempt": attempt.number if attempt else None,
            "digest": attempt.digest if attempt else "",
            "files": attempt.files if attempt else 0,
            "results": attempt.results if attempt else {},
            "reserved": change.reserved_usd,
            "commit": change.landed_commit,
        }  # fmt: skip

    if what == "make":
        change = asking.ask(words[0], words[1], options=options(words[2]), person=person)
        said: Any = told(making.make(change.uid, tell=tell))
    elif what == "ask":
        said = told(asking.ask(words[0], words[1], options=options(words[2]), person=person))
    elif what == "revise":
        said = told(making.revise(words[0], person, words[1], tell))
    elif what == "accept":
        yes = gate.Accepting(committer=("Anna", "anna@example.org"), reason=words[1])
        said = told(deciding.accept(words[0], person, yes))
    elif what == "accept-on-site":
        said = _accepted_on_the_site(words[0], words[1])
    elif what == "give":
        said = {"given": handover.give(words[0])}
    elif what == "give-revision":
        said = {"given": handover.give_revision(words[0], person, words[1])}
    elif what == "cancel":
        said = {"said": handover.cancel(words[0], "ben")}
    elif what == "reconcile":
        said = {"troubles": reconcile().troubles}
    elif what == "batch":
        beside = json.loads(words[2])
        facts = {n: beside.pop(n) for n in ("max_parallel", "total_budget_usd") if n in beside}
        made = batch.ask_all(
            words[0], json.loads(words[1]), options=options(json.dumps(beside)), person=person,
            **facts,
        )  # fmt: skip
        said = {"changes": [told(each) for each in batch.run(made)]}
    elif what == "approve-skills":
        approved = [skills.approve(each.pk, person).name for each in Skill.objects.all()]
        said = {"approved": approved}
    elif what == "conflicts":
        found = {
            change.uid: {
                each.change.uid: [os.fsdecode(path) for path in each.paths]
                for each in pending.with_waiting(change)
            }
            for change in Change.objects.filter(state="review")
        }
        said = {"conflicts": {uid: others for uid, others in found.items() if others}}
    else:
        raise SystemExit(f"no such thing: {what}")
    print(json.dumps(said))


if __name__ == "__main__":
    try:
        _main(sys.argv[1], sys.argv[2:])
    except KeyboardInterrupt:
        raise SystemExit(130) from None
