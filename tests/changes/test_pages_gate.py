"""The page of a change: what was read is what lands, by POST alone, and nothing hides on it."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from changes import handover
from changes.git import GitError
from changes.models import Change, TestRun
from runs.models import Decision
from tests.changes.rows import make_change, run_git, state
from tests.site.pages import EVIL, SCRIPT, somebody

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada():
    return somebody("ada", "operator", "approver", email="ada@example.org")


@pytest.fixture
def client(client, ada):
    client.force_login(ada)
    return client


def look(client, change, **query: str):
    return client.get(reverse("change", args=[change.uid]), query)


def text_of(answer) -> str:
    return answer.content.decode()


def decide(client, change, verdict: str, **fields):
    form = {"verdict": verdict, "digest": change.attempt.digest, **fields}
    answer = client.post(reverse("change-decide", args=[change.uid]), form, follow=True)
    change.refresh_from_db()
    return answer


def said(answer) -> str:
    return " ".join(str(message) for message in answer.context["messages"])


def test_the_page_shows_the_exact_lines_with_their_numbers_and_the_digest(client, project):
    change = project.change(
        {"README.md": "hello\nworld\n", "src/new.py": "def f():\n    return 1\n"}
    )

    page = text_of(look(client, change))

    assert change.attempt.digest in page
    assert 'id="f1-R2"' in page
    assert "world</td>" in page
    assert '<span class="sk-k">return</span>' in page
    assert "src/new.py" in page


def test_accepting_makes_the_branch_and_names_who_did(client, project):
    change = project.change({"new.py": "x = 1\n"})

    answer = decide(client, change, "accept")

    assert change.state == "accepted", said(answer)
    assert change.decided_by == "ada"
    commit = run_git(project.path, "rev-parse", f"sanduk/{change.uid}")
    assert change.landed_commit == commit
    assert run_git(project.path, "show", "-s", "--format=%cn <%ce>", commit) == (
        "ada <ada@example.org>"
    )
    assert Decision.objects.get().via == "web"
    assert f"branch sanduk/{change.uid}" in said(answer)
    assert "accepted" in text_of(answer)


def test_a_page_that_is_not_what_is_there_now_decides_nothing(client, project):
    change = project.change()
    for digest in ("", "0" * 64, change.attempt.digest[:12]):
        answer = decide(client, change, "accept", digest=digest)
        assert answer.status_code == 409
        assert "read" in said(answer)
    assert change.state == "review"
    assert not Decision.objects.exists()


def test_a_rejection_needs_a_reason_and_what_was_typed_is_not_lost(client, project):
    change = project.change()
    assert decide(client, change, "reject").status_code == 409
    assert change.state == "review"

    answer = decide(client, change, "accept", reason="as agreed", digest="0" * 64)
    assert ">as agreed</textarea>" in text_of(answer)

    decide(client, change, "reject", reason="not so")
    assert (change.state, change.decided_by, change.reason) == ("rejected", "ada", "not so")


def test_one_that_is_decided_says_by_whom_and_when_and_offers_nothing(client, project):
    change = project.change()
    decide(client, change, "reject", reason="not so")

    answer = decide(client, change, "accept")
    assert "already rejected by ada" in said(answer)
    page = text_of(look(client, change))
    assert 'value="accept"' not in page
    assert "<strong>ada</strong>" in page
    assert "<time " in page


def test_with_four_eyes_who_asked_sees_why_they_cannot_accept(client, project, ada):
    project.rule("exclude_author = true\n")
    change = project.change(requested_by=ada)

    page = text_of(look(client, change))
    assert 'value="accept"' not in page
    assert "It waits for somebody else:</strong> you asked for it." in page
    assert "Accepting makes exactly this" not in page
    decide(client, change, "accept")
    assert change.state == "review"


def test_where_two_are_needed_the_first_yes_is_kept_and_said(client, project):
    project.rule("approvals = 2\n")
    change = project.change()
    assert "1 more person is needed" in said(decide(client, change, "accept"))
    assert change.state == "review"
    page = text_of(look(client, change))
    assert "It waits for somebody else:</strong> you accepted it; 1 of 2 did." in page
    assert 'value="accept"' not in page

    client.force_login(somebody("ben", "approver"))
    decide(client, change, "accept")
    assert (change.state, change.decided_by) == ("accepted", "ada, ben")


def test_one_that_git_could_not_land_now_is_finished_from_the_page(client, project, monkeypatch):
    def fails(*words, **more):
        raise GitError("no room")

    change = project.change()
    with monkeypatch.context() as broken:
        broken.setattr("changes.landing.land", fails)
        answer = decide(client, change, "accept")
    assert answer.status_code == 409
    assert "no room" in said(answer)
    assert change.state == "landing"
    assert 'value="land"' in text_of(answer)

    decide(client, change, "land")
    assert change.state == "accepted"


def test_tests_that_are_not_green_stand_in_the_way_and_going_without_is_kept(client, project):
    project.rule('test_command = "make test"\n')
    change = project.change()
    assert "not run on exactly this" in text_of(look(client, change))

    assert "were not run on exactly this content" in said(decide(client, change, "accept"))
    assert "reason" in said(decide(client, change, "accept", no_test="1"))
    assert change.state == "review"

    decide(client, change, "accept", no_test="1", reason="docs only")
    assert change.state == "accepted"


def test_green_tests_let_it_land(client, project):
    project.rule('test_command = "make test"\n')
    change = project.change()
    project.tested(change, "make test")
    assert "passed on exactly this" in text_of(look(client, change))
    decide(client, change, "accept")
    assert change.state == "accepted"


def test_the_tests_are_left_to_a_worker_with_no_command_of_the_page(client, project, monkeypatch):
    rung = []
    monkeypatch.setattr("runs.queue.ring", lambda *words, **more: rung.append(words))
    project.rule('test_command = "make test"\n')
    change = project.change()
    form = {"digest": change.attempt.digest, "command": "rm -rf /"}

    client.post(reverse("change-test", args=[change.uid]), form)
    client.post(reverse("change-test", args=[change.uid]), {"digest": "0" * 64})

    row = TestRun.objects.get(attempt=change.attempt)
    assert row.command == "make test"
    assert rung == [("changes.testing_later.work", row.pk)]


def test_revising_takes_the_words_and_the_comments_on_lines(client, project, monkeypatch):
    given = []
    change = project.change()
    assert decide(client, change, "revise").status_code == 409

    monkeypatch.setattr(handover, "give_revision", lambda *words: False)
    assert "no worker is up" in said(decide(client, change, "revise", reason="shorter"))
    monkeypatch.setattr(handover, "give_revision", lambda *words: given.append(words) or True)

    decide(client, change, "revise", reason="shorter", comment=["new.py, line 1: no x", " "])

    ((uid, person, task),) = given
    assert (uid, person.via, task) == (change.uid, "web", "shorter\n\nnew.py, line 1: no x")


def test_without_a_script_the_number_of_a_line_begins_a_comment_on_it(client, project):
    change = project.change({"new.py": "x = 1\n"})
    assert 'href="?at=1-R1#reason"' in text_of(look(client, change))
    assert ">new.py, line 1: </textarea>" in text_of(look(client, change, at="1-R1"))
    for odd in ("1-R", "9-R1", "x", f"1-R1{SCRIPT}", "1-R\u0663"):
        assert look(client, change, at=odd).status_code == 200


def test_hostile_names_and_lines_are_text_and_what_hides_is_marked(client, project):
    name = f"a/{SCRIPT.replace('/', '_')}\u202etxt.py"
    change = project.change(
        {name: f"{EVIL}\n", "b.txt": b"\xff\x00\n", "c.txt": b"caf\xe9\r\n"},
        task=EVIL,
        agent=EVIL[:200],
    )
    for query in ({}, {"view": "split"}, {"find": EVIL[:100]}):
        page = text_of(look(client, change, **query))
        assert "<script>alert" not in page
        assert "<img src=x" not in page
        for char in ("\u202e", "\u200b", "\x1b"):
            assert char not in page
    page = text_of(look(client, change))
    assert '<mark class="sk-unseen">\\u202e</mark>' in page
    assert '<mark class="sk-unseen">\\xe9</mark><mark class="sk-unseen">\\x0d</mark>' in page
    assert "binary" in page


def test_the_questions_to_the_database_do_not_grow_with_the_files(client, project):
    few = project.change({f"d/{n}.py": "x = 1\n" for n in range(2)})
    many = project.change({f"e/{n}.py": "import os\nos.system('x')\n" for n in range(80)})
    look(client, few)
    with CaptureQueriesContext(connection) as of_few:
        look(client, few)
    with CaptureQueriesContext(connection) as of_many:
        look(client, many)
    assert len(of_many) <= len(of_few)
    assert len(of_few) < 40


def test_files_come_in_parts_and_each_is_found_by_a_part_of_its_path(client, project):
    change = project.change({f"d/{n:03}.py": "x = 1\n" for n in range(230)})

    first = text_of(look(client, change))
    assert "d/099.py" in first
    assert "d/100.py" not in first
    assert "Part 1 of 3" in first
    assert "d/229.py" in text_of(look(client, change, part="3"))
    assert "d/229.py" in text_of(look(client, change, part="999"))
    page = text_of(look(client, change, find="/22"))
    assert "d/225.py" in page
    assert "d/001.py" not in page
    for odd in ("-1", "0", "x", "9" * 30, "\u0663"):
        assert look(client, change, part=odd).status_code == 200


def test_a_flag_stands_at_its_line_and_leads_there(client, project):
    change = project.change({"conf.py": "a = 1\nkey = 'held-secret-77'\n"})
    page = text_of(look(client, change))
    assert 'href="#f1-R2"' in page
    assert page.index("sk-grave") < page.index('id="f1"')
    assert '<tr class="sk-flagged">' in page
    assert "Reason: needed to accept" in page
    answer = decide(client, change, "accept")
    assert state(change) == "review"
    assert "possible secret" in said(answer)
    decide(client, change, "accept", reason="a dummy")
    assert state(change) == "accepted"


def test_what_gets_in_its_way_is_named_with_the_paths(client, project):
    one = project.change({"README.md": "one\n"})
    two = project.change({"README.md": "two\n"})
    page = text_of(look(client, one))
    assert f"change {two.uid}" in page
    assert "does not go together" in page

    (project.path / "README.md").write_text("moved\n")
    run_git(project.path, "commit", "-q", "-a", "-m", "second")
    assert "The branch moved on" in text_of(look(client, one))


def test_a_repository_that_is_gone_is_said_and_the_rest_is_shown(client, project):
    change = project.change()
    project.path.rename(project.path.with_name("moved"))
    page = text_of(look(client, change))
    assert "whether it fits the branch as it is now" in page
    assert 'id="f1-R1"' in page


def test_a_store_that_cannot_be_read_is_said_and_nothing_is_accepted(client, project):
    change = project.change()
    project.store.path.rename(project.store.path.with_name("gone.git"))
    assert "cannot be read" in text_of(look(client, change))
    assert decide(client, change, "accept").status_code == 409
    assert change.state == "review"


def test_an_earlier_attempt_can_be_read_and_not_decided_on(client, project):
    change = project.change({"new.py": "first = 1\n"})
    Change.objects.claim(change.pk, "host:1:here", 30, revision=True)
    project.attempt(change, {"new.py": "second = 2\n"})
    change.refresh_from_db()

    assert "second" in text_of(look(client, change))
    page = text_of(look(client, change, attempt="1"))
    assert "first" in page
    assert 'value="accept"' not in page
    assert look(client, change, attempt="3").status_code == 404


@pytest.mark.parametrize("fields", [{}, {"state": "failed", "reason": EVIL}])
def test_one_that_holds_nothing_yet_has_a_page_too(client, project, fields):
    change = make_change(project.repository, **fields)
    page = text_of(look(client, change))
    assert "<script>alert" not in page
    assert 'value="accept"' not in page
