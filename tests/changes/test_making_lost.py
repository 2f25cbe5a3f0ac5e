"""What dead processes left is ended, what nobody needs is collected, and nothing else is."""

from __future__ import annotations

import contextlib
import datetime as dt
import os
from pathlib import Path

import pytest

from changes import asking, base, collecting, handover, place, reconciling
from changes.models import Batch, Change
from runs import clock, lease
from runs.models import Run
from runs.order import Order
from runs.reconcile import Reconciled, reconcile
from runs.refusal import Refusal
from runs.verdicts import Person
from tests.changes.rows import LEASE_S, Project, run_git, yes
from tests.factories import make_run

pytestmark = pytest.mark.django_db
ANNA = Person(account="anna")


def gone() -> str:
    """The name of a process that is not there any more."""
    parts = lease.owner().split("/")
    return "/".join([*parts[:4], "1"])


def ask(project: Project, **words) -> Change:
    options = asking.Options(order=Order(task="", agent="pi", provider="rehearsal"))
    return asking.ask(str(project.path), "tidy up", options=options, person=ANNA, **words)


def held(project: Project, owner: str) -> Change:
    change = ask(project)
    assert Change.objects.claim(change.pk, owner, LEASE_S)
    (place.clones() / change.uid).mkdir(parents=True)
    (place.clones() / change.uid / "file").write_text("x")
    change.refresh_from_db()
    return change


def test_a_change_whose_process_is_gone_is_failed_and_its_clone_removed(project):
    change = held(project, gone())

    reconcile()

    change.refresh_from_db()
    assert (change.state, change.reason) == ("failed", reconciling.LOST)
    assert list(place.clones().iterdir()) == []


def test_one_whose_process_lives_is_left_alone(project):
    change = held(project, lease.owner())

    reconcile()

    change.refresh_from_db()
    assert change.state == "running"
    assert (place.clones() / change.uid / "file").exists()


def test_one_whose_run_may_still_be_there_is_left_for_the_next_look(project):
    change = held(project, gone())
    run = make_run(state="running", lease_owner=lease.owner())
    Change.objects.filter(pk=change.pk).update(run=run)

    reconciling.look(None, None, Reconciled())
    change.refresh_from_db()
    assert change.state == "running"
    Run.objects.filter(pk=run.pk).update(
        state="ended", outcome="interrupted", exit_code=143, lease_owner="", lease_until=None,
        ended_at=clock.now(),
    )  # fmt: skip
    reconciling.look(None, None, Reconciled())
    change.refresh_from_db()
    assert change.state == "failed"


def test_a_queued_change_that_was_given_to_nobody_is_dropped_in_the_end(project):
    old, new, given = ask(project), ask(project), ask(project)
    long_ago = clock.now() - dt.timedelta(seconds=reconciling.NOBODY_S + 1)
    Change.objects.filter(pk__in=[old.pk, given.pk]).update(state_at=long_ago)
    Change.objects.filter(pk=given.pk).update(rung_at=clock.now())

    reconcile()

    states = dict(Change.objects.values_list("pk", "state"))
    assert states == {old.pk: "failed", new.pk: "queued", given.pk: "queued"}


def test_what_waits_in_a_batch_is_dropped_when_the_process_of_the_batch_is_gone(project):
    mine, others, workers = (Batch.objects.create(repository=project.repository) for _ in "123")
    Batch.objects.filter(pk=mine.pk).update(owner=lease.owner())
    Batch.objects.filter(pk=others.pk).update(owner=gone())
    for made in (mine, others, workers):
        ask(project, batch=made.uid)
    Change.objects.update(state_at=clock.now() - dt.timedelta(days=1))

    reconcile()

    states = dict(Change.objects.values_list("batch", "state"))
    assert states == {mine.uid: "queued", others.uid: "failed", workers.uid: "queued"}


def test_a_worker_finishes_a_landing_whose_process_is_gone(project, monkeypatch):
    from changes import gate

    change = project.change({"new.py": "x = 1\n"})
    gate.accept(change.uid, ANNA, yes())
    before = clock.now() - dt.timedelta(seconds=60)
    Change.objects.filter(pk=change.pk).update(state_at=before)

    reconcile()
    change.refresh_from_db()
    assert change.state == "landing"
    reconcile(lease.Watcher())
    change.refresh_from_db()
    assert change.state == "accepted"
    assert run_git(project.path, "rev-parse", f"sanduk/{change.uid}") == change.landed_commit


def test_a_queued_change_is_cancelled_at_once(project):
    change = ask(project)

    assert handover.cancel(change.uid, "ben") == "cancelled"
    assert handover.cancel(change.uid, "ben") == ""
    change.refresh_from_db()
    assert (change.state, change.reason) == ("failed", "cancelled by ben before it began")


def test_without_a_worker_nothing_is_given_away(project):
    change = ask(project)
    reviewed = project.change()
    Change.objects.filter(pk=reviewed.pk).update(order=change.order)

    assert not handover.give(change.uid)
    assert not handover.give_revision(reviewed.uid, ANNA, "again")
    with pytest.raises(Refusal, match="needs a --task"):
        handover.give_revision(reviewed.uid, ANNA, " ")
    assert not Change.objects.exclude(rung_at=None).exists()


def test_a_worker_is_told_once_and_again_when_it_did_not_come(project, monkeypatch):
    monkeypatch.setattr(handover, "worker_takes", lambda change: True)
    change = ask(project)

    assert handover.give(change.uid)
    assert handover.ring_again() == []
    late = clock.now() - dt.timedelta(seconds=200)
    Change.objects.filter(pk=change.pk).update(rung_at=late)
    monkeypatch.setattr("runs.queue.hanging", lambda cluster, task: set())
    assert handover.ring_again() == [change.uid]


def test_a_revision_for_a_worker_is_wanted_once(project, monkeypatch):
    monkeypatch.setattr(handover, "worker_takes", lambda change: True)
    change = project.change()

    assert handover.give_revision(change.uid, ANNA, "again")
    with pytest.raises(Refusal, match="is being revised already"):
        handover.give_revision(change.uid, ANNA, "once more")
    change.refresh_from_db()
    assert (change.state, change.wanted_task, change.wanted_as) == ("review", "again", "anna")
    assert Change.objects.claim(change.pk, lease.owner(), LEASE_S, revision=True)
    change.refresh_from_db()
    assert (change.wanted_task, change.wanted_as, change.rung_at) == ("", "", None)


# -- collecting -----------------------------------------------------------------------------------
def old(change: Change, **facts) -> None:
    long_ago = clock.now() - dt.timedelta(days=collecting.KEPT_DAYS + 1)
    Change.objects.filter(pk=change.pk).update(state_at=long_ago, **facts)


def refs(project: Project) -> set[str]:
    said = project.store.git("for-each-ref", "--format=%(refname)", "refs/sanduk").decode()
    return {line.removeprefix("refs/sanduk/") for line in said.splitlines()}


def test_only_what_nobody_needs_is_collected(project):
    busy, lost = held(project, lease.owner()), held(project, gone())
    Change.objects.end_lost(lost, "x")
    old(lost)
    waiting, decided = project.change({"a": "a\n"}), project.change({"b": "b\n"})
    Change.objects.reject(decided.pk, decided.attempt.pk, decided_by="anna", reason="no")
    old(decided)
    stranger = place.clones() / "not-of-ours"
    stranger.mkdir()

    would = collecting.collect(dry_run=True)
    assert (place.clones() / lost.uid).exists()
    done = collecting.collect()

    assert (done.gone, done.troubles) == (would.gone, [])
    assert sorted(done.gone) == sorted([
        f"clone {lost.uid}", f"base of change {lost.uid}",
        f"attempts/{decided.uid}/1 in the store of {project.repository}",
    ])  # fmt: skip
    assert done.bytes > 0
    assert (place.clones() / busy.uid / "file").exists()
    assert stranger.exists()
    assert base.of(busy).bundle.is_file()
    assert refs(project) == {f"attempts/{waiting.uid}/1", f"bases/{project.base}"}
    assert collecting.collect().gone == []


def test_what_was_decided_lately_stays(project):
    decided = project.change({"b": "b\n"})
    Change.objects.reject(decided.pk, decided.attempt.pk, decided_by="anna", reason="no")

    assert collecting.collect().gone == []


def test_a_base_of_no_change_goes_once_it_cannot_be_of_one_that_begins(project):
    stray = base.directory_of("0123456789ab")
    stray.mkdir(parents=True)
    assert collecting.collect().gone == []
    os.utime(stray, (1, 1))

    assert collecting.collect().gone == ["base 0123456789ab of no change"]
    assert not stray.exists()


def test_nothing_goes_where_nothing_could_be_listed(project, monkeypatch):
    lost = held(project, gone())
    Change.objects.end_lost(lost, "x")
    old(lost)

    def unreadable(directory):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(collecting, "_listed", unreadable)
    done = collecting.collect()

    assert len(done.troubles) == 2
    assert (place.clones() / lost.uid).exists()


@pytest.fixture
def clone(tmp_path, settings) -> Path:
    settings.SANDUK_HOME = tmp_path
    work = place.clones() / "0123456789ab" / "work"
    work.mkdir(parents=True)
    return work


def test_a_clone_that_an_agent_closed_for_its_own_account_is_removed(clone):
    closed = clone / "a" / "b"
    closed.mkdir(parents=True)
    (closed / "file").write_text("x")
    for directory in (closed, closed.parent, clone):
        directory.chmod(0)

    place.remove("0123456789ab")

    assert list(place.clones().iterdir()) == []


def test_a_clone_deeper_than_any_path_is_removed_and_no_link_is_followed(clone, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("x")
    descriptor = os.open(clone, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("deep", dir_fd=descriptor)
        deeper = os.open("deep", os.O_RDONLY, dir_fd=descriptor)
        os.symlink(outside, "link", dir_fd=deeper)
        os.close(descriptor)
        descriptor = deeper
    os.close(descriptor)
    assert place.size_of(clone) > 0

    place.remove("0123456789ab")

    assert list(place.clones().iterdir()) == []
    assert (outside / "kept").exists()


def test_a_place_is_gone_however_its_block_ends(tmp_path, settings):
    settings.SANDUK_HOME = tmp_path
    with contextlib.suppress(KeyboardInterrupt), place.made("0123456789ab") as directory:
        (directory / "file").write_text("x")
        raise KeyboardInterrupt

    assert list(place.clones().iterdir()) == []
