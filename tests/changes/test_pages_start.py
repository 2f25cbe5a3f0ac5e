"""Asking for a change on the web: below the operator's roots alone, and only as it was shown."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.urls import reverse

from changes.models import Change
from tests.changes.rows import make_git, run_git
from tests.site.pages import somebody

pytestmark = pytest.mark.django_db


@pytest.fixture
def root(tmp_path, settings) -> Path:
    place = tmp_path / "work"
    make_git(place / "shop")
    settings.SANDUK_WORK_ROOTS = [place]
    return place


@pytest.fixture
def client(client, monkeypatch, tmp_path, project):
    client.force_login(somebody("olga", "operator"))
    return client


def form(place: Path, **fields: str) -> dict[str, str]:
    return {
        "task": "tidy up", "agent": "pi", "provider": "rehearsal", "recipe": "", "mode": "sealed",
        "place": str(place), "below": "", "base": "", "model": "", "timeout": "15m", "budget": "",
        **fields,
    }  # fmt: skip


def post(client, place: Path, **fields: str):
    return client.post(reverse("change-start"), form(place, **fields))


def test_it_is_shown_first_and_asked_for_as_it_was_shown(client, root, monkeypatch):
    rung = []
    monkeypatch.setattr("changes.handover.wait_for_worker", rung.append)
    answer = post(client, root / "shop")
    assert answer.status_code == 200, answer.content.decode()
    page = answer.content.decode()
    assert "What would be asked for" in page
    assert not Change.objects.exists()
    seen = answer.context["seen"]

    assert post(client, root / "shop", seen=seen, start="1", task="more").status_code == 409
    assert not Change.objects.exists()

    answer = post(client, root / "shop", seen=seen, start="1")
    change = Change.objects.get()
    assert answer["Location"] == reverse("change", args=[change.uid])
    assert (change.state, change.task, change.requested_by.username) == (
        "queued", "tidy up", "olga",
    )  # fmt: skip
    assert change.repository.path == str(root / "shop")
    assert rung == [change.uid]


def test_no_repository_elsewhere_can_be_named(client, root, tmp_path):
    secret = make_git(tmp_path / "secret")
    (root / "link").symlink_to(secret)
    (root / "file").mkdir()
    (root / "file" / ".git").write_text(f"gitdir: {secret / '.git'}\n")
    make_git(root / "moved")
    run_git(root / "moved", "config", "core.worktree", str(secret))
    (root / "shared").mkdir()
    run_git(secret, "worktree", "add", "-q", str(root / "shared" / "tree"))
    (root / "plain").mkdir()
    for place, below in (
        (secret, ""), (root, "../secret"), (root, "link"), (root, "file"), (root, "moved"),
        (root, "shared/tree"), (root, ""), (root, "plain"), (root / "shop", ".git"),
    ):  # fmt: skip
        answer = post(client, place, below=below)
        assert answer.status_code == 409, (place, below)
    assert not Change.objects.exists()


def test_a_root_that_is_a_repository_itself_is_none_of_the_webs(client, root):
    make_git(root / "inner" / "one")
    run_git(root, "init", "-q")
    (root / "sub").mkdir()
    assert post(client, root / "sub").status_code == 409


@pytest.mark.parametrize(
    "fields",
    [{"base": "--upload-pack=x"}, {"base": "nowhere"}, {"base": "a\x00b"}, {"mode": "open"},
     {"agent": "nobody"}, {"task": " "}, {"recipe": "/etc/passwd"}],
)  # fmt: skip
def test_what_cannot_be_is_refused_before_there_is_a_row(client, root, fields):
    seen = post(client, root / "shop", **fields)
    if seen.status_code == 200:  # the base is looked at when it is asked for
        fields = {**fields, "seen": seen.context["seen"], "start": "1"}
        assert post(client, root / "shop", **fields).status_code == 409
    assert not Change.objects.exists()


def test_without_roots_the_page_says_how_to_list_some(client, settings):
    settings.SANDUK_WORK_ROOTS = []
    assert "SANDUK_WORK_ROOTS" in client.get(reverse("change-new")).content.decode()


def test_the_page_offers_no_field_for_a_command_or_a_mount(client, root):
    page = client.get(reverse("change-new")).content.decode()
    for word in ("command", "mount", "env", "allow_hosts", "upstream"):
        assert f'name="{word}"' not in page
