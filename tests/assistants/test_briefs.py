"""Each text of a brief is kept when it is first read, and two of them are compared."""

from __future__ import annotations

import pytest
from django.urls import reverse

from assistants import arriving, briefs
from assistants.models import BriefVersion
from runs.refusal import Refusal
from tests.factories import make_assistant, make_run, make_wakeup
from tests.site.pages import EVIL, HIDING, SCRIPT, somebody

pytestmark = pytest.mark.django_db


@pytest.fixture
def place(tmp_path, settings):
    settings.SANDUK_HOME = tmp_path / "state"
    made = tmp_path / "daily"
    made.mkdir()
    (made / "assistant.toml").write_text('agent = "pi"\nprovider = "rehearsal"\n')
    (made / "brief.md").write_text("one\ntwo\nthree\n")
    return made


def texts() -> list[str]:
    return list(BriefVersion.objects.order_by("pk").values_list("text", flat=True))


def test_adding_keeps_it_once_and_again_when_it_says_something_else(place):
    added = arriving.add(place).assistant
    arriving.add(place)
    assert texts() == ["one\ntwo\nthree"]
    assert BriefVersion.objects.get().account

    (place / "brief.md").write_text("one\nfour\n")
    arriving.add(place)
    (place / "brief.md").write_text("one\ntwo\nthree\n")
    arriving.add(place)
    assert texts() == ["one\ntwo\nthree", "one\nfour", "one\ntwo\nthree"]
    assert [each.pk for each in briefs.history(added)] == sorted(
        BriefVersion.objects.values_list("pk", flat=True), reverse=True
    )


def test_a_file_that_is_refused_keeps_nothing(place):
    (place / "assistant.toml").write_text('agent = "no such"\n')
    with pytest.raises(Refusal):
        arriving.add(place)
    assert texts() == []


def test_only_so_many_are_kept_and_the_newest(monkeypatch):
    monkeypatch.setattr(briefs, "KEPT", 3)
    assistant, other = make_assistant(), make_assistant()
    briefs.keep(other, "other")
    for number in range(6):
        briefs.keep(assistant, f"text {number}")

    assert texts() == ["other", "text 3", "text 4", "text 5"]


def test_what_no_database_keeps_is_kept_as_a_mark():
    made = briefs.keep(make_assistant(), "a\0b")
    assert made is not None
    assert made.text == "a␀b"
    assert briefs.keep(made.assistant, "a\0b") is None


@pytest.fixture
def viewer(client):
    client.force_login(somebody("vera", "viewer"))
    return client


def shown(client, **words) -> str:
    answer = client.get(reverse("assistant-brief", args=["daily"]), words)
    assert answer.status_code == 200
    return answer.content.decode()


def test_the_page_shows_the_file_its_versions_and_what_is_different(viewer, place):
    assistant = arriving.add(place).assistant
    run = make_run(state="ended")
    (place / "brief.md").write_text("one\nfour\nthree\n")
    briefs.keep(
        assistant, "one\nfour\nthree", wakeup=make_wakeup(assistant, state="ended", run=run)
    )
    first, second = BriefVersion.objects.order_by("pk")

    page = shown(viewer)
    assert '<li class="sk-del">-two</li>' in page
    assert '<li class="sk-add">+four</li>' in page
    assert reverse("run", args=[run.uid]) in page
    assert "There is no earlier version" in shown(viewer, version=first.pk)
    backwards = shown(viewer, version=first.pk, since=second.pk)
    assert '<li class="sk-add">+two</li>' in backwards
    assert "Nothing." in shown(viewer, version=second.pk, since="now")


def test_the_assistants_page_says_that_it_was_changed_since_it_was_read(viewer, place):
    arriving.add(place)
    page = reverse("assistant", args=["daily"])
    assert "Changed since a wakeup last read it" not in viewer.get(page).content.decode()

    (place / "brief.md").write_text("something else\n")
    assert "Changed since a wakeup last read it" in viewer.get(page).content.decode()


@pytest.mark.parametrize("which", ["0", "-1", "x", "9" * 30, "²"])
def test_a_version_that_is_not_there_is_not_found(viewer, place, which):
    arriving.add(place)
    page = reverse("assistant-brief", args=["daily"])
    assert viewer.get(page, {"version": which}).status_code == 404
    assert viewer.get(page, {"version": "now", "since": which}).status_code == 404


def test_another_assistants_version_is_not_shown(viewer, place):
    arriving.add(place)
    other = briefs.keep(make_assistant("other"), "secret plan")
    answer = viewer.get(reverse("assistant-brief", args=["daily"]), {"version": other.pk})
    assert answer.status_code == 404


def test_hostile_words_in_it_are_text(viewer, place):
    assistant = arriving.add(place).assistant
    briefs.keep(assistant, EVIL)
    page = shown(viewer, version=BriefVersion.objects.latest("pk").pk)
    assert SCRIPT not in page
    assert not any(each in page for each in HIDING)


def test_a_brief_that_cannot_be_read_is_said_and_its_history_shown(viewer, place):
    arriving.add(place)
    (place / "brief.md").unlink()
    page = shown(viewer)
    assert "its brief brief.md is not there" in page
    assert "First read" in page
