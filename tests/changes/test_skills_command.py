"""`sanduk skills` at a terminal."""

from __future__ import annotations

import pytest

from changes import skills
from changes.models import Skill
from tests.changes.commanding import Terminal
from tests.changes.rows import make_change, make_repository, reviewed

pytestmark = pytest.mark.django_db
HOSTILE = "\x1b[2J‮"


def text(name: str = "build-notes", body: str = "Run make twice.") -> str:
    return f"---\nname: {name}\ndescription: how it is built\n---\n{body}\n"


def proposed(change=None, **fields: str) -> Skill:
    change = change or reviewed()
    given = text(**fields)
    proposal = skills.Proposal(fields.get("name", "build-notes"), "how it is built", given)
    [skill] = skills.propose(change.attempt, [proposal])
    return skill


def test_those_that_wait_are_listed_with_what_was_found(sanduk: Terminal):
    skill = proposed()

    said = sanduk.skills("list")

    assert said.out.splitlines()[0].split()[:4] == ["SKILL", "STATE", "SINCE", "FOUND"]
    assert "build-notes@1  proposed" in said.out
    [row] = sanduk.skills("list", "--json").data
    assert (row["name"], row["version"], row["sha256"]) == ("build-notes", 1, skill.sha256)
    assert "body" not in row
    assert sanduk.skills("list", "--repo", skill.repository.uid).out == said.out


def test_without_skills_it_says_so(sanduk):
    assert "no skills" in sanduk.skills("list").err
    assert sanduk.skills("list", "--json").data == []


def test_its_text_is_shown_whole_and_harmless(sanduk):
    skill = proposed(body=f"Run make twice.{HOSTILE}")

    said = sanduk.skills("show", "build-notes")

    assert skill.sha256 in said.out
    assert "| Run make twice.\\x1b[2J\\u202e" in said.out
    assert "the difference to what is in force:" in said.out
    assert sanduk.skills("show", "build-notes", "--json").data["body"] == skill.body


def test_an_approved_one_is_in_force_and_a_later_version_shows_the_difference(sanduk):
    first = proposed()

    said = sanduk.skills("approve", "build-notes", "--expect", first.sha256[:12])
    assert said.out == "skill build-notes 1 is approved: later agents on it are given its text\n"
    again = make_change(first.repository)
    second = proposed(reviewed(again), body="Run make once.")

    shown = sanduk.skills("show", "build-notes").out
    assert "-Run make twice." in shown
    assert "+Run make once." in shown
    assert "-Run make twice." in sanduk("show", again.uid).out
    assert sanduk.skills("approve", "build-notes@2").code == 0
    first.refresh_from_db()
    second.refresh_from_db()
    assert (first.state, second.state) == ("replaced", "approved")
    assert "build-notes@1" not in sanduk.skills("list").out
    assert "build-notes@1" in sanduk.skills("list", "--all").out


def test_what_was_not_read_is_not_approved(sanduk):
    skill = proposed()

    said = sanduk.skills("approve", "build-notes", "--expect", "0" * 64)

    assert said.code == 2
    assert "read it again" in said.err
    skill.refresh_from_db()
    assert skill.state == "proposed"


def test_it_is_revoked_with_a_reason_and_decided_once(sanduk):
    proposed()
    assert sanduk.skills("approve", "build-notes").code == 0

    assert "needs a --reason" in sanduk.skills("revoke", "build-notes").err
    assert sanduk.skills("revoke", "build-notes", "--reason", "old").out == (
        "skill build-notes 1 is revoked\n"
    )
    said = sanduk.skills("revoke", "build-notes", "--reason", "old")
    assert said.code == 2
    assert "is revoked by anna" in said.err


def test_a_proposal_can_be_rejected(sanduk):
    proposed()

    told = sanduk.skills("reject", "build-notes", "--reason", "no", "--json").data

    assert (told["state"], told["reason"], told["decided_by"]) == ("rejected", "no", "anna")


def test_a_name_in_two_repositories_has_to_be_told_apart(sanduk):
    for path in ("/srv/one", "/srv/two"):
        proposed(reviewed(make_change(make_repository(path))))

    said = sanduk.skills("show", "build-notes")
    assert said.code == 2
    assert "--repo" in said.err
    assert sanduk.skills("show", "build-notes", "--repo", "/srv/two").code == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("show", "nothing"), "there is no skill 'nothing'"),
        (("show", "../x"), "there is no skill"),
        (("show", "build-notes@9"), "there is no skill 'build-notes@9'"),
        (("show",), "skills show needs a NAME"),
        (("list", "x"), "skills list takes no name"),
        (("revoke", "build-notes", "--expect", "a" * 12), "--expect means nothing with revoke"),
        (("approve", "build-notes", "--all"), "--all means nothing with approve"),
        (("list", "--repo", "/nowhere"), "no change was ever asked for"),
    ],
)
def test_what_means_nothing_is_refused(sanduk, words, said):
    proposed()
    answer = sanduk.skills(*words)

    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err
