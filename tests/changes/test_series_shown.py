"""The commits of a series, at a terminal and on their pages."""

from __future__ import annotations

import subprocess

import pytest
from django.urls import reverse

from changes import showing
from changes.models import Change
from tests.changes.committed import kept
from tests.changes.rows import run_git
from tests.site.pages import EVIL, HIDING, SCRIPT, somebody

pytestmark = pytest.mark.django_db
TOKEN = b"ghp_" + b"a1B2c3D4e5" * 3 + b"F6g7H8"


@pytest.fixture
def series(project) -> Change:
    """Two commits and a rest; a token comes with the first and goes with the second."""
    return kept(
        project,
        {"conf.py": b"x = 1\nkey = '" + TOKEN + b"'\n", "big.py": b"y = 1\n" * 50},
        {"conf.py": b"x = 2\n"},
        words=("begin\n\nwith a reason", "go on"),
        rest={"rest.py": b"z = 3\n"},
    )


@pytest.fixture
def client(client):
    client.force_login(somebody("ada", "operator", "approver"))
    return client


# -- at a terminal --------------------------------------------------------------------------------
def test_show_lists_the_commits_with_their_words_and_flags(sanduk, series):
    said = sanduk("show", series.uid).out

    assert "  1  begin  (2 files, +52 -0)\n       |\n       | with a reason\n" in said
    assert "  2  go on  (1 file, +1 -2)\n" in said
    assert "  3  what the agent had not committed, with the task as its message" in said
    assert "conf.py:2 in commit 1: the shape of" in said
    assert f"sanduk change diff {series.uid} --commit 1" in said


def test_show_says_why_it_lands_as_one_commit(sanduk, project):
    change = kept(project, rest={"one": b"1\n"})

    assert "note: the agent made no commit of its own" in sanduk("show", change.uid).out


def test_a_change_that_keeps_no_commits_says_nothing_of_them(sanduk, project):
    change = project.change()

    assert "commit" not in sanduk("show", change.uid).out.partition("files:")[0]


def test_show_gives_the_commits_to_scripts(sanduk, series):
    told = sanduk("show", series.uid, "--json").data

    (attempt,) = told["attempts"]
    assert [each["message"] for each in attempt["commits"]] == [
        "begin\n\nwith a reason", "go on", "",
    ]  # fmt: skip
    assert [(each["path"], each["commit"]) for each in told["risk_flags"]] == [("conf.py", 1)]


def test_diff_gives_each_commit_by_itself_and_they_come_to_the_whole(sanduk, series, project):
    run_git(project.path, "checkout", "-q", "-b", "tried")
    for number in (1, 2, 3):
        patch = sanduk("diff", series.uid, "--commit", str(number)).out
        subprocess.run(
            ["git", "apply", "--index"], cwd=project.path, input=patch, text=True, check=True,
            timeout=30,
        )  # fmt: skip

    assert run_git(project.path, "write-tree") == series.attempt.tree
    files = sanduk("diff", series.uid, "--commit", "2", "--files").out
    assert files == "modified  conf.py  +1 -2\n"


@pytest.mark.parametrize(("words", "why"), [
    (("--commit", "4"), "has no commit 4: it has 3"),
    (("--commit", "1", "--against", "1"), "--commit goes without --against"),
])  # fmt: skip
def test_a_commit_there_is_not_is_refused(sanduk, series, words, why):
    said = sanduk("diff", series.uid, *words)

    assert (said.code, said.out) == (2, "")
    assert why in said.err


def test_a_change_of_one_commit_has_none_to_show(sanduk, project):
    change = project.change()

    assert "it lands as one commit" in sanduk("diff", change.uid, "--commit", "1").err


# -- on the site ----------------------------------------------------------------------------------
def test_the_gate_lists_the_commits_and_leads_to_them(client, series):
    page = client.get(reverse("change", args=[series.uid])).content.decode()

    assert "3 commits, which land one by one" in page
    assert "with a reason" in page
    assert "Digest of base, tree, patch and commits" in page
    assert "what the agent had not committed; it lands with the task as its message" in page
    for number in (1, 2, 3):
        assert reverse("change-commit", args=[series.uid, 1, number]) in page
    assert "in commit 1</a>" in page


def test_a_flag_of_a_commit_stands_at_its_line_there_and_at_none_of_the_whole(client, series):
    whole = client.get(reverse("change", args=[series.uid])).content.decode()
    commit = client.get(reverse("change-commit", args=[series.uid, 1, 1])).content.decode()
    other = client.get(reverse("change-commit", args=[series.uid, 1, 2])).content.decode()

    assert "in commit 1, line 2: the shape of" in whole
    assert 'class="sk-flagged"' not in whole
    assert 'class="sk-flagged"' in commit
    assert "the shape of" not in other


def test_a_commit_is_a_page_with_its_files_and_its_patch(client, series):
    page = client.get(reverse("change-commit", args=[series.uid, 1, 2])).content.decode()

    assert "Commit 2 of 3" in page
    assert "go on" in page
    assert "conf.py" in page
    assert "big.py" not in page
    patch = client.get(reverse("change-commit-patch", args=[series.uid, 1, 2])).content
    assert b"-key = '" + TOKEN in patch
    assert b"rest.py" not in patch


def test_a_page_of_a_commit_says_what_it_does_not_show(client, series, monkeypatch):
    monkeypatch.setattr(showing, "LINES", 10)
    page = client.get(reverse("change-commit", args=[series.uid, 1, 1])).content.decode()

    assert "More differs than this page shows: the patch of the commit holds it." in page


def test_what_an_agent_wrote_in_a_message_is_a_text(client, project, sanduk):
    change = kept(project, {"a": b"a\n"}, words=(EVIL,))
    for name, more in (("change", ()), ("change-commit", (1, 1))):
        page = client.get(reverse(name, args=[change.uid, *more])).content.decode()
        assert SCRIPT not in page
    said = sanduk("show", change.uid).out
    assert not [each for each in HIDING if each in said]


def test_the_store_that_is_gone_is_said_on_the_page(client, series, project):
    project.store.path.rename(project.store.path.with_suffix(".away"))
    answer = client.get(reverse("change-commit", args=[series.uid, 1, 1]))

    assert answer.status_code == 200
    assert "What it holds cannot be read" in answer.content.decode()
    assert client.get(reverse("change-commit-patch", args=[series.uid, 1, 1])).status_code == 302
