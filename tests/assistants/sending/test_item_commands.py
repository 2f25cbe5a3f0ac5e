"""`outbox`, `approve`, `reject`, `deliver` and `destination`, as a person types them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from django.contrib.auth.models import User

from assistants.models import Delivery, Destination, OutboxItem
from runs import audit, credentials
from runs.models import AuditEvent, TerminalAccount
from tests.assistants.sending.making import act, make_destination, make_item
from tests.factories import make_assistant

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def ready(monkeypatch):
    """The test's database is there: no command makes one."""
    monkeypatch.setattr("runs.management.terminal.prepare", lambda: None)


def printed(capsys) -> object:
    return json.loads(capsys.readouterr().out)


def test_the_list_has_a_heading_for_each_item_and_nothing_hostile(capsys):
    assistant = make_assistant("daily")
    item = make_item(assistant, "line one\nline two \x1b[2J\u202e", hold=True)
    assert act("outbox", "--pending") == 0

    out = capsys.readouterr().out
    pattern = (
        rf"--- \[{item.pk}\] daily \d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\dZ pending\nline one\nline two"
    )
    assert re.match(pattern, out)
    assert "\x1b" not in out
    assert "\u202e" not in out


@pytest.mark.parametrize(("body", "is_cut"), [("x" * 2000, False), ("y" * 2_000_000, True)])
def test_the_list_cuts_a_long_body_and_says_where_all_of_it_is(capsys, body, is_cut):
    item = make_item(make_assistant("daily"), body, hold=True)
    assert act("outbox") == 0

    out = capsys.readouterr().out
    assert len(out) < 2200
    told = f"(cut; all {len(body):,} characters: sanduk outbox show {item.pk})"
    assert (told in out) is is_cut


def test_the_list_is_narrowed_by_state_and_assistant(capsys):
    daily, other = make_assistant("daily"), make_assistant("other")
    held, approved = make_item(daily, hold=True), make_item(daily)
    make_item(other)

    for words, wanted in (
        (("--name", "daily"), [held.pk, approved.pk]),
        (("--name", "daily", "--pending"), [held.pk]),
        (("--name", "daily", "--undelivered"), [approved.pk]),
        (("--limit", "1", "--name", "daily"), [approved.pk]),
    ):
        assert act("outbox", *words, "--json") == 0
        assert [row["id"] for row in printed(capsys)] == wanted
    assert act("outbox", "--name", "nobody") == 2
    assert "there is no assistant 'nobody'" in capsys.readouterr().err


def test_an_item_is_shown_whole_with_all_that_is_known(tmp_path: Path, capsys):
    credentials.store("HOOK_SECRET", "kept-in-the-store")
    assistant = make_assistant()
    make_destination("log", "file", assistant, path=str(tmp_path / "log"))
    item = make_item(assistant, "so:\nkept-in-the-store\n" + "x" * 5000, expires_s=3600)
    assert act("outbox", "show", str(item.pk)) == 0

    out = capsys.readouterr().out
    assert "! secret? line 2: a secret of this host, HOOK_SECRET" in out
    assert f"sha256 {item.sha256}" in out
    assert "waits for 1 person to approve" in out
    assert "expires 20" in out
    assert "x" * 5000 in out
    act("approve", str(item.pk), "--reason", "it is old")
    act("deliver")
    capsys.readouterr()
    act("outbox", "show", str(item.pk))
    out = capsys.readouterr().out
    assert f"approved by {audit.account()}" in out
    assert "it is old" in out
    assert "> log: sent" in out


def test_items_are_approved_each_on_its_own(capsys):
    good, done = make_item(hold=True), make_item()

    assert act("approve", str(good.pk), str(done.pk), "99") == 2
    told = capsys.readouterr()
    assert f"item {good.pk} is approved; it has no destination" in told.out
    assert f"item {done.pk} was already approved by policy" in told.err
    assert "there is no item 99" in told.err
    assert "1 of 3 were decided on" in told.err


def test_approving_says_where_it_goes_and_how_many_more_are_needed(tmp_path: Path, capsys):
    assistant = make_assistant()
    make_destination("log", "file", assistant, path=str(tmp_path / "log"))
    anna = User.objects.create(username="anna")
    TerminalAccount.objects.create(account=audit.account(), user=anna)
    one, two = make_item(assistant, hold=True), make_item(assistant, hold=True, approvals=2)

    assert act("approve", str(one.pk), "--expect", one.sha256) == 0
    assert capsys.readouterr().out == f"item {one.pk} is approved and goes to log\n"
    assert act("approve", str(two.pk)) == 0
    assert "1 more needed" in capsys.readouterr().out
    assert act("approve", str(two.pk)) == 2
    assert act("approve", str(one.pk), str(two.pk), "--expect", one.sha256) == 2


def test_a_rejection_needs_a_reason_and_is_final(capsys):
    item = make_item(hold=True)

    assert act("reject", str(item.pk)) == 2
    assert "--reason" in capsys.readouterr().err
    assert act("reject", str(item.pk), "--reason", "old figures", "--json") == 0
    (row,) = printed(capsys)
    assert (row["state"], row["reason"], row["missing"]) == ("rejected", "old figures", 0)
    assert act("approve", str(item.pk)) == 2


def test_outbox_deliver_gives_each_approved_item_to_a_shell_once(tmp_path: Path, capsys):
    """As `--deliver` of the first program, with a ledger; a failure shows in the exit code."""
    assistant = make_assistant("daily")
    make_item(assistant, "one"), make_item(assistant, "two"), make_item(assistant, hold=True)
    command = f"cat >> {tmp_path}/got; echo $SANDUK_ASSISTANT >> {tmp_path}/got"

    assert act("outbox", "--deliver", command) == 0
    assert "1 more wait for approval" in capsys.readouterr().err
    assert act("outbox", "--deliver", command) == 0
    assert (tmp_path / "got").read_text() == "onedaily\ntwodaily\n"
    assert OutboxItem.objects.filter(state="delivered").count() == 2
    assert act("destination", "list") == 0
    assert "by-hand" not in capsys.readouterr().out


def test_outbox_deliver_goes_on_after_a_failure_and_tries_again_when_asked(tmp_path: Path, capsys):
    assistant = make_assistant()
    first, second = make_item(assistant, "bad"), make_item(assistant, "good")
    command = f"test -e {tmp_path}/repaired || grep -q good"

    assert act("outbox", "--deliver", command) == 1
    assert "it exited with 1" in capsys.readouterr().out
    assert OutboxItem.objects.get(pk=second.pk).state == "delivered"
    (tmp_path / "repaired").touch()
    assert act("outbox", "--deliver", command, "--json") == 0
    (row,) = printed(capsys)
    assert (row["id"], row["state"], row["attempts"]) == (first.pk, "sent", 2)


def test_deliver_tries_one_item_at_once_and_again_on_purpose(tmp_path: Path, capsys):
    assistant = make_assistant()
    make_destination("log", "file", assistant, path=str(tmp_path / "sub" / "log"))
    item = make_item(assistant)
    assert act("deliver") == 1
    assert "1 failed" in capsys.readouterr().err
    assert act("deliver") == 0
    assert "nothing was due" in capsys.readouterr().err
    (tmp_path / "sub").mkdir()

    assert act("deliver", str(item.pk)) == 0
    assert capsys.readouterr().out == "log: sent after 2 tries\n"
    assert act("deliver", str(item.pk), "--again", "--to", "log", "--json") == 0
    assert [row["number"] for row in printed(capsys)] == [1, 2]
    assert len((tmp_path / "sub" / "log").read_text().splitlines()) == 2


@pytest.mark.parametrize("words", [["--again"], ["--arrived"], ["7"], ["1", "--to", "log"]])
def test_deliver_refuses_what_it_cannot_do(words):
    assert act("deliver", *words) == 2


def test_a_destination_is_added_changed_tested_listed_and_removed(tmp_path: Path, capsys):
    daily = make_assistant("daily")
    path = tmp_path / "log"

    assert act("destination", "add", "log", "--file", str(path), "--for", "daily") == 0
    assert act("destination", "add", "log", "--file", str(path), "--timeout", "5s") == 0
    assert Destination.objects.get().timeout_s == 5
    assert list(daily.destinations.all()) == [Destination.objects.get()]
    assert act("destination", "add", "log", "--command", "true") == 2
    assert act("destination", "test", "log") == 0
    assert json.loads(path.read_text())["assistant"] == "test"
    assert not Delivery.objects.exists()
    capsys.readouterr()
    assert act("destination", "list", "--json") == 0
    (row,) = printed(capsys)
    assert (row["name"], row["where"], row["assistants"]) == ("log", str(path), ["daily"])
    assert act("destination", "remove", "log") == 0
    assert act("destination", "remove", "log") == 2
    actions = AuditEvent.objects.order_by("number").values_list("action", flat=True)
    assert [action.partition(".")[2] for action in actions] == ["add", "change", "test", "remove"]


def test_what_is_not_said_again_stays_or_is_told(tmp_path: Path, capsys):
    credentials.store("HOOK_SECRET", "x" * 20)
    hook = ["add", "ops", "--webhook", "https://example.com/hook"]
    full = ["--secret", "HOOK_SECRET", "--timeout", "5s", "--reminders", "4h"]
    assert act("destination", *hook, *full) == 0
    capsys.readouterr()

    assert act("destination", *hook) == 0
    told = capsys.readouterr().err
    one = Destination.objects.get()
    assert (one.timeout_s, one.remind_after_s) == (5, 4 * 3600)
    assert "secret was HOOK_SECRET and is none now: --secret was not said again" in told
    assert act("destination", *hook, "--timeout", "7s", "--reminders", "none") == 0
    one.refresh_from_db()
    assert (one.timeout_s, one.remind_after_s) == (7, None)
    assert "said again" not in capsys.readouterr().err


def test_a_path_that_is_not_there_where_commands_run_is_told(tmp_path: Path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tool = tmp_path / "tool"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)

    assert act("destination", "add", "ops", "--command", "./tool") == 2
    assert "would be looked for in /, where it runs" in capsys.readouterr().err
    assert act("destination", "add", "ops", "--command", "sh tool") == 0
    assert "it runs in /: tool is /tool there" in capsys.readouterr().err
    assert act("outbox", "--deliver", "pwd; cat > ./tool") == 0
    assert "it runs in /: ./tool is /tool there" in capsys.readouterr().err
    assert act("destination", "add", "ops", "--command", f"sh {tool}") == 0
    assert "it runs in /" not in capsys.readouterr().err


def test_a_test_that_fails_says_what_was_said(capsys):
    act("destination", "add", "odd", "--command", "sh -c 'echo no such queue; exit 3'")
    capsys.readouterr()

    assert act("destination", "test", "odd") == 1
    told = capsys.readouterr()
    assert "it exited with 3" in told.err
    assert told.out == "it said: no such queue\n"


def test_what_a_receiver_says_to_a_test_is_one_line_and_whole_as_json(capsys):
    act("destination", "add", "wordy", "--command", "seq 1 1000")
    capsys.readouterr()

    assert act("destination", "test", "wordy") == 0
    [line] = capsys.readouterr().out.splitlines()
    assert len(line) < 220
    assert act("destination", "test", "wordy", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["trouble"], told["output"].split()[-1]) == ("", "1000")
    act("destination", "add", "wordy", "--command", "false")
    capsys.readouterr()
    assert act("destination", "test", "wordy", "--json") == 1
    assert "it exited with 1" in json.loads(capsys.readouterr().out)["trouble"]


def test_deliver_by_hand_says_when_there_was_nothing(capsys):
    assert act("outbox", "--deliver", "cat") == 0
    assert "nothing was due" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["UPPER", "--file", "/tmp/x"], "no name of a destination"),
        (["a"], "needs one of --command"),
        (["a", "--file", "relative"], "no absolute path"),
        (["a", "--file", "/nowhere/at/all"], "no absolute path"),
        (["a", "--file", "/dev/null"], "no regular file"),
        (["a", "--command", "no-such-program-here"], "no program"),
        (["a", "--command", "echo 'open"], "cannot be read as words"),
        (["a", "--webhook", "ftp://h"], "must begin with http"),
        (["a", "--webhook", "http://h/", "--secret", "NOT_KEPT"], "sanduk auth set NOT_KEPT"),
        (["a", "--webhook", "http://u:p@h/"], "a user or a password"),
        (["a", "--webhook-secret", "lower"], "no name of a secret"),
        (["a", "--file", "/tmp/x", "--allow-lan"], "--allow-lan means nothing with --file"),
        (["a", "--command", "true", "--from", "a@b.c"], "--from means nothing with --command"),
        (["a", "--email", "me@example.com"], "needs --from"),
        (["a", "--email", "m@e.com", "--from", "b@e.com", "--smtp", "h:x"], "HOST:PORT"),
        (["a", "--command", "true", "--for", "nobody"], "no assistant 'nobody'"),
        (["a", "--command", "true", "--timeout", "soon"], "--timeout takes a duration"),
    ],
)
def test_what_cannot_be_a_destination_is_refused_and_nothing_is_kept(words, why, capsys):
    assert act("destination", "add", *words) == 2
    assert why in capsys.readouterr().err
    assert not Destination.objects.exists()
