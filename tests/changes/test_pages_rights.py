"""Every address of changes, every role, every method: who may look and do."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import get_resolver, reverse

from changes import artifacts, skills
from runs.models import Decision
from tests.changes.committed import kept
from tests.changes.rows import make_attempt, state
from tests.changes.trees import tree_of
from tests.site.pages import EVIL, somebody
from tests.site.test_pages_rights import ALL, APPROVE, OPERATE, WRITES, names_of

pytestmark = pytest.mark.django_db
OURS = "changes.views"
# name of the page: its arguments, which roles, and the method it answers
PAGES = {
    "changes": ((), ALL, "GET"),
    "change-new": ((), OPERATE, "GET"),
    "change-start": ((), OPERATE, "POST"),
    "skills": ((), ALL, "GET"),
    "skill-decide": (("skill",), APPROVE, "POST"),
    "change-batch": (("batch",), ALL, "GET"),
    "change": (("change",), ALL, "GET"),
    "change-decide": (("change",), APPROVE, "POST"),
    "change-test": (("change",), OPERATE, "POST"),
    "change-stop": (("change",), OPERATE, "POST"),
    "change-patch": (("change", "attempt"), ALL, "GET"),
    "change-file": (("change", "attempt", "file"), ALL, "GET"),
    "change-since": (("change", "later", "attempt"), ALL, "GET"),
    "change-since-file": (("change", "later", "attempt", "file"), ALL, "GET"),
    "change-commit": (("change", "attempt", "commit"), ALL, "GET"),
    "change-commit-patch": (("change", "attempt", "commit"), ALL, "GET"),
    "change-artifact": (("change", "artifact"), ALL, "GET"),
}
SKILL = "---\nname: build\ndescription: how to build\n---\nRun make.\n"


@pytest.fixture
def place(project):
    """One of everything, with the words of its addresses."""
    change = kept(project, {"new.py": b"x = 1\n"}, batch="abc")
    attempt = change.attempt
    taken = artifacts.Taken("../<b>evil\u202e.html", b"<script>alert(1)</script>")
    artifacts.keep(attempt, (taken, artifacts.Taken("no.exe", b"", "it is a program")))
    tree = tree_of(project.store, {"README.md": "hello\n", "new.py": "x = 2\n"})
    based = {"base_commit": attempt.base_commit, "base_tree": attempt.base_tree}
    later = make_attempt(change, number=7, tree=tree, **based)
    (skill,) = skills.propose(attempt, [skills.Proposal("build", "how to build", SKILL)])
    return {
        "change": change.uid, "attempt": attempt.number, "later": later.number, "file": 1,
        "batch": "abc", "commit": 1,
        "artifact": attempt.artifacts.get(refused="").uid, "skill": skill.pk,
        "rows": (change, skill),
    }  # fmt: skip


def address(name: str, place, **others) -> str:
    return reverse(name, args=[{**place, **others}[word] for word in PAGES[name][0]])


def test_every_address_of_changes_is_in_this_table():
    assert names_of(get_resolver().url_patterns, OURS) == set(PAGES)


@pytest.mark.parametrize("role", [*sorted(ALL), "nobody"])
def test_each_role_may_exactly_what_the_table_says(client, role, place):
    client.force_login(somebody("person", *([role] if role in ALL else [])))
    for name, (_, roles, method) in PAGES.items():
        answer = client.generic(method, address(name, place))
        assert (answer.status_code == 403) != (role in roles), (name, answer.status_code)


def test_strangers_are_sent_to_log_in(client, place):
    for name, (_, _, method) in PAGES.items():
        answer = client.generic(method, address(name, place))
        assert answer["Location"].startswith(reverse("admin:login")), name


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_looking_changes_nothing_at_any_address(client, method, place):
    client.force_login(somebody("person", "administrator"))
    client.get(reverse("home"))
    for name, (_, _, answers) in PAGES.items():
        with CaptureQueriesContext(connection) as asked:
            answer = client.generic(method, address(name, place))
        wrote = [each["sql"] for each in asked if each["sql"].split()[0] in WRITES]
        assert not [sql for sql in wrote if "session" not in sql], name
        assert answer.status_code == (200 if answers == "GET" else 405), name


def test_a_form_without_its_token_does_nothing(place):
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(somebody("person", "administrator"))
    for name, (_, _, method) in PAGES.items():
        if method == "POST":
            assert strict.post(address(name, place)).status_code == 403, name


def test_what_is_not_there_is_not_found(client, place):
    client.force_login(somebody("person", "administrator"))
    missing = {"change": "0" * 12, "batch": "none", "artifact": "0" * 12, "skill": 999}
    for name, (words, _, method) in PAGES.items():
        if words:
            answer = client.generic(method, address(name, place, **missing))
            assert answer.status_code == 404, name
    assert client.get(address("change-file", place, file=2)).status_code == 404
    assert client.get(address("change-patch", place, attempt=2)).status_code == 404
    for name in ("change-commit", "change-commit-patch"):
        for number in (0, 2):
            assert client.get(address(name, place, commit=number)).status_code == 404


def test_an_operator_revises_and_does_not_decide_and_an_approver_the_other_way_round(client, place):
    change, _ = place["rows"]
    form = {"digest": change.attempt.digest, "reason": "x"}
    for role, verdicts in (("operator", ("accept", "reject", "land")), ("approver", ("revise",))):
        client.force_login(somebody(role, role))
        for verdict in verdicts:
            answer = client.post(address("change-decide", place), {**form, "verdict": verdict})
            assert answer.status_code == 403, (role, verdict)
        page = client.get(address("change", place)).content.decode()
        for verdict in verdicts:
            assert f'value="{verdict}"' not in page, (role, verdict)
    assert state(change) == "review"
    assert not Decision.objects.exists()


def test_what_is_downloaded_is_never_a_page_and_its_name_is_ours(client, place):
    client.force_login(somebody("person", "viewer"))
    change, _ = place["rows"]
    for name, called in (
        ("change-artifact", f"artifact-{place['artifact']}.html"),
        ("change-patch", f"change-{change.uid}-1.patch"),
        ("change-commit-patch", f"change-{change.uid}-1-commit-1.patch"),
    ):
        answer = client.get(address(name, place))
        assert answer["Content-Type"] == "application/octet-stream"
        assert answer["X-Content-Type-Options"] == "nosniff"
        assert answer["Content-Disposition"] == f'attachment; filename="{called}"'
    page = client.get(address("change", place)).content.decode()
    assert "<b>evil" not in page
    assert "it is a program" in page


def test_the_patch_is_the_one_that_was_decided_on(client, place, project):
    client.force_login(somebody("person", "viewer"))
    patch = client.get(address("change-patch", place)).content
    assert len(patch) == place["rows"][0].attempt.patch_bytes
    assert b"+x = 1\n" in patch


def test_a_skill_is_decided_on_its_own_and_only_as_it_was_read(client, place):
    client.force_login(somebody("person", "approver"))
    change, skill = place["rows"]
    decide = address("skill-decide", place)
    for digest in ("", "0" * 64, skill.sha256[:12]):
        answer = client.post(decide, {"verdict": "approve", "digest": digest, "reason": "kept"})
        assert answer.status_code == 409
        assert 'value="kept"' in answer.content.decode()
    assert state(skill) == "proposed"

    client.post(decide, {"verdict": "approve", "digest": skill.sha256})
    assert state(skill) == "approved"
    assert state(change) == "review"
    client.post(decide, {"verdict": "revoke", "digest": skill.sha256, "reason": "old"})
    assert state(skill) == "revoked"


def test_lists_show_hostile_words_as_text(client, project):
    client.force_login(somebody("person", "administrator"))
    change = project.change(task=EVIL, agent=EVIL[:200], batch="abc")
    body = f"---\nname: x\ndescription: {EVIL}\n---\n{EVIL}\n"
    skills.propose(change.attempt, [skills.Proposal("x", EVIL[:500], body)])
    for place in ("/changes/", "/changes/skills/", "/changes/batch/abc/", "/",
                  "/admin/changes/change/", "/admin/changes/skill/"):  # fmt: skip
        page = client.get(place).content.decode()
        assert "alert(" in page, place
        assert "<script>alert" not in page, place
        assert "\u202e" not in page, place


def test_what_waits_is_counted_for_who_may_decide_and_shown_at_home(client, place):
    client.force_login(somebody("vera", "viewer"))
    assert client.get(reverse("waiting")).json() == {"waiting": 0}
    home = client.get(reverse("home")).content.decode()
    assert "2 things below wait for somebody else" in home
    client.force_login(somebody("ada", "approver"))
    assert client.get(reverse("waiting")).json() == {"waiting": 2}
    change, _ = place["rows"]
    assert reverse("change", args=[change.uid]) in client.get(reverse("home")).content.decode()


def test_ones_own_change_is_not_counted_where_a_second_person_is_needed(client, project):
    ada = somebody("ada", "approver")
    client.force_login(ada)
    project.change(requested_by=ada)
    assert client.get(reverse("waiting")).json() == {"waiting": 1}
    project.rule("exclude_author = true\n")
    assert client.get(reverse("waiting")).json() == {"waiting": 0}


def test_a_list_asks_the_database_as_often_for_many_as_for_few(client, project):
    client.force_login(somebody("person", "administrator"))
    counts = []
    for many in (1, 6):
        for _ in range(many):
            project.change(batch="abc")
        for place in ("/changes/", "/"):
            client.get(place)
            with CaptureQueriesContext(connection) as asked:
                client.get(place)
            counts.append(len(asked))
    assert counts[:2] == counts[2:]


@pytest.mark.parametrize(
    ("outcomes", "says"),
    [((), ""), (("passed",), "tests passed"), (("failed",), "tests not green"),
     (("passed", "timed_out"), "tests not green"), (("failed", "passed"), "tests passed"),
     (("not_run",), "tests not run")],
)  # fmt: skip
def test_a_list_says_how_the_last_tests_of_what_waits_ended(client, project, outcomes, says):
    client.force_login(somebody("person", "administrator"))
    change = project.change()
    for outcome in outcomes:
        project.tested(change, "make test", outcome)
    for place in ("/changes/", "/"):
        page = client.get(place).content.decode()
        found = [each for each in ("tests passed", "tests not green", "tests not run")
                 if each in page]  # fmt: skip
        assert found == ([says] if says else []), place
