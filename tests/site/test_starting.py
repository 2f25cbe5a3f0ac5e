"""Starting a run from a page: what is shown first, what starts then, what cannot be named."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from django.urls import reverse

from runs import tasks, work_roots
from runs.models import AuditEvent, Run
from runs.refusal import Refusal
from tests.accounts import ORDINARY
from tests.factories import make_run
from tests.site.pages import EVIL, HIDING, SCRIPT, somebody

pytestmark = pytest.mark.django_db


@pytest.fixture
def root(tmp_path: Path, settings) -> Path:
    settings.SANDUK_HOME = tmp_path / "home"
    settings.SANDUK_HOME.mkdir(mode=0o700)
    root = tmp_path / "root"
    (root / "app" / "deep").mkdir(parents=True)
    if os.geteuid() == 0:
        for place in (root / "app", root / "app" / "deep"):
            os.chown(place, ORDINARY, ORDINARY)  # no agent runs as root
    settings.SANDUK_WORK_ROOTS = [root]
    return root


@pytest.fixture
def olga():
    return somebody("olga", "operator")


@pytest.fixture
def client(client, olga):
    client.force_login(olga)
    return client


def filled(root: Path, **fields: str) -> dict[str, str]:
    usual = {"task": "count the files", "agent": "pi", "provider": "rehearsal", "recipe": "",
             "mode": "sealed", "place": str(root / "app"), "below": "", "model": "",
             "timeout": "10m", "budget": ""}  # fmt: skip
    return {**usual, **fields}


def look(client, form):
    return client.post(reverse("run-start"), {**form, "preview": "1"})


def begin(client, form, seen):
    return client.post(reverse("run-start"), {**form, "start": "1", "seen": seen})


def test_where_no_root_is_listed_the_page_says_how(client, settings):
    settings.SANDUK_WORK_ROOTS = []
    text = client.get(reverse("run-new")).content.decode()
    assert "SANDUK_WORK_ROOTS=/srv/work" in text
    assert "<textarea" not in text


def test_what_is_looked_at_says_the_exact_task_and_the_reach_and_starts_nothing(client, root):
    answer = look(client, filled(root))
    text = answer.content.decode()
    assert answer.status_code == 200
    assert "The relay to rehearsal and nothing else is in reach; the key stays" in text
    assert "count the files" in answer.context["task"]
    assert "REPORT.md" in answer.context["task"]
    assert str(root / "app") in text
    assert not Run.objects.exists()


def test_what_was_seen_is_queued_for_the_worker_and_says_who_asked(client, root, olga):
    form = filled(root, budget="2.5")
    seen = look(client, form).context["seen"]
    answer = begin(client, form, seen)
    run = Run.objects.get()
    assert answer["Location"] == reverse("run", args=[run.uid])
    assert (run.state, run.trigger, run.requested_by) == ("queued", "web", olga)
    assert (run.task, run.workspace, run.mode) == ("count the files", str(root / "app"), "sealed")
    assert (run.order["timeout_s"], run.order["budget_usd"]) == (600, 2.5)
    assert run.rung_at is not None
    assert AuditEvent.objects.get(action="run.start").actor == olga


@pytest.mark.parametrize("change", [{"task": "delete the files"}, {"mode": "key-safe"}])
def test_what_was_not_seen_is_shown_again_and_not_started(client, root, change):
    form = filled(root)
    seen = look(client, form).context["seen"]
    answer = begin(client, {**form, **change}, seen)
    assert answer.status_code == 409
    assert "not what the last page showed" in answer.content.decode()
    assert begin(client, form, "").status_code == 409
    assert not Run.objects.exists()


def test_a_new_directory_below_a_root_may_be_named(client, root):
    form = filled(root, place=str(root), below="new/one")
    assert look(client, form).status_code == 200
    if os.geteuid() == 0:
        assert not (root / "new").exists()  # looking makes nothing


@pytest.mark.parametrize(
    "fields",
    [
        {"place": "/etc"},
        {"place": "/"},
        {"place": "ROOT/app/.."},
        {"place": "ROOT", "below": ""},
        {"place": "ROOT", "below": "../outside"},
        {"place": "ROOT", "below": "app/../../outside"},
        {"place": "ROOT", "below": "/etc"},
        {"place": "ROOT", "below": "way-out"},
        {"place": "ROOT", "below": "way-out/more"},
        {"place": "ROOT", "below": "way-in"},
        {"place": "ROOT", "below": "a\nb"},
        {"mode": "open"},
        {"recipe": "/etc/recipe.json"},
        {"recipe": "link"},
        {"agent": "os:system"},
        {"provider": "elsewhere"},
        {"timeout": "900d"},
        {"budget": "-1"},
        {"task": " \n"},
    ],
)
def test_nothing_but_what_the_form_offers_can_be_named(client, root, fields, tmp_path):
    (tmp_path / "outside").mkdir()
    (root / "way-out").symlink_to(tmp_path / "outside")
    (root / "way-in").symlink_to(root / "app")
    given = {name: value.replace("ROOT", str(root)) for name, value in fields.items()}
    answer = begin(client, filled(root, **given), "x")
    assert answer.status_code == 409
    assert 'role="alert"' in answer.content.decode()
    assert not Run.objects.exists()


def test_fields_of_an_order_that_the_form_has_not_are_not_taken(client, root):
    form = filled(root, mounts="/etc:/data", env_names="HOME", image="evil", upstream="http://x",
                  workdir="/etc", within_roots="", allow_hosts="evil.example", hide="")  # fmt: skip
    begin(client, form, look(client, form).context["seen"])
    order = Run.objects.get().order
    assert order["workdir"] == str(root / "app")
    assert order["within_roots"] is True
    assert not any(order[n] for n in ("mounts", "env_names", "image", "upstream", "allow_hosts"))


def test_a_link_that_came_after_the_start_was_asked_is_refused_when_it_is_executed(
    client, root, tmp_path
):
    form = filled(root)
    begin(client, form, look(client, form).context["seen"])
    (tmp_path / "outside").mkdir()
    (root / "app" / "deep").rmdir()
    (root / "app").rmdir()
    (root / "app").symlink_to(tmp_path / "outside")
    run = Run.objects.get()
    assert tasks.execute(run.pk) == "refused"
    run.refresh_from_db()
    assert "SANDUK_WORK_ROOTS" in run.reason


def test_a_root_that_is_listed_no_more_is_refused_when_it_is_executed(client, root, settings):
    form = filled(root)
    begin(client, form, look(client, form).context["seen"])
    settings.SANDUK_WORK_ROOTS = []
    assert tasks.execute(Run.objects.get().pk) == "refused"


def test_an_earlier_run_fills_the_form_and_what_it_cannot_say_is_named(client, root):
    old = make_run(
        state="ended", task="look again", agent="pi", provider="rehearsal",
        order={"agent": "pi", "provider": "rehearsal", "workdir": str(root / "app" / "deep"),
               "mode": "open", "mounts": ["/srv:/data"], "timeout_s": 60},
    )  # fmt: skip
    answer = client.get(reverse("run-new"), {"from": old.uid})
    initial = answer.context["form"].initial
    assert (initial["place"], initial["below"]) == (str(root / "app"), "deep")
    assert (initial["task"], initial["timeout"], initial["mode"]) == ("look again", "60s", "sealed")
    assert answer.context["left_out"] == ["mounts", "mode"]
    assert "not take" in answer.content.decode().lower()
    elsewhere = make_run(state="ended", order={"workdir": "/etc"})
    answer = client.get(reverse("run-new"), {"from": elsewhere.uid})
    assert "place" not in answer.context["form"].initial
    assert "workdir" in answer.context["left_out"]
    assert client.get(reverse("run-new"), {"from": "nothing"}).status_code == 404


def test_hostile_text_of_an_earlier_run_is_shown_and_does_nothing(client, root):
    old = make_run(state="ended", task=EVIL, order={"workdir": str(root / "app"), "agent": EVIL})
    text = client.get(reverse("run-new"), {"from": old.uid}).content.decode()
    assert SCRIPT not in text
    shown = look(client, filled(root, task=EVIL, model=EVIL.replace("\x1b", "")[:200]))
    text = shown.content.decode().partition("What would be started")[2].partition("Change it")[0]
    assert SCRIPT not in text
    assert not any(each in text for each in HIDING)


def test_where_another_run_works_nothing_is_queued(client, root):
    make_run(state="running", workspace=str(root / "app"))
    form = filled(root)
    answer = begin(client, form, look(client, form).context["seen"])
    assert answer.status_code == 409
    assert "works in" in answer.content.decode()
    assert Run.objects.count() == 1


def test_offered_are_the_roots_and_the_directories_in_them(root, tmp_path):
    (root / ".hidden").mkdir()
    (root / "file").touch()
    (root / "link").symlink_to(tmp_path)
    assert list(work_roots.offered()) == [str(root), str(root / "app")]


def test_a_root_that_is_a_link_counts_as_where_it_leads(root, tmp_path, settings):
    (tmp_path / "way").symlink_to(root)
    settings.SANDUK_WORK_ROOTS = [tmp_path / "way", tmp_path / "gone"]
    assert work_roots.roots() == [root]
    work_roots.check(str(root / "app"))
    with pytest.raises(Refusal, match="link is on the way"):
        work_roots.check(str(tmp_path / "way" / "app"))


def given_to_root(*places: Path) -> None:
    for place in places:
        place.mkdir(exist_ok=True)
        os.chown(place, 0, 0)


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives a directory to root")


def chosen(client, **query: str) -> dict[str, str]:
    """What a browser would send of the form as it is opened."""
    form = client.get(reverse("run-new"), query).context["form"]
    values = {name: form[name].value() for name in form.fields}
    return {name: "" if value is None else value for name, value in values.items()}


def test_the_form_as_it_is_opened_can_be_started_when_a_task_is_typed(client, root):
    said = chosen(client)
    assert (said["place"], said["provider"]) == (str(root / "app"), "rehearsal")
    answer = look(client, said | {"task": "count"})
    assert answer.status_code == 200
    assert answer.context["seen"]


def test_also_where_a_root_holds_no_directory_yet(client, root, tmp_path, settings):
    (tmp_path / "bare").mkdir()
    settings.SANDUK_WORK_ROOTS = [tmp_path / "bare"]
    said = chosen(client)
    assert (said["place"], said["below"]) == (str(tmp_path / "bare"), "work")
    assert look(client, said | {"task": "count"}).status_code == 200


def test_a_root_itself_is_refused_at_the_field_that_names_a_directory_in_it(client, root):
    answer = look(client, filled(root, place=str(root), below=""))
    assert answer.status_code == 409
    assert answer.context["form"].errors == {
        "below": ["Name a directory in it: a root itself is given to no agent."]
    }
    with pytest.raises(Refusal, match="is itself a directory of SANDUK_WORK_ROOTS: name"):
        work_roots.check(str(root))


def test_the_usual_agent_and_provider_are_some_that_a_key_is_known_for(client, root, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-not-a-real-one")
    said = chosen(client)
    assert said["provider"] == "anthropic"
    answer = look(client, said | {"task": "count"})
    assert answer.context["lacking"] == ""
    assert answer.context["seen"]


def test_what_the_operator_named_as_usual_comes_first_while_its_key_is_known(
    client, root, monkeypatch, settings
):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-not-a-real-one")
    settings.SANDUK_AGENT, settings.SANDUK_PROVIDER = "pi", "openrouter"
    assert chosen(client)["provider"] != "openrouter"
    monkeypatch.setenv("OPENROUTER_API_KEY", "sk-not-a-real-one")
    said = chosen(client)
    assert (said["agent"], said["provider"]) == ("pi", "openrouter")


@pytest.mark.parametrize("provider", ["openai", ""])
def test_what_lacks_its_key_is_shown_with_a_warning_and_cannot_be_started(
    client, root, provider, monkeypatch
):
    form = filled(root, agent="codex", provider=provider)
    text = (answer := look(client, form)).content.decode()
    assert "The site knows no key for openai" in text
    assert "Start it" not in text
    assert answer.context["seen"] == ""
    assert begin(client, form, "").status_code == 409
    # nor with what was seen while there was one
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-a-real-one")
    seen = look(client, form).context["seen"]
    monkeypatch.delenv("OPENAI_API_KEY")
    assert begin(client, form, seen).status_code == 409
    assert not Run.objects.exists()


@needs_root
def test_what_belongs_to_root_is_not_offered_and_whom_to_ask_is_said(client, root):
    given_to_root(root / "theirs", root / "app" / "deep")
    answer = client.get(reverse("run-new"))
    places = [value for value, _ in answer.context["form"].fields["place"].choices]
    assert places == [str(root), str(root / "app")]
    assert str(root / "theirs") in answer.content.decode()
    assert "Who looks after this host can give them to an account" in answer.content.decode()
    answer = look(client, filled(root, below="deep"))
    assert answer.status_code == 409
    (said,) = answer.context["form"].errors["below"]
    assert "belongs to root" in said
    assert "Ask who looks after this host" in said
    assert "chown" not in said


@needs_root
def test_a_root_that_cannot_be_written_in_by_the_site_is_not_offered(client, root, monkeypatch):
    monkeypatch.setattr(os, "access", lambda place, _mode: Path(place) != root)
    monkeypatch.setattr(work_roots, "offered", lambda: iter([str(root)]))
    text = client.get(reverse("run-new")).content.decode()
    assert "No agent can work in the directories that are listed." in text
