"""`--as draft-pr`: the branch here, the same branch there, one draft of it, whatever happens."""

from __future__ import annotations

import datetime as dt
import os
import re

import pytest

from changes import deciding, gate, pull_requests, pushing, reconciling
from changes.git import GitError
from changes.github import NoAnswer
from changes.github_calls import Talk
from changes.models import Change, PullRequest
from runs import clock
from runs.lease import Watcher
from runs.models import AuditEvent, Decision
from runs.reconcile import Reconciled
from runs.refusal import HostRefusal, Refusal
from tests.changes.committed import kept
from tests.changes.rows import SOMEBODY, Project, run_git, state, yes
from tests.changes.stand_in import GitHub
from tests.changes.test_gate import people

pytestmark = pytest.mark.django_db


def accept(change: Change, **words) -> Change:
    return deciding.accept(change.uid, SOMEBODY, yes(draft_pr=True, **words))


def propose(change: Change, **words) -> Change:
    done = accept(change, **words)
    assert deciding.proposed(done) == ""
    return done


def row_of(change: Change) -> PullRequest:
    return PullRequest.objects.get(change=change)


def check_done(change: Change, github: GitHub) -> None:
    """One branch, one pull request, whatever happened on the way."""
    change.refresh_from_db()
    assert github.tip(f"sanduk/{change.uid}") == change.landed_commit
    assert [each["head"]["ref"] for each in github.pulls] == [f"sanduk/{change.uid}"]
    row = row_of(change)
    assert (row.state, row.number, row.trouble) == ("opened", 41, "")


def test_the_branch_is_here_and_there_and_a_draft_is_made_of_it(project: Project, github: GitHub):
    change = project.change({"new.py": "x = 1\n"}, task="add new\n\nand say why")

    done = propose(change)

    head = f"sanduk/{change.uid}"
    assert (done.state, run_git(project.path, "rev-parse", head)) == ("accepted", github.tip(head))
    assert run_git(github.bare, "fsck", "--strict") == ""
    assert run_git(github.bare, "rev-parse", f"{head}^") == project.base
    (post,) = github.posts()
    asked = post.data
    assert (asked["title"], asked["head"], asked["base"]) == ("add new", head, "main")
    assert asked["draft"] is True
    for words in ("| and say why", "| none are named", f"| Sanduk-Digest: {change.attempt.digest}"):
        assert words in asked["body"]
    assert row_of(change).url == f"{github.address}/people/shop/pull/41"
    actions = AuditEvent.objects.order_by("number").values_list("action", flat=True)
    assert list(actions) == ["change.approve", "change.land", "change.push", "change.propose"]
    check_done(change, github)


def test_the_commit_is_the_one_a_branch_alone_would_be(project: Project, github: GitHub):
    one, two = (project.change(task="add new @anna #1") for _ in range(2))
    propose(one)
    deciding.accept(two.uid, SOMEBODY, yes())

    def told(change: Change) -> str:
        form = "--format=%T %P %an %ae %cn %ce%n%B"
        said = run_git(project.path, "show", "-s", form, f"sanduk/{change.uid}")
        return said.replace(change.uid, "ID")

    assert told(one) == told(two)
    assert pull_requests.of(two) is None
    assert len(github.posts()) == 1


def test_a_series_is_pushed_whole_and_the_agents_words_in_it_do_nothing(
    project: Project, github: GitHub
):
    change = kept(
        project, {"one": b"1\n"}, {"two": b"2\n"},
        words=("Fixes #12\n\nThanks @octocat, see https://evil.example/x", "closes GH-3"),
    )  # fmt: skip

    propose(change)

    head = f"sanduk/{change.uid}"
    said = run_git(github.bare, "log", "--reverse", "--format=%B", f"main..{head}")
    assert re.search(r"@\w|#\d|GH-\d|://\w", said) is None
    for words in ("Fixes # 12", "Thanks @ octocat", "closes GH- 3", "Sanduk-Commit: 2 of 2"):
        assert words in said
    assert "It is 2 commits, the agent's own" in github.posts()[0].data["body"]
    check_done(change, github)


def test_it_is_proposed_for_the_branch_it_began_from_or_the_one_that_is_named(
    project: Project, github: GitHub
):
    for branch in ("stable", "old/1.x", "main"):
        run_git(project.path, "branch", "-f", branch, project.base) if branch != "main" else None
        run_git(github.bare, "branch", "-f", branch, project.base)
    run_git(project.path, "update-ref", "refs/remotes/origin/old/1.x", project.base)
    run_git(project.path, "tag", "v1")

    def base(ref: str, **words) -> str:
        propose(project.change(base_ref=ref), **words)
        return str(github.posts()[-1].data["base"])

    assert base("stable") == "stable"
    assert base("refs/heads/stable") == "stable"
    assert base("origin/old/1.x") == "old/1.x"
    assert (base("v1"), base(""), base("HEAD")) == ("main", "main", "main")
    assert base("stable", into="old/1.x") == "old/1.x"
    project.rule('pull_request_into = "stable"\n')
    assert base("main") == "stable"


def test_what_is_there_already_is_not_sent_again(project: Project, github: GitHub):
    (project.path / "big").write_bytes(os.urandom(300_000))
    run_git(project.path, "add", "big")
    run_git(project.path, "commit", "-q", "-m", "big")
    project.base = run_git(project.path, "rev-parse", "HEAD")
    run_git(project.path, "push", "-q", str(github.bare), "main")
    # somebody went on there since: our store knows nothing of the branch's tip
    run_git(project.path, "commit", "-q", "--allow-empty", "-m", "later")
    run_git(project.path, "push", "-q", str(github.bare), "main")

    propose(project.change({"new.py": "x = 1\n"}))

    assert max(len(each.body) for each in github.pushes()) < 20_000


def test_what_is_too_large_for_one_piece_is_pushed_in_many(project: Project, github: GitHub):
    change = project.change({"data": os.urandom(3 << 20)})

    propose(change)

    check_done(change, github)
    assert any(each.headers.get("transfer-encoding") == "chunked" for each in github.pushes())


def test_a_commit_that_only_the_repository_has_is_pushed_whole(project: Project, github: GitHub):
    change = project.change({"new.py": "x = 1\n"})
    accept(change)
    store = project.store
    unsigned = Change.objects.get(pk=change.pk).landed_commit
    raw = run_git(project.path, "cat-file", "commit", unsigned)
    head, _, text = raw.partition("\n\n")
    signed = f"{head}\ngpgsig -----BEGIN SSH SIGNATURE-----\n x\n\n{text}\n"
    (project.path / "raw").write_text(signed)
    commit = run_git(project.path, "hash-object", "-t", "commit", "-w", "raw")
    Change.objects.filter(pk=change.pk).update(landed_commit=commit)
    assert not store.holds(commit)

    assert deciding.proposed(Change.objects.get(pk=change.pk)) == ""
    check_done(change, github)


def test_another_commit_than_was_accepted_never_leaves(project: Project, github: GitHub):
    change, other = project.change(), project.change({"evil.py": "x\n"})
    accept(change)
    tree = other.attempt.tree
    pack = project.store.git("pack-objects", "--revs", "--stdout", "-q", stdin=f"{tree}\n".encode())
    (project.path.parent / "pack").write_bytes(pack)
    with (project.path.parent / "pack").open() as file:
        pushing.git("index-pack", "--stdin", git_dir=project.path / ".git", stdin=file)
    evil = ""
    for tree_ in (tree, change.attempt.tree):  # another tree; the right one, merged with more
        parents = ["-p", project.base, *(["-p", evil] if evil else [])]
        evil = run_git(project.path, "commit-tree", tree_, *parents, "-m", "x")
        Change.objects.filter(pk=change.pk).update(landed_commit=evil)
        assert "is not what was accepted" in deciding.proposed(Change.objects.get(pk=change.pk))
    assert github.tip(f"sanduk/{change.uid}") == ""


STEPS = {
    "before the push": (pushing, "push", False),
    "after the push": (pushing, "push", True),
    "after the push was read back": (Talk, "tip", True),
    "before it was looked for": (Talk, "pull_of", False),
    "before it was asked for": (Talk, "make", False),
    "after it was asked for": (Talk, "make", True),
}


@pytest.mark.parametrize("step", STEPS)
def test_a_process_that_dies_anywhere_leaves_nothing_twice(
    project: Project, github: GitHub, monkeypatch, step: str
):
    change = project.change()
    done = accept(change)
    place, name, runs_first = STEPS[step]
    real = getattr(place, name)

    def die(*words, **how):
        if runs_first:
            real(*words, **how)
        raise KeyboardInterrupt

    monkeypatch.setattr(place, name, die)
    with pytest.raises(KeyboardInterrupt):
        deciding.proposed(done)
    assert row_of(change).is_unfinished
    assert state(change) == "accepted"
    monkeypatch.setattr(place, name, real)

    propose(change)

    check_done(change, github)
    assert len(github.posts()) == 1
    assert Decision.objects.count() == 1


def test_a_process_that_dies_between_landing_and_pushing_is_gone_on_for_by_the_worker(
    project: Project, github: GitHub, monkeypatch
):
    change = project.change()
    gate.accept(change.uid, SOMEBODY, yes(draft_pr=True))
    assert not PullRequest.objects.exists()
    gate.land(change.uid)
    done = Reconciled()
    reconciling.look(None, Watcher(), done)
    assert row_of(change).state == "wanted"  # whoever decided is at it
    before = clock.now() - dt.timedelta(seconds=reconciling.LANDS_AGAIN_S + 1)
    PullRequest.objects.update(state_at=before)

    reconciling.look(None, Watcher(), done)

    assert done.troubles == []
    check_done(change, github)


def test_what_was_refused_waits_for_a_person_and_not_for_the_worker(
    project: Project, github: GitHub
):
    change = project.change()
    done = accept(change)
    github.git_denied = True
    assert "does not let GITHUB_TOKEN push" in deciding.proposed(done)
    PullRequest.objects.update(state_at=clock.now() - dt.timedelta(days=1))
    asked = len(github.asked)

    reconciling.look(None, Watcher(), Reconciled())

    assert len(github.asked) == asked
    github.git_denied = False
    propose(change)
    check_done(change, github)


def test_no_answer_is_no_answer_and_is_found_out_by_looking(project: Project, github: GitHub):
    change = project.change()
    done = accept(change)
    github.hangs_up.add(("POST", "/pulls"))

    said = deciding.proposed(done)

    assert "whether the pull request was made is not known" in said
    assert (row_of(change).state, row_of(change).trouble) == ("asked", said)
    github.hangs_up.clear()
    propose(change)
    check_done(change, github)
    assert len(github.posts()) == 1


def test_a_push_without_an_answer_is_found_out_by_pushing_again(project: Project, github: GitHub):
    change = project.change()
    done = accept(change)
    github.hangs_up.add(("POST", "/git-receive-pack"))

    assert deciding.proposed(done) != ""
    assert (row_of(change).state, len(github.pulls)) == ("wanted", 0)
    github.hangs_up.clear()
    propose(change)
    check_done(change, github)


def test_one_that_somebody_was_faster_to_make_is_ours(project: Project, github: GitHub):
    change = project.change()
    done = accept(change)
    real = github.answers

    def faster(asked):
        github.answers = real
        github._made(asked.data)

    github.answers = {("POST", "/pulls"): faster}
    assert deciding.proposed(done) == ""
    check_done(change, github)


def test_a_closed_one_of_this_commit_is_not_made_again_and_one_of_another_is(
    project: Project, github: GitHub
):
    change = project.change()
    done = accept(change)
    ends = {"head": {"ref": f"sanduk/{change.uid}"}, "base": {"ref": "main", "sha": project.base}}
    for number, sha in ((7, "1" * 40), (8, done.landed_commit)):
        head = {**ends["head"], "sha": sha}
        github.pulls.append({**ends, "head": head, "number": number, "state": "closed"})

    assert deciding.proposed(done) == ""
    assert (row_of(change).number, github.posts()) == (8, [])


def test_a_branch_that_came_to_be_there_meanwhile_is_not_overwritten(
    project: Project, github: GitHub
):
    change = project.change()
    done = accept(change)
    head = f"sanduk/{change.uid}"
    run_git(github.bare, "branch", head, project.base)

    assert f"the branch {head} is there already" in deciding.proposed(done)
    assert github.tip(head) == project.base
    assert (github.pulls, row_of(change).state) == ([], "wanted")


def test_two_at_once_are_one(project: Project, github: GitHub, monkeypatch):
    change = project.change()
    done = accept(change)
    real, said = Talk.make, []

    def meanwhile(self, **words):
        said.append(deciding.proposed(Change.objects.get(pk=change.pk)))
        return real(self, **words)

    monkeypatch.setattr(Talk, "make", meanwhile)
    assert deciding.proposed(done) == ""
    assert "another process is making the pull request" in said[0]
    check_done(change, github)


def test_the_last_of_several_people_says_whether_there_is_one(project: Project, github: GitHub):
    project.rule("approvals = 2\n")
    anna, ben = people("anna", "ben")
    change = project.change()
    deciding.accept(change.uid, anna, yes(draft_pr=True))
    assert state(change) == "review"
    done = deciding.accept(change.uid, ben, yes())
    assert (done.state, pull_requests.of(done)) == ("accepted", None)
    assert github.pushes() == []


@pytest.mark.parametrize("error", [NoAnswer, HostRefusal, Refusal, GitError])
def test_whatever_stops_it_is_in_the_row_and_the_change_stays_accepted(
    project: Project, github: GitHub, monkeypatch, error
):
    change = project.change()
    done = accept(change)

    def fail(*words, **how):
        raise error("no room")

    monkeypatch.setattr(pushing, "push", fail)
    assert deciding.proposed(done) == "no room"
    assert (row_of(change).trouble, state(change)) == ("no room", "accepted")
