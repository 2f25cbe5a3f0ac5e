"""`--as draft-pr` at a terminal, and its box at the site's gate."""

from __future__ import annotations

import pytest
from django.urls import reverse

from changes import deciding, gate
from changes.models import Change, PullRequest
from tests.changes.commanding import Terminal
from tests.changes.rows import SOMEBODY, Project, state, yes
from tests.changes.stand_in import TOKEN, GitHub
from tests.changes.test_pages_gate import decide, said
from tests.site.pages import somebody

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _an_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("changes.landing.identity", lambda path: ("Anna", "anna@example.org"))
    monkeypatch.setattr("changes.landing.signs", lambda path: False)


@pytest.fixture
def ada(client):
    person = somebody("ada", "operator", "approver", email="ada@example.org")
    client.force_login(person)
    return person


def look(client, change: Change) -> str:
    return client.get(reverse("change", args=[change.uid])).content.decode()


def test_an_accepted_change_names_its_draft_everywhere(
    sanduk: Terminal, project: Project, github: GitHub
):
    change = project.change(task="add new")

    told = sanduk("accept", change.uid, "--as", "draft-pr")

    url = f"{github.address}/people/shop/pull/41"
    assert (told.code, told.err) == (0, "")
    assert f"draft   {url}" in told.out.splitlines()
    assert f"draft      {url}" in sanduk("show", change.uid).out
    assert sanduk("list", "--json").data[0]["pull_request"] == {
        "state": "opened", "repository": "people/shop", "into": "main",
        "branch": f"sanduk/{change.uid}", "number": 41, "url": url, "trouble": "",
    }  # fmt: skip
    again = sanduk("accept", change.uid, "--as", "draft-pr")
    assert (again.code, "was already accepted" in again.err) == (2, True)


def test_one_without_a_draft_says_nothing_of_one(sanduk: Terminal, project: Project):
    change = project.change()
    told = sanduk("accept", change.uid, "--as", "branch", "--json").data
    assert (told["state"], told["pull_request"]) == ("accepted", None)


def test_one_that_was_decided_without_a_draft_gets_none(
    sanduk: Terminal, project: Project, github: GitHub
):
    change = project.change()
    gate.accept(change.uid, SOMEBODY, yes())
    told = sanduk("accept", change.uid, "--as", "draft-pr")
    assert (told.code, state(change)) == (1, "accepted")
    assert "its pull request is not made: it was decided without one before" in told.err
    assert github.asked == []


def test_what_github_refuses_is_told_and_the_same_command_goes_on(
    sanduk: Terminal, project: Project, github: GitHub
):
    change = project.change()
    github.answers[("POST", "/pulls")] = (422, b'{"message": "no drafts here"}')

    told = sanduk("accept", change.uid, "--as", "draft-pr")

    assert told.code == 1
    assert f"change {change.uid} is accepted" in told.out
    assert "draft   pushed, and no pull request yet in people/shop: 127.0.0.1" in told.out
    assert f"sanduk change accept {change.uid} --as draft-pr" in told.out
    assert "its pull request is not made" in told.err
    assert "no drafts here" in told.err
    github.answers.clear()
    assert sanduk("accept", change.uid, "--as", "draft-pr").code == 0
    assert PullRequest.objects.get().number == 41


def test_what_is_missing_is_one_line_before_anything_is_decided(
    sanduk: Terminal, project: Project, github: GitHub, monkeypatch
):
    change = project.change()
    monkeypatch.delenv("GITHUB_TOKEN")

    told = sanduk("accept", change.uid, "--as", "draft-pr")

    assert (told.code, told.out) == (2, "")
    assert told.err.count("\n") == 1
    assert "sanduk auth set GITHUB_TOKEN" in told.err
    assert state(change) == "review"
    told = sanduk("accept", change.uid, "--into", "main")
    assert (told.code, "--as draft-pr only" in told.err) == (2, True)


def test_the_gate_offers_it_only_where_it_could_be_made(
    client, ada, project: Project, github: GitHub, monkeypatch
):
    change = project.change()
    assert "Push it to people/shop as well" in look(client, change)
    monkeypatch.delenv("GITHUB_TOKEN")
    assert "Push it to" not in look(client, change)
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    client.force_login(somebody("vera", "viewer"))
    assert "Push it to" not in look(client, change)
    assert github.asked == []


def test_accepting_on_the_site_makes_it_and_the_page_links_to_it(
    client, ada, project: Project, github: GitHub
):
    change = project.change()

    answer = decide(client, change, "accept", draft_pr="1")

    url = f"{github.address}/people/shop/pull/41"
    assert (change.state, change.decided_by) == ("accepted", "ada")
    assert url in said(answer)
    assert f'<a href="{url}" rel="noopener noreferrer">draft pull request 41</a>' in look(
        client, change
    )
    assert TOKEN not in answer.content.decode()


def test_without_the_box_nothing_leaves(client, ada, project: Project, github: GitHub):
    change = project.change()
    decide(client, change, "accept")
    assert (change.state, github.asked) == ("accepted", [])


def test_what_was_refused_can_be_tried_again_from_the_page(
    client, ada, project: Project, github: GitHub
):
    change = project.change()
    evil = b'{"message": "<script>alert(1)</script> no drafts"}'
    github.answers[("POST", "/pulls")] = (422, evil)

    answer = decide(client, change, "accept", draft_pr="1")

    assert change.state == "accepted"
    assert "Its draft pull request is not made" in said(answer)
    page = look(client, change)
    assert "is not made; the branch is pushed" in page
    assert (
        page.count('class="sk-decide') == 1
    )  # it sticks to the bottom: two would cover each other
    assert "<script>alert(1)" not in page
    assert decide(client, change, "propose").status_code == 409
    client.force_login(somebody("vera", "viewer"))
    assert 'value="propose"' not in look(client, change)
    assert "its draft pull request not made yet" in look(client, change)
    assert decide(client, change, "propose").status_code == 403
    client.force_login(ada)
    github.answers.clear()
    assert "Its draft pull request is http://127" in said(decide(client, change, "propose"))
    assert 'value="propose"' not in look(client, change)


def test_an_unknown_outcome_is_said_to_be_unknown(client, ada, project: Project, github: GitHub):
    change = project.change()
    done = deciding.accept(change.uid, SOMEBODY, yes(draft_pr=True))
    github.hangs_up.add(("POST", "/pulls"))
    assert deciding.proposed(done)

    page = look(client, change)

    assert "was asked for, and whether it was made is not known" in page
    github.hangs_up.clear()
    assert "pull/41" in said(decide(client, change, "propose"))
    assert len(github.posts()) == 1


def test_what_is_missing_refuses_on_the_page_too(client, ada, project: Project, github: GitHub):
    change = project.change()
    github.push = False

    answer = decide(client, change, "accept", draft_pr="1", reason="as agreed")

    assert (answer.status_code, change.state) == (409, "review")
    assert "may not push to people/shop" in said(answer)
    assert ">as agreed</textarea>" in answer.content.decode()
