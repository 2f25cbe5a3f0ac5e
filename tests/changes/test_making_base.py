"""Asking for a change: what is refused leaves no row and no file, what is not keeps its base."""

from __future__ import annotations

from pathlib import Path

import pytest

from changes import asking, base
from changes.asking import Options
from changes.models import Change
from runs.order import Order
from runs.refusal import Refusal
from runs.verdicts import Person
from tests.changes.rows import Project, run_git

pytestmark = pytest.mark.django_db
ANNA = Person(account="anna")


def options(**words) -> Options:
    order = Order(**{"task": "", "agent": "pi", "provider": "rehearsal", **words.pop("order", {})})
    return Options(order=order, **words)


def ask(project: Project, task: str = "tidy up", **words) -> Change:
    return asking.ask(str(project.path), task, options=options(**words), person=ANNA)


def kept(home: Path) -> list[str]:
    place = home / "changes"
    return sorted(each.name for each in place.iterdir()) if place.exists() else []


def test_a_change_is_queued_with_its_base_kept_beside_it(project, settings):
    change = ask(project)

    assert (change.state, change.base_commit, change.base_ref) == ("queued", project.base, "main")
    assert (change.agent, change.model, change.requested_as) == ("pi", "rehearsal", "anna")
    assert kept(settings.SANDUK_HOME) == [change.uid]
    run_git(project.path, "commit", "-q", "--allow-empty", "-m", "second")
    found = base.of(change)
    assert (found.base_commit, found.bundle.read_bytes()[:4]) == (project.base, b"# v2")


def test_a_base_that_was_removed_is_taken_again(project):
    change = ask(project)
    facts = base.of(change)
    base.forget_base(change.uid)

    assert base.of(change).base_tree == facts.base_tree
    assert base.of(change).bundle.is_file()


@pytest.mark.parametrize(
    ("task", "words", "said"),
    [
        (" ", {}, "the task is empty"),
        ("x", {"order": {"agent": "nobody"}}, "no agent is called 'nobody'"),
        ("x", {"order": {"provider": "none"}}, "there is no provider"),
        ("x", {"base": "elsewhere"}, "has no such commit"),
        ("x", {"history": 0}, "--history 0"),
        ("x", {"order": {"budget_usd": -1.0}}, "--budget"),
        ("x", {"order": {"provider": "openai"}}, "OPENAI_API_KEY"),
    ],
)
def test_what_is_wrong_is_told_before_there_is_anything(
    project, settings, monkeypatch, task, words, said
):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)

    with pytest.raises(Refusal, match=said):
        ask(project, task, **words)

    assert not Change.objects.exists()
    assert kept(settings.SANDUK_HOME) == []


def test_no_repository_and_unreadable_rules_are_refused(project, settings, tmp_path):
    with pytest.raises(Refusal, match="no git repository"):
        asking.ask(str(tmp_path), "x", options=options(), person=ANNA)
    project.rule("aprovals = 2\n")
    with pytest.raises(Refusal, match="approvals"):
        ask(project)

    assert not Change.objects.exists()
    assert kept(settings.SANDUK_HOME) == []


def test_the_image_of_the_repository_is_checked_before_there_is_anything(project, settings):
    project.rule('set_up = ["true"]\nlock_files = ["none.lock"]\n')
    with pytest.raises(Refusal, match="is not in the base commit"):
        ask(project)
    project.rule('recipe = "claude"\n')
    with pytest.raises(Refusal, match="recipe claude is for agent claude, not pi"):
        ask(project)
    assert not Change.objects.exists()
    assert kept(settings.SANDUK_HOME) == []

    change = ask(project, order={"agent": ""})

    assert (change.agent, change.order["recipe"], change.order["agent"]) == ("claude", "", "")


def test_several_tasks_share_one_bundle_and_all_are_there_or_none(project, settings):
    both = asking.ask_each(str(project.path), ["a", "b"], options=options(), person=ANNA)
    bundles = [base.of(change).bundle for change in both]

    assert bundles[0].stat().st_ino == bundles[1].stat().st_ino
    with pytest.raises(Refusal):
        asking.ask_each(str(project.path), ["c", ""], options=options(), person=ANNA)
    assert Change.objects.count() == 2
    assert len(kept(settings.SANDUK_HOME)) == 2
