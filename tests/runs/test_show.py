"""`show`, `runs`, `ps` and `list` as people read them."""

from __future__ import annotations

import datetime as dt
import json

import pytest

from runs import clock, narration
from runs.management.commands import sanduk_list, sanduk_runs, sanduk_show
from runs.models import RelayCall, Run, RunEvent
from tests.factories import make_run

pytestmark = pytest.mark.django_db
HOSTILE = "\x1b[2Jgone‮txt"


def run_with_everything() -> Run:
    began = clock.now()
    run = make_run(
        state="ended",
        provider="rehearsal",
        image="sanduk-pi:1",
        started_at=began,
        first_call_at=began + dt.timedelta(seconds=2),
        report=f"# Found\n{HOSTILE}\n",
        report_state="saved",
        certificate={
            "headline": "sealed: nothing answers but the relay",
            "checks": [{"name": "dns", "verdict": "unknown", "sentence": "look-ups: not tried"}],
        },
        calls_relayed=1,
    )
    RunEvent.objects.create(run=run, sequence=1, at=began, kind="text", text=HOSTILE)
    RelayCall.objects.create(
        run=run, sequence=1, method="POST", path="/v1/messages", started_at=began,
        ended_at=began + dt.timedelta(seconds=1), status=200, protocol="anthropic-messages",
        input_tokens=1200, output_tokens=None,
    )  # fmt: skip
    return run


def shown(capsys, *words: str) -> str:
    command = sanduk_show.Command()
    options = vars(command.create_parser("sanduk", "sanduk_show").parse_args(list(words)))
    assert command.act(**options) == 0
    return capsys.readouterr().out


def test_show_tells_everything_and_nothing_hostile_reaches_the_terminal(capsys):
    run = run_with_everything()
    out = shown(capsys, run.uid[:6])
    assert "first model call after 2.0 s" in out
    assert "1,200 in" in out
    assert "could not check look-ups: not tried" in out
    assert "\x1b" not in out
    assert "‮" not in out
    assert "\\x1b[2Jgone\\u202etxt" in out


def test_a_report_that_nobody_asked_for_has_no_empty_section(capsys):
    run = make_run(state="ended", order={"report_instruction": False})
    asked = make_run(state="ended", report_state="missing")

    assert "\nreport\n" not in shown(capsys, run.uid)
    assert "\nreport\n  missing\n" in shown(capsys, asked.uid)


def test_show_can_be_asked_for_one_part(capsys):
    run = run_with_everything()
    out = shown(capsys, run.uid, "--report")
    assert out.startswith("# Found")
    assert "trace" not in out


def test_show_as_json_holds_the_calls_and_the_trace(capsys):
    run = run_with_everything()
    found = json.loads(shown(capsys, run.uid, "--json"))
    assert found["relay_calls"][0]["input_tokens"] == 1200
    assert found["trace"][0]["text"] == HOSTILE
    assert found["first_call_s"] == 2.0


def test_a_live_run_shows_its_last_signs_of_life(capsys):
    run = make_run(state="running", started_at=clock.now())
    RunEvent.objects.create(run=run, sequence=1, at=clock.now(), kind="text", text="hello")
    out = shown(capsys, run.uid)
    assert "output    last 0." in out
    assert "calls     none yet" in out


def test_the_list_of_runs_says_what_to_do_when_it_is_empty(capsys):
    command = sanduk_runs.Command()
    assert command.act(limit=20, live=False, json=False) == 0
    assert "no runs yet" in capsys.readouterr().err
    run = run_with_everything()
    command.act(limit=20, live=False, json=False)
    headings, line = capsys.readouterr().out.splitlines()
    assert headings.split() == list(sanduk_runs.COLUMNS)
    assert line.startswith(run.uid)


@pytest.mark.parametrize("what", ["agents", "providers", "runtimes", "recipes"])
def test_what_there_is_can_be_listed_for_people_and_for_scripts(capsys, what):
    command = sanduk_list.Command()
    command.act(what=what, json=True)
    rows = json.loads(capsys.readouterr().out)
    command.act(what=what, json=False)
    assert len(capsys.readouterr().out.splitlines()) == len(rows) > 1


def test_a_first_call_far_later_than_usual_is_remarked_on():
    began = clock.now()

    def ended(after_s: float) -> Run:
        first = began + dt.timedelta(seconds=after_s)
        return make_run(state="ended", image="i:1", started_at=began, first_call_at=first)

    for _ in range(4):
        ended(1.0)
    assert narration.slow_start(ended(1.2)) == ""
    assert "after 30 s" in narration.slow_start(ended(30))


def test_a_slow_first_call_of_a_new_image_has_nothing_to_be_compared_with():
    began = clock.now()
    first = began + dt.timedelta(seconds=30)
    run = make_run(state="ended", image="i:2", started_at=began, first_call_at=first)
    assert narration.slow_start(run) == ""


@pytest.mark.parametrize(
    ("fields", "told"), [({"requested_as": "cl"}, "cl"), ({"trigger": "schedule"}, "schedule")]
)
def test_a_run_says_who_asked_for_it(capsys, fields, told):
    sanduk_show.Command()._facts(make_run(**fields))
    assert f"asked by  {told}\n" in capsys.readouterr().out


def test_a_run_that_was_asked_for_on_the_web_names_the_person(capsys, django_user_model):
    ada = django_user_model.objects.create_user("ada")
    sanduk_show.Command()._facts(make_run(requested_by=ada, requested_as="root", trigger="web"))
    assert "asked by  ada, on the web\n" in capsys.readouterr().out
