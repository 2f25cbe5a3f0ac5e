"""What ends a wakeup before it has a run: nothing to do, a gate, broken files, no room."""

from __future__ import annotations

import datetime as dt
import time
from pathlib import Path

import pytest

from assistants.models import Assistant, InboxMessage
from runs import clock
from tests.assistants.waking import assistant_in, gate_of, memory, runs, woken
from tests.factories import make_run
from tests.pace import stretched
from tests.runs.conftest import state

__all__ = ["memory", "runs", "state"]
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("memory")]


def tell(assistant: Assistant, body: str) -> InboxMessage:
    return InboxMessage.objects.create(assistant=assistant, body=body)


def in_minutes(moment: dt.datetime | None) -> int:
    assert moment is not None
    return round((moment - clock.now()).total_seconds() / 60)


def test_nothing_to_do_is_said_and_is_no_failure(tmp_path, runs):
    """S-1."""
    one = assistant_in(tmp_path, text=" \n")

    ended = woken(one)

    assert (ended.outcome, ended.run) == ("nothing", None)
    one.refresh_from_db()
    assert one.failures == 0


def test_an_empty_brief_with_a_message_is_something_to_do(tmp_path, runs):
    one = assistant_in(tmp_path, text="")
    tell(one, "hello")

    assert woken(one).outcome == "succeeded"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"args": ("--nope",)}, "args cannot be used: unrecognized arguments: --nope"),
        ({"args": ("--detach",)}, "--detach"),
        ({"provider": "nobody"}, "there is no provider 'nobody'"),
        ({"brief": "other.md"}, "other.md is not there"),
        ({"gate": "gate"}, "gate gate cannot be run: No such file"),
        ({"gate": "../gate"}, "not in the assistant's directory"),
        ({"gate": "workspace/gate"}, "where the agent can write it"),
    ],
)
def test_what_is_broken_ends_as_a_failure_with_its_reason(tmp_path, runs, given, says):
    """S-1, S-2, S-3: it raises nothing, counts, and backs off."""
    one = assistant_in(tmp_path, **given)

    ended = woken(one)

    assert ended.outcome == "broken"
    assert says in ended.reason
    one.refresh_from_db()
    assert one.failures == 1
    assert in_minutes(one.not_before) == 60


def test_settings_of_another_version_and_a_directory_that_is_gone_are_broken(tmp_path, runs):
    one = assistant_in(tmp_path)
    Assistant.objects.filter(pk=one.pk).update(config={"no_such_key": 1})
    two = assistant_in(tmp_path, name="other")
    Path(two.directory).rename(tmp_path / "moved")

    assert [woken(each).outcome for each in (one, two)] == ["broken", "broken"]


def test_the_gate_says_no_for_no_run_and_no_failure(tmp_path, runs):
    one = assistant_in(tmp_path, gate="gate")
    gate_of(one, "echo nothing new; echo $SANDUK_ASSISTANT >&2; exit 3")

    ended = woken(one)

    assert (ended.outcome, ended.run) == ("gate", None)
    assert ended.gate_output == "nothing new\ndaily\n"
    assert ended.reason == "the gate said no (exit 3): nothing new daily"
    one.refresh_from_db()
    assert one.failures == 0


def test_a_gate_that_hangs_is_ended_with_what_it_started(tmp_path, runs):
    one = assistant_in(tmp_path, gate="gate", gate_timeout_s=1)
    gate_of(one, f"sleep 300 & echo $! > {tmp_path}/pid; sleep 300")

    began = time.monotonic()
    ended = woken(one)

    assert time.monotonic() - began < stretched(10)
    assert ended.outcome == "broken"
    assert "did not end within 1 s" in ended.reason
    child = int((tmp_path / "pid").read_text())
    stat = Path(f"/proc/{child}/stat")
    for _ in range(50):
        if not stat.exists() or " Z " in stat.read_text():
            break
        time.sleep(0.1)
    else:
        pytest.fail("what the gate started lives on")


def test_a_gate_that_leaves_a_program_behind_does_not_hold_the_wakeup(tmp_path, runs):
    one = assistant_in(tmp_path, gate="gate")
    gate_of(one, "sleep 300 & echo fine")

    began = time.monotonic()
    assert woken(one).outcome == "succeeded"
    assert time.monotonic() - began < stretched(10)


def test_a_gate_sees_none_of_our_keys_and_its_output_is_capped(tmp_path, runs, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-very-secret-1")
    monkeypatch.setenv("DATABASE_URL", "postgres://a:b@c/d")
    monkeypatch.setenv("WRAPPED", "Bearer sk-very-secret-1")
    monkeypatch.setenv("HARMLESS", "kept")
    one = assistant_in(tmp_path, gate="gate")
    gate_of(one, "env; head -c 100000 /dev/zero | tr '\\0' x; exit 1")

    output = woken(one).gate_output

    assert "secret" not in output
    assert "postgres" not in output
    assert "HARMLESS=kept" in output
    assert len(output) < 20_000
    assert output.endswith("[cut here by sanduk]")


def test_a_workspace_in_which_somebody_works_is_no_failure(tmp_path, runs):
    one = assistant_in(tmp_path)
    make_run(state="running", workspace=f"{one.directory}/workspace")

    ended = woken(one)

    assert ended.outcome == "missed"
    assert "works in" in ended.reason
    one.refresh_from_db()
    assert one.failures == 0


def test_a_wakeup_may_spend_what_is_left_of_the_day_and_no_more(tmp_path, runs):
    one = assistant_in(tmp_path, budget_usd=2.0, daily_budget_usd=3.0)
    runs.ends = {"outcome": "succeeded", "spent_usd": 1.5}

    orders = [woken(one).run.order["budget_usd"] for _ in range(2)]
    third = woken(one)

    assert orders == [2.0, 1.5]
    assert (third.outcome, third.run) == ("budget", None)
    assert "$3.00 of the day's $3.00" in third.reason


def test_spending_that_is_not_known_counts_as_all_that_was_set_aside(tmp_path, runs):
    one = assistant_in(tmp_path, budget_usd=2.0, daily_budget_usd=3.0)
    runs.ends = {"outcome": "interrupted", "spent_usd": 0.1, "spent_is_lower_bound": True}
    woken(one)
    runs.ends = {"outcome": "succeeded", "spent_usd": 0.25}

    assert woken(one).run.order["budget_usd"] == 1.0
