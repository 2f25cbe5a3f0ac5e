"""Assistants arrive, change, sleep and leave."""

from __future__ import annotations

import datetime as dt
import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.contrib.auth.models import User
from django.db import connection

from assistants import arriving
from assistants.models import Assistant, Destination, Schedule, Wakeup
from runs import clock
from runs.models import AuditEvent
from runs.refusal import Refusal
from tests.assistants.arriving.conftest import HOLDING
from tests.factories import make_wakeup

pytestmark = pytest.mark.django_db


def actions() -> list[str]:
    return list(AuditEvent.objects.order_by("pk").values_list("action", flat=True))


def test_it_arrives_with_a_first_wakeup_planned(directory):
    added = arriving.add(directory("daily", 'every = "2h"'))

    schedule = added.assistant.schedules.get()
    assert (added.created, added.assistant.name) == (True, "daily")
    assert schedule.next_at == schedule.anchor_at + dt.timedelta(hours=2)
    assert actions() == ["assistant.add"]


def test_adding_it_again_changes_nothing_and_keeps_its_place_in_the_schedule(directory):
    place = directory()
    first = arriving.add(place)
    before = list(Schedule.objects.values())
    Assistant.objects.filter(pk=first.assistant.pk).update(failures=2)

    again = arriving.add(place)

    assert (again.created, again.changed) == (False, ())
    assert again.assistant.pk == first.assistant.pk
    assert list(Schedule.objects.values()) == before
    assert Assistant.objects.get().failures == 2
    assert actions() == ["assistant.add"]


def test_a_changed_file_is_taken_in_and_said_by_its_keys(directory):
    arriving.add(directory("daily", 'timeout = "1m"'))
    again = arriving.add(directory("daily", 'timeout = "2m"\nevery = "1h"'))

    assert again.changed == ("timeout", "schedule")
    assert Assistant.objects.get().config["timeout_s"] == 120
    assert actions() == ["assistant.add", "assistant.change"]


def test_s8_another_directory_with_a_name_that_is_taken_is_refused(directory):
    arriving.add(directory("one", 'name = "daily"'))

    with pytest.raises(Refusal, match=r"taken by .*/one; .*sanduk assistant remove daily"):
        arriving.add(directory("two", 'name = "daily"'))
    assert Assistant.objects.get().directory.endswith("/one")


def test_s8_a_new_name_in_the_same_directory_is_the_same_assistant(directory):
    first = arriving.add(directory("one", 'name = "daily"'))
    again = arriving.add(directory("one", 'name = "nightly"'))

    assert again.assistant.pk == first.assistant.pk
    assert again.changed == ("name (it was daily)",)
    assert Assistant.objects.get().name == "nightly"


def test_a_link_to_its_directory_is_its_directory(directory, tmp_path):
    first = arriving.add(arriving.place(str(directory())))
    (tmp_path / "link").symlink_to(tmp_path / "daily")

    again = arriving.add(arriving.place(str(tmp_path / "link")))
    assert again.assistant.pk == first.assistant.pk


@pytest.mark.parametrize(
    ("toml", "said"),
    [
        ('agent = "nobody"', "nobody"),
        ('agent = "pi"\nprovider = "nobody"', "no provider 'nobody'"),
        ('agent = "claude"\nprovider = "rehearsal"\nruntime = "xen"', "xen"),
        (HOLDING + 'mode = "open"', "rehearsal model lives in the relay"),
        (HOLDING + 'mounts = ["nowhere:/data"]', "there is no directory"),
        (HOLDING + 'mounts = [".:/work"]', "workspace"),
        (HOLDING + 'allow_hosts = ["http://x"]', "x"),
        (HOLDING + 'recipe = "./none.json"', "none.json"),
        (HOLDING + 'brief = "none.md"', "none.md is not there"),
        (HOLDING + 'gate = "brief.md"', "is no program; chmod"),
        (HOLDING + 'gate = "none.sh"', "is no program"),
        (HOLDING + 'destinations = ["mail"]', "no destination 'mail'"),
        (HOLDING + 'args = ["--memory", "huge"]', "huge"),
    ],
)
def test_s9_what_could_not_run_is_refused_when_it_arrives(directory, toml, said):
    with pytest.raises(Refusal, match=said) as refused:
        arriving.add(directory(toml=toml))

    assert "\n" not in str(refused.value)
    assert not Assistant.objects.exists()


@pytest.mark.parametrize(
    ("toml", "said"),
    [
        ('destinations = ["nope"]', "line 1: destinations: there is no destination 'nope'"),
        ('allow_hosts = ["*"]', "line 1: allow_hosts: "),
        ('mounts = ["none:/x"]', "line 1: mounts: "),
        ('mounts = [".:/work"]', "line 1: mounts: "),
        ('brief = "none.md"', "line 1: brief: its brief none.md is not there"),
        ('gate = "none.sh"', "line 1: gate: its gate "),
        ('recipe = "./none.json"', "line 1: recipe: "),
        ('recipe = "/etc"', "line 1: recipe: /etc: this is a directory"),
        ('recipe = "none"', "line 1: recipe: none: there is none"),
        ('runtime = "xen"', "line 1: runtime: no engine is called xen"),
        ('args = ["--kit", "none"]', "line 1: args: kit none: "),
        ('args = ["--runtime", "xen"]', "line 1: args: no engine is called xen"),
        ("budget = 0.0000001", "line 1: budget: it takes US dollars above 0"),
    ],
)
def test_what_could_not_run_is_told_by_line_and_key_and_by_no_flag_nobody_wrote(
    directory, toml, said
):
    with pytest.raises(Refusal) as refused:
        arriving.add(directory(toml=f"{toml}\n{HOLDING}", more="").resolve())

    assert said.replace("line 1", "line 2") in str(refused.value)
    assert "--" not in str(refused.value)


@pytest.mark.parametrize(
    ("toml", "said"),
    [
        ('agent = "nobody"', "line 2: agent: no agent is called 'nobody'"),
        ('agent = "pi"\nprovider = "nobody"', "line 3: provider: there is no provider 'nobody'"),
        ('agent = "pi"\nprovider = "gemini"', "line 3: provider: "),
    ],
)
def test_an_agent_or_a_provider_that_is_not_there_is_told_at_its_key(directory, toml, said):
    with pytest.raises(Refusal, match=said) as refused:
        arriving.add(directory(toml=toml, more=""))

    assert "scripted" not in str(refused.value)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--memory", "1b"], "--memory 1b is 1 bytes"),
        (["--no-network"], "--no-network has no relay, which contradicts mode sealed"),
        (["--upstream=x"], "--upstream means nothing with the rehearsal model"),
        (
            ["--env", "NOT_SET_ANYWHERE"],
            "--env NOT_SET_ANYWHERE: there is no such variable here, and a wakeup has its",
        ),
    ],
)
def test_what_is_wrong_in_args_is_told_at_its_line(directory, words, said):
    with pytest.raises(Refusal) as refused:
        arriving.add(directory(toml=f"{HOLDING}args = {json.dumps(words)}", more=""))

    assert f"line 6: args: {said}" in str(refused.value)


def test_a_variable_taken_from_the_environment_is_said_to_be_the_workers(directory, monkeypatch):
    monkeypatch.setenv("SET_HERE", "1")

    added = arriving.add(directory(toml=HOLDING + 'args = ["--env", "SET_HERE"]'))

    assert [note for note in added.notes if "the worker's own SET_HERE" in note]


def test_a_flag_that_is_in_args_is_named_as_it_is_written(directory):
    with pytest.raises(Refusal, match=r"--mount .*none:/x: there is no directory"):
        arriving.add(directory(toml=HOLDING + 'args = ["--mount", "none:/x"]'))


def test_a_workspace_that_root_owns_is_the_last_thing_that_is_told(directory, monkeypatch):
    place = directory(toml=HOLDING + 'mounts = ["none:/x"]')
    (place / "workspace").mkdir()

    with pytest.raises(Refusal, match="mounts"):
        arriving.add(place)
    directory(toml=HOLDING + 'destinations = ["none"]')
    with pytest.raises(Refusal, match="destinations"):
        arriving.add(place)


def test_s2_args_that_run_does_not_know_are_refused_and_end_no_process(directory):
    with pytest.raises(Refusal, match=r"line .*: args: .*--nope"):
        arriving.add(directory("daily", 'args = ["--nope"]'))


def test_an_old_file_with_old_keys_arrives(directory, tmp_path):
    (tmp_path / "data").mkdir()
    place = directory(
        "reader",
        toml='agent = "claude"\nprovider = "anthropic"\nevery = "30m"\ntimeout = 900\n'
        'mounts = ["../data:/data:ro"]\nargs = ["--effort", "low", "--budget", "0.5"]\n'
        "proxy = true\nmax_failures = 3\napproval = false\n",
    )
    added = arriving.add(place)

    assert added.assistant.config["hold"] is False
    assert added.assistant.config["budget_usd"] == 0.5
    told = "\n".join(added.notes)
    for word in ("--budget in args", "proxy is an old key", "without approval", "unreviewed"):
        assert word in told


def test_a_key_that_is_missing_is_told_and_does_not_keep_it_out(directory, monkeypatch):
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_API_KEY_FILE"):
        monkeypatch.delenv(name, raising=False)
    added = arriving.add(directory(toml='agent = "claude"\nprovider = "anthropic"'))

    assert any("ANTHROPIC_API_KEY" in note for note in added.notes)


@pytest.mark.django_db(transaction=True)
def test_added_by_several_commands_at_once_it_is_there_once(directory):
    place = directory()

    def add(_: int) -> bool:
        try:
            return arriving.add(place).created
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        created = list(pool.map(add, range(4)))
    assert sum(created) == 1
    assert (Assistant.objects.count(), Schedule.objects.count()) == (1, 1)


def test_settings_of_another_version_are_refused_with_what_to_do(directory):
    place = directory()
    assistant = arriving.add(place).assistant
    assistant.config = {**assistant.config, "colour": "blue"}

    with pytest.raises(Refusal, match=r"another version .*sanduk assistant add"):
        arriving.exported(assistant)


def test_a_changed_schedule_starts_anew_and_what_waited_for_the_old_one_does_not_run(directory):
    added = arriving.add(directory("daily", 'every = "1h"'))
    waiting = make_wakeup(added.assistant, schedule=added.assistant.schedules.get())
    arriving.add(directory("daily", 'cron = "0 6 * * *"'))

    waiting.refresh_from_db()
    assert [each.cron for each in Schedule.objects.all()] == ["0 6 * * *"]
    assert (waiting.outcome, waiting.schedule) == ("cancelled", None)
    assert "schedule" in waiting.reason


def test_of_several_schedules_those_that_stay_keep_their_rows(directory):
    two = '[[schedules]]\nevery = "1h"\n[[schedules]]\ncron = "0 6 * * *"\n'
    arriving.add(directory(toml=HOLDING + two))
    kept = Schedule.objects.get(every_s=3600)
    arriving.add(directory(toml=HOLDING + two.replace("0 6", "0 7")))

    assert {each.cron for each in Schedule.objects.all()} == {"", "0 7 * * *"}
    assert Schedule.objects.get(every_s=3600).pk == kept.pk


def test_destinations_are_those_of_the_file(directory):
    for name in ("mail", "log"):
        Destination.objects.create(name=name, kind="file")
    arriving.add(directory("daily", 'destinations = ["mail", "log"]'))
    again = arriving.add(directory("daily", 'destinations = ["log"]'))

    assert again.changed == ("destinations",)
    assert [each.name for each in again.assistant.destinations.all()] == ["log"]


def test_destinations_given_on_the_host_stay_where_the_file_says_nothing_about_them(directory):
    place = directory("daily", 'timeout = "1m"')
    assistant = arriving.add(place).assistant
    assistant.destinations.add(Destination.objects.create(name="log", kind="file"))
    again = arriving.add(directory("daily", 'timeout = "2m"'))

    assert again.changed == ("timeout",)
    assert [each.name for each in assistant.destinations.all()] == ["log"]
    assert 'destinations = ["log"]' in arriving.exported(assistant)
    assert arriving.add(directory("daily", "destinations = []")).changed == (
        "timeout", "destinations"
    )  # fmt: skip


def test_enabling_goes_on_from_now_and_counts_nothing_as_missed(directory, monkeypatch):
    assistant = arriving.add(directory("daily", 'every = "1h"')).assistant
    assert arriving.disable(assistant, "on holiday")
    assert not arriving.disable(assistant, "again")
    later = clock.now() + dt.timedelta(days=10)
    monkeypatch.setattr(clock, "now", lambda: later)

    assert arriving.enable(assistant)
    assert not arriving.enable(assistant)
    due = assistant.schedules.get().next_at
    assert later < due <= later + dt.timedelta(hours=1)
    assert actions() == ["assistant.add", "assistant.disable", "assistant.enable"]


def test_disabling_calls_off_what_waits(directory):
    assistant = arriving.add(directory()).assistant
    waiting = make_wakeup(assistant)
    arriving.disable(assistant, "on holiday")

    waiting.refresh_from_db()
    assert (waiting.outcome, waiting.reason) == ("cancelled", "disabled: on holiday")


def test_a_removed_one_is_woken_no_more_and_frees_name_and_directory(directory):
    place = directory()
    assistant = arriving.add(place).assistant
    waiting = make_wakeup(assistant)
    arriving.remove(assistant)

    waiting.refresh_from_db()
    assert waiting.outcome == "cancelled"
    assert not Schedule.objects.due(clock.now() + dt.timedelta(days=99)).exists()
    assert place.joinpath("brief.md").exists()
    assert arriving.add(place).assistant.pk != assistant.pk
    with pytest.raises(Refusal, match="removed by another"):
        arriving.remove(assistant)


def test_one_that_is_awake_is_not_removed(directory):
    assistant = arriving.add(directory()).assistant
    make_wakeup(assistant, state=Wakeup.State.RUNNING)

    with pytest.raises(Refusal, match="is awake"):
        arriving.remove(assistant)
    assert Assistant.objects.get().removed_at is None


def test_what_is_exported_and_added_again_has_not_changed(directory):
    Destination.objects.create(name="log", kind="file")
    place = directory(
        "daily",
        'cron = "30 7 * * 1-5"\ntimezone = "Europe/Berlin"\nmissed = "once-if-younger-than 6h"\n'
        'jitter = "5m"\nquiet_hours = "22:00-06:00"\nbudget = 0.5\ndaily_budget = 2\n'
        'destinations = ["log"]\napprovals = 2\nexpires = "3d"\nargs = ["--effort", "low"]\n'
        'overlap = "wait"\nallow_hosts = ["files.example.org"]',
    )
    assistant = arriving.add(place).assistant
    (place / "assistant.toml").write_text(arriving.exported(assistant))

    assert arriving.unread_change(assistant)
    assert arriving.add(place).changed == ()
    assistant.refresh_from_db()
    assert not arriving.unread_change(assistant)


def test_a_changed_or_missing_file_is_noticed(directory):
    place = directory()
    assistant = arriving.add(place).assistant
    assert arriving.unread_change(assistant) == ""
    directory("daily", 'timeout = "1m"')
    assert f"sanduk assistant add {place}" in arriving.unread_change(assistant)
    (place / "assistant.toml").unlink()
    assert "is not there" in arriving.unread_change(assistant)


@pytest.mark.parametrize(
    ("toml", "needed"), [("approvals = 2", 2), ("exclude_author = true", 2),
                         ("approvals = 2\nexclude_author = true", 3)]
)  # fmt: skip
def test_too_few_people_for_its_items_are_told_with_the_command(directory, toml, needed):
    added = arriving.add(directory(toml=f"{HOLDING}{toml}\n"))
    [note] = added.notes
    assert f"0 of {needed} site users may: sanduk user add NAME approver" in note
    assert "sanduk user map ACCOUNT NAME" in note

    for number in range(needed):
        User.objects.create(username=f"person-{number}", is_superuser=True)
    assert arriving.add(directory(toml=f"{HOLDING}{toml}\n")).notes == ()


def test_one_approval_needs_no_site_user(directory):
    assert arriving.add(directory()).notes == ()
