"""Skills: read from a hostile tree, shown whole, approved by their text, one by one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.db import connection

from changes import skills
from changes.models import Skill
from runs import four_eyes
from runs.models import AuditEvent, Decision
from runs.refusal import Refusal
from runs.verdicts import Person
from tests.changes.rows import SOMEBODY, make_attempt, make_change, make_repository

pytestmark = pytest.mark.django_db

TEXT = "---\nname: tidy\ndescription: how to tidy\n---\nSweep first.\n"


@pytest.fixture(autouse=True)
def _one_secret_is_held(monkeypatch):
    monkeypatch.setattr("runs.secret_scan.held_secrets", lambda: ({"K": "held-secret-77"}, []))


@pytest.fixture
def clone(tmp_path) -> Path:
    (tmp_path / ".sanduk" / "skills").mkdir(parents=True)
    return tmp_path


def write(clone: Path, text: str | bytes = TEXT, name: str | bytes = "tidy.md") -> Path:
    file = os.fsencode(clone / ".sanduk" / "skills") + b"/" + os.fsencode(name)
    Path(os.fsdecode(file)).write_bytes(text.encode() if isinstance(text, str) else text)
    return Path(os.fsdecode(file))


def proposed(text: str = TEXT, repository=None, **fields) -> Skill:
    attempt = make_attempt(make_change(repository, **fields))
    head = skills._read(skills.own_files.OwnFile("x.md", text.encode()))
    (skill,) = skills.propose(attempt, [head])
    return skill


def test_a_skill_is_read_with_its_whole_text(clone):
    write(clone)

    assert skills.take(clone) == skills.Taken(
        (skills.Proposal("tidy", "how to tidy", TEXT),), refused=()
    )


def test_the_older_directory_is_read_too_and_a_name_is_taken_once(clone):
    write(clone)
    old = clone / ".sandkeep" / "skills"
    old.mkdir(parents=True)
    (old / "a.md").write_text(TEXT.replace("tidy", "Tidy"))
    (old / "b.md").write_text(TEXT.replace("tidy", "other"))

    found = skills.take(clone)

    assert [each.name for each in found.proposals] == ["tidy", "other"]
    assert found.refused == (("a.md", "there is another skill called Tidy"),)


@pytest.mark.parametrize(
    "text", ["\ufeff" + TEXT, TEXT.replace("\n", "\r\n"), TEXT.replace("tidy\nd", '"tidy"\nd')]
)
def test_other_ways_to_write_the_same_head_are_read(clone, text):
    write(clone, text)

    assert [each.name for each in skills.take(clone).proposals] == ["tidy"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Sweep.", "does not begin with"),
        ("---\nname: tidy\n", "does not begin with"),
        ("---\ndescription: x\n---\nSweep.", "name: is missing"),
        ("---\nname: ../../x\n---\nSweep.", "is no word"),
        ("---\nname: a/b\n---\nSweep.", "is no word"),
        ("---\nname: .x\n---\nSweep.", "is no word"),
        ("---\nname: tidy\n---\n \n", "says nothing"),
        (b"---\nname: tidy\n---\n\xff", "not UTF-8"),
        ("---\nname: tidy\n---\n\0", "is no text"),
        ("---\nname: tidy\n---\n" + "x" * skills.FILE_MAX, "larger than 64 KiB"),
    ],
)
def test_one_that_is_none_is_refused_and_spoils_no_other(clone, text, said):
    write(clone, text, "a.md")
    write(clone, TEXT.replace("tidy", "good"), "b.md")

    found = skills.take(clone)

    assert [each.name for each in found.proposals] == ["good"]
    assert [name for name, _why in found.refused] == ["a.md"]
    assert said in found.refused[0][1]


def test_nothing_is_read_through_a_link_or_from_a_pipe(clone, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside")
    (outside / "x.md").write_text(TEXT)
    (clone / ".sanduk/skills/link.md").symlink_to(outside / "x.md")
    os.mkfifo(clone / ".sanduk/skills/pipe.md")
    (clone / ".sanduk/skills/dir.md").mkdir()
    (clone / ".sandkeep").symlink_to(outside)

    found = skills.take(clone)

    assert found.proposals == ()
    assert {name for name, _why in found.refused} == {"link.md", "pipe.md", "dir.md"}


def test_a_linked_directory_is_not_entered(tmp_path, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside")
    (outside / "skills").mkdir()
    (outside / "skills" / "x.md").write_text(TEXT)
    (tmp_path / ".sanduk").symlink_to(outside)

    assert skills.take(tmp_path) == skills.Taken((), ())


def test_more_than_anybody_reads_are_refused(clone, monkeypatch):
    monkeypatch.setattr(skills, "COUNT_MAX", 2)
    monkeypatch.setattr(skills.own_files, "ENTRIES_MAX", 3)
    for number in range(5):
        write(clone, TEXT.replace("tidy", f"s{number}"), f"{number}.md")

    found = skills.take(clone)

    assert len(found.proposals) == 2
    assert [why for _name, why in found.refused] == [
        "there are more than 2",
        "more than 3 names: the rest was not read",
    ]


def test_a_hostile_name_is_told_printably(clone):
    write(clone, TEXT, b"x\x1b[2J\xff.txt")

    assert skills.take(clone).refused[0][0] == "x\\x1b[2J\\xff.txt"


def test_a_proposal_is_given_to_nobody_until_it_is_approved(tmp_path):
    skill = proposed()
    assert skills.write_into(tmp_path, skill.repository) == []

    skills.approve(skill.pk, SOMEBODY, expect=skill.sha256[:12])

    assert skills.write_into(tmp_path, skill.repository) == ["tidy"]
    assert (tmp_path / "tidy" / "SKILL.md").read_bytes() == TEXT.encode()
    assert Decision.objects.get(subject=f"skill:{skill.pk}").digest == skill.sha256
    assert AuditEvent.objects.get(action="skill.approve").detail["version"] == 1


def test_a_new_text_is_a_new_version_that_replaces_the_old_when_it_is_approved(tmp_path):
    first = proposed()
    skills.approve(first.pk, SOMEBODY)
    second = proposed(TEXT + "Then mop.\n", first.repository)

    assert (second.version, second.state) == (2, "proposed")
    assert "+Then mop." in skills.compared(second).splitlines()
    assert " Sweep first." in skills.compared(second).splitlines()
    skills.write_into(tmp_path, first.repository)
    assert "mop" not in (tmp_path / "tidy" / "SKILL.md").read_text()
    skills.approve(second.pk, SOMEBODY)
    first.refresh_from_db()
    assert first.state == "replaced"
    assert list(Skill.objects.in_force(first.repository)) == [second]


def test_a_first_version_is_compared_with_nothing():
    assert "+Sweep first." in skills.compared(proposed()).splitlines()


def test_what_is_in_force_is_not_proposed_again():
    first = proposed()
    skills.approve(first.pk, SOMEBODY)
    attempt = make_attempt(make_change(first.repository))

    assert skills.propose(attempt, [skills.Proposal("tidy", "", TEXT)]) == []


def test_skills_of_another_repository_are_not_given(tmp_path):
    skills.approve(proposed().pk, SOMEBODY)

    assert skills.write_into(tmp_path, make_repository()) == []


def test_a_decision_is_on_the_text_that_was_read_and_final():
    skill = proposed()

    with pytest.raises(Refusal, match="read it again"):
        skills.approve(skill.pk, SOMEBODY, expect="0" * 64)
    skills.reject(skill.pk, SOMEBODY, reason="no")
    with pytest.raises(Refusal, match="is rejected by anna"):
        skills.approve(skill.pk, SOMEBODY)
    with pytest.raises(Refusal, match="is rejected by anna"):
        skills.revoke(skill.pk, SOMEBODY, reason="x")


def test_a_revoked_skill_is_given_to_nobody_and_brings_no_older_one_back(tmp_path):
    first = proposed()
    skills.approve(first.pk, SOMEBODY)
    second = proposed(TEXT + "x\n", first.repository)
    skills.approve(second.pk, SOMEBODY)

    with pytest.raises(Refusal, match="--reason"):
        skills.revoke(second.pk, SOMEBODY, reason="")
    skills.revoke(second.pk, SOMEBODY, reason="it was wrong")

    assert skills.write_into(tmp_path, first.repository) == []
    assert AuditEvent.objects.get(action="skill.revoke").detail["reason"] == "it was wrong"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("use held-secret-77", "a secret of this host, K"),
        ("run\u200b it", "nobody sees"),
        ("curl https://x:9f8e7d6c@example.net", "an address with a password"),
    ],
)
def test_what_stands_out_in_a_text_needs_a_reason(line, said):
    skill = proposed(f"{TEXT}{line}\n")

    assert any(said in each for each in skill.found)
    assert skill.found[0].startswith("line 6: ")
    with pytest.raises(Refusal, match="--reason"):
        skills.approve(skill.pk, SOMEBODY)
    skills.approve(skill.pk, SOMEBODY, reason="I looked")


def test_where_two_have_to_look_who_asked_does_not_approve(settings):
    settings.SANDUK_FOUR_EYES = True
    assert four_eyes.is_on()
    anna, ben = (Person(user=User.objects.create_user(name)) for name in ("anna", "ben"))
    skill = proposed(requested_by=anna.user)

    with pytest.raises(Refusal, match="a second person"):
        skills.approve(skill.pk, anna)
    assert skills.approve(skill.pk, ben).state == "approved"


def test_a_row_that_was_altered_is_neither_approved_nor_given(tmp_path):
    skill, other = proposed(), proposed()
    skills.approve(other.pk, SOMEBODY)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE changes_skill SET body = 'evil'")

    with pytest.raises(Refusal, match="digest does not fit"):
        skills.approve(skill.pk, SOMEBODY)
    with pytest.raises(Refusal, match="not what was approved"):
        skills.write_into(tmp_path, other.repository)
