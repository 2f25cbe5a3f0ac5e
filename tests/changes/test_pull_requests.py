"""`--as draft-pr`: the branch here, the same branch there, and one draft of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from changes import deciding
from changes.models import Change, PullRequest
from runs.models import AuditEvent
from tests.changes.rows import SOMEBODY, Project, run_git, yes
from tests.changes.stand_in import TOKEN, GitHub, serving

pytestmark = pytest.mark.django_db


@pytest.fixture
def github(project: Project, tmp_path: Path, settings, monkeypatch) -> Iterator[GitHub]:
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    with serving(tmp_path, project.path) as found:
        settings.SANDUK_GITHUB_API = found.api
        run_git(project.path, "remote", "add", "origin", found.remote)
        yield found


def propose(change: Change, **words) -> Change:
    done = deciding.accept(change.uid, SOMEBODY, yes(draft_pr=True, **words))
    assert deciding.proposed(done) == ""
    return done


def row_of(change: Change) -> PullRequest:
    return PullRequest.objects.get(change=change)


def test_the_branch_is_here_and_there_and_a_draft_is_made_of_it(project: Project, github: GitHub):
    change = project.change({"new.py": "x = 1\n"}, task="add new\n\nand say why")

    done = propose(change)

    head = f"sanduk/{change.uid}"
    assert (done.state, run_git(project.path, "rev-parse", head)) == ("accepted", github.tip(head))
    assert github.tip(head) == done.landed_commit
    assert run_git(github.bare, "fsck", "--strict") == ""
    (post,) = github.posts()
    asked = post.data
    assert (asked["title"], asked["head"], asked["base"]) == ("add new", head, "main")
    assert asked["draft"] is True
    for words in ("| and say why", "| none are named", f"| Sanduk-Digest: {change.attempt.digest}"):
        assert words in asked["body"]
    row = row_of(change)
    assert (row.state, row.number, row.trouble) == ("opened", 41, "")
    assert row.url == f"{github.address}/people/shop/pull/41"
    actions = AuditEvent.objects.order_by("number").values_list("action", flat=True)
    assert list(actions) == ["change.approve", "change.land", "change.push", "change.propose"]
