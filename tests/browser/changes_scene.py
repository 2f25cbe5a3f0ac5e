"""A repository of a small program with changes to it that wait, for pages in a browser."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model

from changes import artifacts, attempts, bundle, gate, rules, skills
from changes.models import Change, PullRequest, TestRun
from changes.results import Results
from changes.tree import Refused, Result
from runs import clock
from runs.verdicts import Person
from tests.changes.committed import kept
from tests.changes.rows import LEASE_S, OWNER, Project, make_change, run_git
from tests.changes.trees import tree_of
from tests.factories import make_run

BEFORE = '''"""What the shop sends out."""

from shop.money import Money

LIMIT = 20


def total(lines: list[Money]) -> Money:
    """All lines together."""
    found = Money(0)
    for line in lines:
        found = found + line
    return found


def export(lines: list[Money], to: str) -> str:
    text = "\\n".join(str(line) for line in lines)
    return f"to {to}\\n{text}"
'''
AFTER = '''"""What the shop sends out."""

import datetime as dt

from shop.money import Money

LIMIT = 50  # orders of one day


def total(lines: list[Money]) -> Money:
    """All lines together; an empty list is nothing."""
    return sum(lines, Money(0))


def export(lines: list[Money], to: str, at: dt.datetime) -> str:
    """The letter, with the zone of its date."""
    if not lines:
        return f"to {to}: nothing to send"
    text = "\\n".join(str(line) for line in lines)
    return f"to {to}, {at.isoformat()}\\n{text}"
'''
TESTED = """from shop.export import export, total


def test_an_empty_list_is_no_error():
    assert export([], "anna") == "to anna: nothing to send"
"""
SKILL = "---\nname: run-the-tests\ndescription: how the tests of the shop are run\n---\n" + (
    "Run `make test`. The tests of the export need TZ=UTC.\n"
)
BASE = {
    "README.md": "# Shop\n\nSends letters.\n", "shop/export.py": BEFORE, "shop/old.py": "x = 1\n",
    ".gitignore": "dist/\n",
}  # fmt: skip
NOTED = {"docs/use.md": "Call it.\n", "docs/kept.md": "What it sends.\n"}


class Shop(Project):
    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        for name, text in BASE.items():
            (self.path / name).parent.mkdir(exist_ok=True)
            (self.path / name).write_text(text)
        run_git(self.path, "add", "-A")
        run_git(self.path, "commit", "-q", "-m", "a shop")
        self.base = run_git(self.path, "rev-parse", "HEAD")

    def comes(
        self, files: dict[str, Any], task: str, gone: tuple[str, ...] = (), **fields: Any
    ) -> Change:
        """A change as it comes back from an agent."""
        run = make_run(
            state="ended", outcome="succeeded", agent="claude", model="claude-sonnet",
            started_at=clock.now(), ended_at=clock.now(), spent_usd=0.183, task=task,
        )  # fmt: skip
        change = make_change(
            self.repository, task=task, agent="claude", model="claude-sonnet", run=run,
            requested_by=get_user_model().objects.first(), **fields,
        )  # fmt: skip
        self.brought(change, files, gone)
        return change

    def brought(self, change: Change, files: dict[str, Any], gone: tuple[str, ...] = ()) -> None:
        """Another attempt of a change, or its first."""
        is_later = change.attempt is not None
        assert Change.objects.claim(change.pk, OWNER, LEASE_S, revision=is_later)
        provided = bundle.provide(self.path, self.base, directory=self.path.parent)
        self.store.take(provided.bundle, provided.base_commit, provided.shallow)
        kept = {name: text for name, text in BASE.items() if name not in gone}
        tree = tree_of(self.store, {**kept, **files})
        refused = (Refused(b"sub/.git/config", "which is git's own directory"),)
        result = Result(tree, (), refused, (), 0, 0)
        said = Results(summary="The export names the zone of its date, and takes an empty list.")
        attempts.write(
            change, OWNER, self.base, result, task=change.task, run=change.run, results=said
        )
        change.refresh_from_db()


def a_shop() -> Shop:
    place: Path = settings.SANDUK_HOME.parent / f"shop-{secrets.token_hex(3)}"
    place.mkdir()
    return Shop(place / "shop")


def show(text: str = "") -> dict[str, str]:
    """Put it in. Returns the paths of the pages, by what they are.

    Args:
        text: stands wherever an agent, or whoever asked, could write it.
    """
    shop = a_shop()
    batch = secrets.token_hex(6)
    files = {
        "shop/export.py": AFTER, "tests/test_export.py": TESTED, "logo.bin": bytes(range(256)),
        ".github/workflows/check.yml": "on: push\njobs: {}\n",
        "shop/hidden.py": f"limit = 1  # \u202eelbisivni\u202c\nname = '{text[:400]}'\n",
    }  # fmt: skip
    task = text or "Let the export name the zone of its date, and take an empty list."
    change = shop.comes(files, task, gone=("shop/old.py",), batch=batch)
    other = shop.comes(
        {"shop/export.py": BEFORE.replace("20", "30")}, "Raise the limit", batch=batch
    )
    drafted = without_a_draft(shop, text)
    rules.file_of(shop.repository.uid).write_text('test_command = "make test"\n')
    row = TestRun.objects.create(
        attempt=change.attempt, digest=change.attempt.digest, command="make test"
    )
    output = f"FAILED tests/test_export.py::test_zone - AssertionError\n1 failed, 11 passed\n{text}"
    TestRun.objects.finish(
        row.pk, "failed", exit_code=1, output=output, output_bytes=len(output.encode())
    )
    skills.propose(change.attempt, [skills.Proposal("run-the-tests", text[:400], SKILL + text)])
    no = artifacts.Taken(f"{text[:80]}.exe", b"", "it is a program")
    artifacts.keep(change.attempt, (artifacts.Taken("coverage.html", b"<p>91 %"), no))
    make_change(shop.repository, task="Still to be made", batch=batch)
    twice = shop.comes(NOTED, f"Say how it is used. {text}")
    shop.brought(twice, {**NOTED, "docs/use.md": f"Call `export`.\n{text}\n", "docs/new.md": text})
    series = kept(
        shop, {"shop/key.py": f"key = 1\n{text}\n".encode(), "shop/a.py": b"a = 1\n"},
        {"shop/key.py": b"key = 2\n", ".github/workflows/x.yml": b"on: push\n"},
        {".github/workflows/x.yml": None},
        words=(f"Give the export a key\n\nIt had none. {text}", "Say it otherwise", "Not so"),
        rest={"docs/rest.md": b"The rest.\n"}, task=f"Give the export a key. {text}",
    )  # fmt: skip
    return {
        "changes": "/changes/",
        "change, its commits": f"/changes/{series.uid}/",
        "change, one commit": f"/changes/{series.uid}/1/commit/1/",
        "change, one commit, split": f"/changes/{series.uid}/1/commit/2/?view=split",
        "change": f"/changes/{change.uid}/",
        "change, split": f"/changes/{change.uid}/?view=split",
        "change, another": f"/changes/{other.uid}/",
        "change, its draft not made": f"/changes/{drafted.uid}/",
        "change, twice": f"/changes/{twice.uid}/",
        "change, what is new": f"/changes/{twice.uid}/2/since/1/",
        "change, what is new, split": f"/changes/{twice.uid}/2/since/1/?view=split",
        "change, what is new in a file": f"/changes/{twice.uid}/2/since/1/file/1?lines=all",
        "change, one file": f"/changes/{change.uid}/1/file/3?lines=all",
        "batch": f"/changes/batch/{batch}/",
        "skills": "/changes/skills/",
        "home": "/",
    }


def without_a_draft(shop: Shop, text: str) -> Change:
    """An accepted change whose draft pull request was asked for, and may be there."""
    change = shop.comes({"shop/draft.py": "draft = True\n"}, f"Have it drafted. {text}")
    words = gate.Accepting(committer=("Ada", "ada@example.org"), reason="it is needed")
    gate.accept(change.uid, Person(account="ada"), words)
    change = gate.land(change.uid)
    proposal = {
        "site": "https://github.example", "where": "people/shop", "into": "main", "title": "x",
        "body": "x",
    }  # fmt: skip
    landing = {**change.landing, "proposal": proposal}
    Change.objects.filter(pk=change.pk).update(landing=landing)
    PullRequest.objects.create(
        change=change, head=landing["branch"], state="asked", **proposal,
        trouble=text or "whether the pull request was made is not known; the same command looks",
    )  # fmt: skip
    return change


def revise(uid: str) -> None:
    """A third attempt of `change, twice`: one file of the second is another, one is as it was."""
    change = Change.objects.select_related("repository", "attempt", "run").get(uid=uid)
    shop = Shop.__new__(Shop)
    shop.path, shop.repository = Path(change.repository.path), change.repository
    shop.base = change.attempt.base_commit
    shop.brought(change, {**NOTED, "docs/use.md": "Call it once.\n"})


def state_of(uid: str) -> list[str]:
    """Of a change: its state, who decided, and why."""
    return list(Change.objects.values_list("state", "decided_by", "reason").get(uid=uid))
