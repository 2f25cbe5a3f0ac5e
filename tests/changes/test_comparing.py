"""What a later attempt does otherwise than an earlier one: at a terminal and on its page."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from django.urls import reverse

from changes import comparing, showing
from changes.git import GitError
from changes.models import Change
from runs.refusal import Refusal
from tests.changes.rows import LEASE_S, OWNER, Project, make_attempt, reviewed
from tests.site.pages import EVIL, HIDING, SCRIPT, somebody

pytestmark = pytest.mark.django_db
FIRST = {
    "same.py": "a = 1\n", "otherwise.py": "x = 1\ny = 2\n", "dropped.py": "gone = 1\n",
    "README.md": "hello\nworld\n",
}  # fmt: skip
SECOND = {
    "same.py": "a = 1\n", "otherwise.py": "x = 1\ny = 3\n", "README.md": "hello\n",
    "added.py": "new = 1\n",
}  # fmt: skip


def revised(project: Project, change: Change, files: dict[str, str]) -> Change:
    assert Change.objects.claim(change.pk, OWNER, LEASE_S, revision=True)
    project.attempt(change, files)
    change.refresh_from_db()
    return change


@pytest.fixture
def twice(project: Project) -> Change:
    """A change with two attempts: of four files, one stays as it was."""
    return revised(project, project.change(FIRST), SECOND)


@pytest.fixture
def client(client):
    client.force_login(somebody("ada", "operator", "approver"))
    return client


def page_of(client, change: Change, later: int = 2, earlier: int = 1, **query: str) -> str:
    answer = client.get(reverse("change-since", args=[change.uid, later, earlier]), query)
    assert answer.status_code == 200
    said: str = answer.content.decode()
    return said


# -- at a terminal --------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "words", [("--attempt", "1", "--against", "2"), ("--against", "1"),
              ("--attempt", "2", "--against", "1")],
)  # fmt: skip
def test_the_patch_leads_from_the_earlier_attempt_to_the_later_one(sanduk, twice, words):
    said = sanduk("diff", twice.uid, *words)

    assert said.code == 0
    assert f"from attempt 1 to attempt 2 of change {twice.uid}" in said.err
    assert "-y = 2\n+y = 3\n" in said.out
    assert "+new = 1\n" in said.out
    assert "-gone = 1\n" in said.out
    assert "-world\n" in said.out
    assert "same.py" not in said.out


def test_it_is_the_exact_bytes_that_git_applies_to_the_earlier_result(
    sanduk, twice, tmp_path: Path
):
    patch = sanduk("diff", twice.uid, "--against", "1").out
    place = tmp_path / "there"
    place.mkdir()
    for name, text in FIRST.items():
        (place / name).write_text(text)

    subprocess.run(["git", "apply"], cwd=place, input=patch.encode(), check=True, timeout=30)

    assert {each.name: each.read_text() for each in place.iterdir()} == SECOND


def test_files_and_paths_are_of_the_comparison(sanduk, twice):
    files = sanduk("diff", twice.uid, "--against", "1", "--files", "--json").data

    assert {(each["path"], each["kind"]) for each in files} == {
        ("otherwise.py", "modified"), ("dropped.py", "deleted"), ("README.md", "modified"),
        ("added.py", "added"),
    }  # fmt: skip
    said = sanduk("diff", twice.uid, "--against", "1", "--path", "added.py")
    assert "+new = 1" in said.out
    assert "y = 3" not in said.out


def test_what_cannot_be_compared_is_refused_in_words(sanduk, twice, project: Project):
    for words, why in (
        (("--against", "2"), "attempt 2 differs from itself in nothing"),
        (("--attempt", "1", "--against", "1"), "attempt 1 differs from itself in nothing"),
        (("--against", "3"), "has no attempt 3; it has 2"),
    ):
        said = sanduk("diff", twice.uid, *words)
        assert (said.code, said.out) == (2, ""), words
        assert why in said.err
    other = project.change({"x.py": "1\n"})
    with pytest.raises(Refusal, match="no attempts of one change"):
        comparing.earlier_first(twice.attempt, other.attempt)
    moved = reviewed()
    later = make_attempt(moved, base_commit="9" * 40)
    with pytest.raises(Refusal, match="on one base"):
        comparing.earlier_first(moved.attempt, later)


def test_what_to_do_next_names_the_comparison_for_a_later_attempt_alone(sanduk, twice, project):
    assert f"change diff {twice.uid} --against 1" in sanduk("show", twice.uid).out
    once = project.change({"x.py": "1\n"})
    assert "--against" not in sanduk("show", once.uid).out


# -- on a page ------------------------------------------------------------------------------------
def test_the_page_shows_the_files_and_lines_that_differ_and_what_became_of_each(client, twice):
    page = page_of(client, twice)

    for path, words in (
        ("otherwise.py", "changed otherwise"), ("dropped.py", "no longer changed"),
        ("README.md", "no longer changed"), ("added.py", "not changed before"),
    ):  # fmt: skip
        row = page.partition(f'data-path="{path}"')[2].partition("</summary>")[0]
        assert f"<span>{words}</span>" in row, path
    assert "y = <" in page
    assert 'data-path="same.py"' not in page
    assert "4 files differ" in page
    assert "1 more file of attempt 2: exactly as in attempt 1" in page
    assert page_of(client, twice, view="split").count("sk-split") == 4


def test_nothing_can_be_decided_where_a_part_is_shown(client, twice):
    page = page_of(client, twice)

    assert "This is not what lands" in page
    assert reverse("change-decide", args=[twice.uid]) not in page
    assert twice.attempt.digest not in page
    assert f'href="{reverse("change", args=[twice.uid])}"' in page


def test_the_changes_page_leads_to_what_is_new_since_each_earlier_attempt(
    client, twice, project: Project
):
    revised(project, twice, SECOND | {"third.py": "3\n"})
    place = reverse("change", args=[twice.uid])

    page = client.get(place).content.decode()
    for earlier in (1, 2):
        assert reverse("change-since", args=[twice.uid, 3, earlier]) in page
    assert f'data-change="{twice.uid}" data-attempt="3"' in page
    first = client.get(place, {"attempt": "1"}).content.decode()
    assert "/since/" not in first
    second = client.get(place, {"attempt": "2"}).content.decode()
    assert reverse("change-since", args=[twice.uid, 2, 1]) in second
    assert reverse("change-since", args=[twice.uid, 2, 2]) not in second
    assert (
        "/since/" not in client.get(reverse("change", args=[project.change().uid])).content.decode()
    )


def marks(page: str) -> dict[str, str]:
    """The marks of what was viewed, by path."""
    found = page.split('data-mark="')[1:]
    return {each.partition('data-path="')[2].partition('"')[0]: each[:16] for each in found}


def test_a_mark_of_what_was_viewed_holds_for_what_did_not_change_since_and_for_that_alone(
    client, twice
):
    place = reverse("change", args=[twice.uid])
    first = marks(client.get(place, {"attempt": "1"}).content.decode())
    second = marks(client.get(place).content.decode())
    new = marks(page_of(client, twice))

    assert first["same.py"] == second["same.py"]
    assert first["otherwise.py"] != second["otherwise.py"]
    # what was read beside the earlier attempt is read of the whole
    assert new["otherwise.py"] == second["otherwise.py"]
    assert new["added.py"] == second["added.py"]
    assert new["dropped.py"] not in {*first.values(), *second.values()}


def test_flags_of_the_later_attempt_stand_at_the_lines_that_differ(client, project: Project):
    change = project.change({"run.py": "x = 1\n"})
    revised(project, change, {"run.py": "x = 1\nkey = 'held-secret-77'\n"})

    page = page_of(client, change)

    assert change.attempt.flags.filter(category="secret").exists()
    row = page.partition('data-path="run.py"')[2]
    assert "sk-flagged" in row


def test_an_attempt_that_took_everything_back_to_an_earlier_one_differs_in_nothing(
    client, sanduk, twice, project: Project
):
    revised(project, twice, FIRST)

    assert "Nothing differs" in page_of(client, twice, later=3, earlier=1)
    said = sanduk("diff", twice.uid, "--against", "1")
    assert (said.code, said.out) == (0, "")


@pytest.mark.parametrize(("later", "earlier"), [(1, 2), (2, 2), (3, 1), (2, 0)])
def test_what_is_no_earlier_attempt_is_not_found(client, twice, later, earlier):
    for name, more in (("change-since", ()), ("change-since-file", (1,))):
        place = reverse(name, args=[twice.uid, later, earlier, *more])
        assert client.get(place).status_code == 404


def test_a_file_has_a_page_of_its_own_with_all_its_lines(client, project: Project):
    before = "".join(f"line = {n}\n" for n in range(50))
    change = project.change({"long.py": before})
    revised(project, change, {"long.py": before.replace("line = 25\n", "line = 'other'\n")})
    place = reverse("change-since-file", args=[change.uid, 2, 1, 1])

    assert f'href="{place}"' in page_of(client, change)
    page = client.get(place).content.decode()
    assert "since attempt 1" in page
    assert 'id="f1-R26"' in page
    assert 'id="f1-R1"' not in page
    assert 'id="f1-R1"' in client.get(place, {"lines": "all"}).content.decode()
    assert client.get(reverse("change-since-file", args=[change.uid, 2, 1, 2])).status_code == 404


def test_many_files_come_in_parts(client, project: Project, monkeypatch):
    monkeypatch.setattr(showing, "FILES", 3)
    change = project.change({f"{n}.py": "1\n" for n in range(7)})
    revised(project, change, {f"{n}.py": "2\n" for n in range(7)})

    first, last = page_of(client, change), page_of(client, change, part="3")

    assert "7 files differ" in first
    assert "part=2#diff" in first
    assert 'rel="prev"' not in first
    assert 'id="f7"' in last
    assert 'rel="next"' not in last
    assert 'id="f7"' in page_of(client, change, part="99")


def test_hostile_names_and_lines_are_text(client, project: Project):
    name = f"a/{EVIL[:60].replace('/', '_')}\n.py"
    change = project.change({name: "x = 1\n"})
    revised(project, change, {name: f"{EVIL}\n", "\u202egpj.exe": "1\n"})

    for page in (
        page_of(client, change),
        client.get(reverse("change-since-file", args=[change.uid, 2, 1, 1])).content.decode(),
    ):
        assert SCRIPT not in page
        assert not any(mark in page for mark in HIDING)


def test_what_cannot_be_read_any_more_is_one_sentence(client, twice, monkeypatch):
    def gone(*_):
        raise GitError("the object is gone")

    monkeypatch.setattr(comparing, "compared", gone)

    assert "cannot be read: the object is gone" in page_of(client, twice)
    place = reverse("change-since-file", args=[twice.uid, 2, 1, 1])
    assert "cannot be read: the object is gone" in client.get(place).content.decode()


def test_of_a_series_it_is_said_that_only_what_it_comes_to_is_compared(client, twice):
    last = twice.attempt
    based = {"base_commit": last.base_commit, "base_tree": last.base_tree, "tree": last.tree}
    make_attempt(twice, commits=[{}, {}], **based)

    assert "It comes as 2 commits" in page_of(client, twice, later=3)
    assert "It comes as" not in page_of(client, twice)
