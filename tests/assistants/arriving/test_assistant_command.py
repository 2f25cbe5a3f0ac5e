"""`sanduk assistant` as a person and a script meet it."""

from __future__ import annotations

import datetime as dt
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import load_command_class
from django.db import connection
from django.test.utils import CaptureQueriesContext

from assistants import arriving, mailbox
from assistants.memory import snapshots
from assistants.models import Assistant, OutboxItem, Schedule
from runs import clock
from runs.refusal import Refusal
from tests.assistants.sending.making import make_destination
from tests.factories import make_assistant, make_schedule, make_wakeup

pytestmark = pytest.mark.django_db
ROOT = Path(__file__).parents[3]


def test_a_first_assistant_holds_reviews_and_passes_its_own_add(sanduk, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = sanduk("assistant", "new", "daily", "--agent", "pi", "--provider", "rehearsal")
    assert made.strip() == str(tmp_path / "daily")
    assert "sanduk assistant add ./daily" in sanduk.err

    assert "daily is added" in sanduk("assistant", "add", "daily")
    assert sanduk.err == "", "nothing to warn about"
    config = Assistant.objects.get().config
    assert (config["hold"], config["memory_review"]) == (True, True)
    assert {each.name for each in (tmp_path / "daily").iterdir()} == {
        "assistant.toml", "brief.md", "workspace", "reports"
    }  # fmt: skip
    assert (tmp_path / "daily" / "workspace").stat().st_uid != 0


def test_new_without_flags_passes_its_own_add_too(sanduk, tmp_path):
    sanduk("assistant", "new", "daily", "--directory", str(tmp_path / "deep" / "place"))
    sanduk("assistant", "add", str(tmp_path / "deep" / "place"))

    assert Assistant.objects.get().name == "daily"


def test_new_writes_over_nothing(sanduk, tmp_path):
    (tmp_path / "daily").mkdir()
    with pytest.raises(Refusal, match="is there already"):
        sanduk("assistant", "new", "daily", "--directory", str(tmp_path / "daily"))
    with pytest.raises(Refusal, match="no name"):
        sanduk("assistant", "new", "No Name", "--directory", str(tmp_path / "x"))
    assert not (tmp_path / "x").exists()


def test_add_says_what_happens_without_anybody_looking(sanduk, directory):
    place = directory(toml='agent = "pi"\nprovider = "rehearsal"\n')
    told = sanduk("assistant", "add", str(place), "--json")

    assert (told["name"], told["created"]) == ("daily", True)
    assert "delivered without approval" in told["notes"][0]
    assert "unreviewed memory" in told["notes"][1]
    sanduk("assistant", "add", str(place))
    assert "delivered without approval" in sanduk.err


def test_add_again_says_what_changed(sanduk, directory):
    place = str(directory())
    sanduk("assistant", "add", place)
    assert "nothing has changed" in sanduk("assistant", "add", place)
    directory("daily", 'timeout = "1m"')
    assert "is changed: timeout" in sanduk("assistant", "add", place)


def test_list_and_show_notice_a_changed_file(sanduk, directory):
    sanduk("assistant", "add", str(directory()))
    assert "daily" in sanduk("assistant", "list")
    assert sanduk.err == ""
    directory("daily", 'timeout = "1m"')

    sanduk("assistant", "list")
    assert "daily: assistant.toml has changed" in sanduk.err
    sanduk("assistant", "show", "daily")
    assert "assistant.toml has changed" in sanduk.err
    assert "has changed" in sanduk("assistant", "show", "daily", "--json")["unread_change"]


def test_list_counts_mail_and_items_and_names_the_state(sanduk, directory):
    one = arriving.add(directory()).assistant
    for number in range(3):
        mailbox.tell(one, str(number))
        make_wakeup(one, state="ended", outcome="failed")
    for number in range(2):
        OutboxItem.objects.create(assistant=one, body=str(number), sha256="0" * 64)

    cells = sanduk("assistant", "list").splitlines()[1].split()
    assert cells[:2] == ["daily", "enabled"]
    assert cells[4] == "failed"
    assert cells[-3:-1] == ["3", "2"]
    make_wakeup(one, state="running")
    assert sanduk("assistant", "list", "--json")[0]["state"] == "running"


def test_the_last_real_outcome_is_not_hidden_by_slots_that_did_not_run(sanduk, directory):
    one = arriving.add(directory()).assistant
    make_wakeup(one, state="ended", outcome="quiet")
    assert sanduk("assistant", "list", "--json")[0]["last_outcome"] == "quiet"
    make_wakeup(one, state="ended", outcome="failed")
    for outcome in ("overlap", "backing_off", "nothing", "missed", "gate"):
        make_wakeup(one, state="ended", outcome=outcome)

    assert sanduk("assistant", "list", "--json")[0]["last_outcome"] == "failed"


def test_list_asks_as_often_for_many_as_for_one(sanduk):
    def asked() -> int:
        with CaptureQueriesContext(connection) as queries:
            sanduk("assistant", "list", "--json")
        return len(queries)

    make_schedule()
    few = asked()
    for _ in range(20):
        make_schedule()
    assert asked() == few


def test_show_names_settings_by_their_keys(sanduk, directory):
    place = directory(
        "daily",
        'cron = "30 7 * * *"\ntimezone = "Europe/Berlin"\nmissed = "once-if-younger-than 6h"\n'
        'quiet_hours = "22:00-06:00"\njitter = "5m"\nbudget = 0.5\nexpires = "3d"',
    )
    sanduk("assistant", "add", str(place))
    shown = " ".join(sanduk("assistant", "show", "daily").split())

    assert (
        "schedule: 30 7 * * * (Europe/Berlin), missed: once-if-younger-than 6h, up to 5m later, "
        "quiet 22:00-06:00" in shown
    )
    for line in ("approval: true", "budget: 0.5", "expires: 3d", "agent: pi", "failures: 0"):
        assert line in shown


def test_show_says_why_it_is_not_woken(sanduk):
    make_assistant("off", disabled_at=clock.now(), disabled_reason="3 failures in a row")
    make_schedule(make_assistant("slow", not_before=clock.now() + dt.timedelta(hours=1)))

    assert "3 failures in a row" in sanduk("assistant", "show", "off")
    assert "backing off until" in sanduk("assistant", "show", "slow")
    for name in ("pending", "undelivered", "awaiting_approval"):  # what scripts of old read
        assert sanduk("assistant", "show", "off", "--json")[name] == 0


def test_an_enabled_one_that_no_slot_will_wake_is_told(sanduk):
    make_schedule(make_assistant("daily"), next_at=None)

    sanduk("assistant", "list")
    assert "daily is enabled and has no next wakeup" in sanduk.err


def test_next_tells_five_on_its_own_clock(sanduk, directory):
    place = directory("daily", 'cron = "30 7 * * *"\ntimezone = "Europe/Berlin"')
    sanduk("assistant", "add", str(place))
    lines = sanduk("assistant", "next", "daily").splitlines()

    assert len(lines) == 5
    assert all(" 07:30:00 +0" in line and line.endswith("Europe/Berlin") for line in lines)
    assert len(sanduk("assistant", "next", "daily", "--limit", "9", "--json")) == 9
    sanduk("assistant", "disable", "daily")
    sanduk("assistant", "next", "daily")
    assert "but it is disabled" in sanduk.err


def test_next_begins_with_a_slot_that_is_due(sanduk):
    due = clock.now().replace(microsecond=0) - dt.timedelta(seconds=30)
    anchor = due - dt.timedelta(hours=1)
    make_schedule(make_assistant("daily"), every_s=3600, anchor_at=anchor, next_at=due)

    first = sanduk("assistant", "next", "daily", "--json")[0]["planned_at"]
    assert dt.datetime.fromisoformat(first) == due


def test_next_mixes_the_slots_of_several_schedules(sanduk):
    one = make_assistant("daily")
    for every in (3600, 5400):
        make_schedule(one, every_s=every)
    found = sanduk("assistant", "next", "daily", "--json")

    times = [each["planned_at"] for each in found]
    assert times == sorted(times)
    assert len(times) == 5


def test_history_keeps_the_reason_of_each_slot_that_did_not_run(sanduk):
    one = make_assistant("daily")
    make_wakeup(one, state="ended", outcome="quiet", reason="quiet hours 22:00-07:00\x1b[0m")

    shown = sanduk("assistant", "history", "daily")
    assert "quiet hours 22:00-07:00" in shown
    assert "\x1b" not in shown
    assert sanduk("assistant", "history", "daily", "--json")[0]["outcome"] == "quiet"


def test_history_says_until_when_one_waits_and_tells_seconds(sanduk):
    one = make_assistant("daily")
    later = clock.now() + dt.timedelta(hours=1)
    make_wakeup(one, planned_at=later, state="waiting")
    make_wakeup(one, planned_at=later - dt.timedelta(hours=2), state="waiting")

    first, second = sanduk("assistant", "history", "daily").splitlines()[1:]
    assert first.startswith(f"{later:%Y-%m-%d %H:%M:%S}")
    assert first.endswith(f"until {later:%Y-%m-%d %H:%M:%S}")
    assert second.endswith("for a process that wakes it")


def test_disable_keeps_who_and_why_and_the_first_reason_stands(sanduk, directory):
    sanduk("assistant", "add", str(directory()))
    assert "is disabled" in sanduk("assistant", "disable", "daily", "--reason", "on holiday")
    assert "on holiday" in sanduk("assistant", "disable", "daily", "--reason", "other")
    assert "is enabled; next" in sanduk("assistant", "enable", "daily")
    assert "enabled already" in sanduk("assistant", "enable", "daily")
    sanduk("assistant", "disable", "daily")
    assert Assistant.objects.get().disabled_reason.startswith("by ")


def test_remove_says_what_is_left_to_decide(sanduk, directory):
    one = arriving.add(directory()).assistant
    OutboxItem.objects.create(assistant=one, body="x", sha256="0" * 64)

    assert "stays as it is" in sanduk("assistant", "remove", "daily")
    assert "1 of its outbox still wait" in sanduk.err
    with pytest.raises(Refusal, match="no assistant 'daily'"):
        sanduk("assistant", "show", "daily")
    assert sanduk("assistant", "list", "--json") == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("add",), "needs a DIR"),
        (("show",), "needs a NAME"),
        (("list", "x"), "takes no name"),
        (("enable", "x", "--reason", "y"), "goes with disable"),
        (("show", "x", "--limit", "3"), "goes with next"),
        (("export", "x", "--json"), "export prints TOML"),
        (("show", "x"), "no assistant 'x'"),
        (("add", "/nowhere"), "there is no directory /nowhere"),
    ],
)
def test_what_means_nothing_is_refused(sanduk, words, said):
    with pytest.raises(Refusal, match=said):
        sanduk("assistant", *words)


def test_export_prints_what_the_database_has(sanduk, directory):
    place = directory("daily", 'every = "2h"')
    sanduk("assistant", "add", str(place))
    text = sanduk("assistant", "export", "daily")
    (place / "assistant.toml").write_text(text)

    assert 'every = "2h"' in text
    assert "nothing has changed" in sanduk("assistant", "add", str(place))
    assert Schedule.objects.count() == 1


def test_the_commands_work_from_a_shell(tmp_path):
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    environment = {**kept, "SANDUK_HOME": str(tmp_path / "home"), "PYTHONPATH": str(ROOT)}

    def shell(*words: str, text: str = "") -> tuple[int, str, str]:
        done = subprocess.run(
            [sys.executable, "-m", "sanduk_site", *words],
            cwd=tmp_path, env=environment, input=text, capture_output=True, text=True, timeout=60,
            check=False,
        )  # fmt: skip
        assert "Traceback" not in done.stderr, done.stderr
        return done.returncode, done.stdout, done.stderr

    new = ("assistant", "new", "daily", "--agent", "pi", "--provider", "rehearsal")
    assert shell(*new)[0] == 0
    assert shell("assistant", "add", "daily")[0] == 0
    assert shell("tell", "daily", "-", text="hello")[1] == "message 1 waits for daily\n"
    assert shell("untell", "1")[0] == 0
    (tmp_path / "daily" / "assistant.toml").write_text("approval = 1\n")
    code, _, err = shell("assistant", "add", "daily")
    assert (code, err.count("\n")) == (2, 1)
    assert "line 1: approval: it takes true or false" in err


def test_remove_says_that_snapshots_stay_and_purge_removes_them_now_or_later(sanduk, directory):
    one = arriving.add(directory()).assistant
    place = snapshots.store_of(one).root
    sanduk("assistant", "remove", "daily")
    assert "sanduk assistant remove daily --purge" in sanduk.err
    assert place.is_dir()

    assert "is gone" in sanduk("assistant", "remove", "daily", "--purge")
    assert not place.exists()
    with pytest.raises(Refusal, match="no assistant 'daily'"):
        sanduk("assistant", "remove", "daily", "--purge")

    again = snapshots.store_of(arriving.add(directory()).assistant).root
    assert sanduk("assistant", "remove", "daily", "--purge", "--json")["purged"] is True
    assert not again.exists()


def test_one_that_is_awake_is_woken_by_nobody_and_no_row_is_left(sanduk, directory):
    one = arriving.add(directory()).assistant
    make_wakeup(one, state="running")

    for words in (("tick", "--name", "daily"), ("wake", "daily"), ("assistant", "wake", "daily")):
        with pytest.raises(Refusal, match="daily is awake already; sanduk assistant history daily"):
            sanduk(*words)
    assert one.wakeups.count() == 1


def test_list_says_why_one_is_disabled(sanduk, directory):
    arriving.add(directory())
    sanduk("assistant", "disable", "daily", "--reason", "on holiday")
    sanduk("assistant", "list")

    assert "daily is disabled: on holiday" in sanduk.err


def test_new_may_be_quiet(sanduk, tmp_path):
    sanduk("assistant", "new", "one", "--directory", str(tmp_path / "one"), "-q")
    assert sanduk.err == ""


def test_times_in_json_are_iso_8601(sanduk, directory):
    arriving.add(directory())
    [row] = sanduk("assistant", "list", "--json")
    [slot, *_] = sanduk("assistant", "next", "daily", "--json")

    for text in (row["next_at"], slot["planned_at"], row["schedules"][0]["anchor_at"]):
        assert dt.datetime.fromisoformat(text).utcoffset() == dt.timedelta(0)
        assert text[10] == "T"


@pytest.mark.parametrize("name", ["assistant", "memory"])
def test_the_help_lists_each_action_in_a_line(name):
    command = load_command_class("assistants", f"sanduk_{name}")
    told = command.create_parser("sanduk", f"sanduk_{name}").format_help()
    module = sys.modules[type(command).__module__]

    for action, meaning in module.ACTIONS.items():
        assert re.search(rf"^ +(ACTION +)?{action} +{meaning.split()[0]}", told, re.MULTILINE)


def test_a_first_one_with_the_rehearsal_model_leaves_something_to_look_at(sanduk, tmp_path):
    for provider in ("rehearsal", "openai"):
        place = tmp_path / provider
        words = ("--agent", "pi", "--provider", provider, "--directory", str(place))
        sanduk("assistant", "new", provider, *words)
    first, *rest = (tmp_path / "rehearsal" / "brief.md").read_text().splitlines()
    assert "rehearsal:" not in (tmp_path / "openai" / "brief.md").read_text()
    assert "Read the messages below" in "\n".join(rest)
    directive, _, command = first.partition(" command ")
    assert directive == "rehearsal:"

    for _ in range(2):
        subprocess.run(["sh", "-c", command], cwd=tmp_path, check=True, timeout=20)
    assert len((tmp_path / "notes.md").read_text().splitlines()) == 2
    assert (tmp_path / "REPORT.md").read_text().startswith("# My notes\n")


def test_what_is_exported_with_places_of_for_adds_back_the_same(sanduk, directory):
    place = directory()
    one = arriving.add(place).assistant
    one.destinations.add(make_destination("log", "file", path="/tmp/log"))
    text = sanduk("assistant", "export", "daily")
    assert 'destinations = ["log"]' in text

    (place / "assistant.toml").write_text(text)
    assert "destinations" not in arriving.add(place).changed
    one.destinations.add(make_destination("later", "file", path="/tmp/later"))
    assert arriving.add(place).changed == ("destinations",)
    assert [each.name for each in one.destinations.all()] == ["log"]
