"""A run in words and figures: what a person should know, and nothing hostile on the terminal."""

from __future__ import annotations

import datetime as dt
import io
import json

import pytest

from runs import clock, narration, shown
from runs.agents.base import Result, Tally, Trace
from runs.console import LINE, Terminal
from runs.ending import FINAL_TEXT_MAX, Ending
from runs.models import EgressAttempt, Run, RunEvent
from runs.models.run import Outcome
from runs.report import Report
from tests.factories import make_run

pytestmark = pytest.mark.django_db


def ended(**fields) -> Run:
    return make_run(state="ended", **fields)


def test_when_all_is_well_there_is_nothing_to_say():
    assert narration.closing(ended(report_state="saved")) == []


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        (
            {"outcome": "timed_out", "reason": "not done within 15m"},
            "timed out: not done within 15m",
        ),
        ({"outcome": "out_of_memory"}, "out of memory"),
        ({"report_state": "missing"}, "report: missing"),
        ({"report_state": "refused"}, "no regular file"),
        ({"report_state": "cut", "report_bytes": 2**31}, "report: cut, it has 2,147,483,648 bytes"),
        ({"displaced_report": "REPORT.before-x.md"}, "is now REPORT.before-x.md"),
        ({"kept_container": "c" * 64}, f"container {'c' * 12} is kept"),
    ],
)
def test_what_a_person_should_know_is_one_line(fields, line):
    [said] = narration.closing(ended(**fields))

    assert line in said


@pytest.mark.parametrize(
    "text",
    ["curl: (6) Could not resolve host: example.com", "getaddrinfo EAI_AGAIN registry",
     "[Errno 101] Network is unreachable", "Temporary failure in name resolution"],
)  # fmt: skip
@pytest.mark.parametrize("where", ["text", "detail", "reason"])
def test_an_agent_that_missed_the_network_is_told_which_modes_give_it(text, where):
    run = ended(outcome="failed", reason=text if where == "reason" else "it broke")
    if where != "reason":
        RunEvent.objects.create(
            run=run, sequence=1, at=clock.now(), kind="stderr", **{"text": "x", where: text}
        )

    assert any("--mode key-safe" in line for line in narration.closing(run))


@pytest.mark.parametrize(
    "fields", [{"mode": "open"}, {"mode": "key-safe"}, {"outcome": "succeeded"}]
)
def test_nobody_is_sent_to_a_mode_in_vain(fields):
    run = ended(**{"outcome": "failed", "reason": "network is unreachable", **fields})

    assert not any("--mode" in line for line in narration.closing(run))


@pytest.mark.parametrize("followed", [False, True])
def test_an_end_that_was_told_when_it_came_is_not_told_again(followed):
    run = ended(outcome="timed_out", reason="not done within 2.0 s", report_state="saved")
    told = {"kind": "step", "text": "ending: not done within 2.0 s"}
    RunEvent.objects.create(run=run, sequence=1, at=clock.now(), **told)

    lines = narration.closing(run, followed=followed)

    assert lines == ([] if followed else ["timed out: not done within 2.0 s"])


@pytest.mark.parametrize(
    ("host", "port", "said"),
    [
        ("::1", 443, "[::1]:443"),
        ("a.example", 80, "a.example:80"),
        ("", 0, "(unreadable request)"),
    ],
)
def test_a_way_out_is_written_as_one_writes_addresses(host, port, said):
    assert shown.place(host, port) == said


def refuse_ways_out(run: Run, *flags: str) -> None:
    for number, flag in enumerate(flags, 1):
        EgressAttempt.objects.create(
            run=run, sequence=number, host="h", allowed=False, flag=flag, started_at=clock.now()
        )


@pytest.mark.parametrize(
    ("flags", "hint"),
    [
        (["--allow-host a:443"], "; --allow-host a:443 would allow them"),
        (
            ["", "--allow-host a:443", "", "--allow-host a:443", ""],
            "; --allow-host a:443 would allow 2 of them; no flag allows the other 3",
        ),
        (["", ""], "; no flag allows them"),
        (
            [f"--allow-host h{number}" for number in range(7)],
            " would allow 5 of them; sanduk show RUN --egress names the rest",
        ),
    ],
)
def test_the_hint_about_hosts_says_how_many_attempts_it_would_allow(flags, hint):
    run = ended(report_state="saved")
    refuse_ways_out(run, *flags)

    [said] = narration.closing(run)

    assert said.startswith(f"{len(flags)} attempt(s) to reach a host were refused; ")
    assert said.endswith(hint.replace("RUN", run.uid))


def test_the_last_word_has_time_tokens_and_calls():
    start = clock.now()
    run = ended(
        started_at=start, ended_at=start + dt.timedelta(seconds=65), calls_relayed=3,
        calls_refused=1, tally={"input_tokens": 1200, "cached_tokens": 1000, "output_tokens": 34},
    )  # fmt: skip

    assert narration.last_word(run) == (
        f"run {run.uid} succeeded, 1m 05s, 1,200 tokens in (1,000 cached), 34 out, "
        "3 calls relayed, 1 refused"
    )


def test_json_holds_everything_and_hostile_text_is_escaped_in_it():
    run = ended(report="\x1b[31m\u202e", final_text="\x00", agent_exit_code=3)

    text = json.dumps(narration.as_json(run))

    assert text.isascii()
    assert json.loads(text)["report"]["text"] == "\x1b[31m\u202e"
    assert json.loads(text)["run"] == run.uid


def test_the_figures_of_a_failed_run_say_why_and_where_its_report_is():
    run = ended(outcome="failed", exit_code=1, reason="it broke", report="# Done")

    stats = json.loads(narration.stats(run, ""))

    assert (stats["exit"], stats["ok"], stats["error"]) == (1, False, "it broke")
    assert stats["report"] == f"{run.workspace}/REPORT.md"
    assert json.loads(narration.stats(run, "/copy.md"))["report"] == "/copy.md"


# -- the terminal ------------------------------------------------------------------------------


class Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_trace_is_on_stdout_and_progress_on_stderr():
    out, err = io.StringIO(), io.StringIO()
    terminal = Terminal(out=out, err=err)

    terminal.progress("starting")
    terminal.trace(Trace("tool", "ls"))
    terminal.trace(Trace("text", "  \n "))

    assert (out.getvalue(), err.getvalue()) == ("  > ls\n", "sanduk: starting\n")


def test_of_what_a_tool_gave_back_the_first_line_is_shown():
    out = io.StringIO()

    Terminal(out=out, err=io.StringIO()).trace(Trace("note", "bash gave back", "a.py\nb.py"))

    assert out.getvalue() == "  - bash gave back: a.py\n"


def test_hostile_text_is_one_short_line_without_a_control_character():
    """L-13."""
    out, err = Tty(), io.StringIO()
    terminal = Terminal(out=out, err=err)

    terminal.trace(Trace("text", "\x1b]0;owned\x07" + "a\nb" * 1000))
    terminal.progress("\x1b[2J")
    terminal.warn("\u202e")

    assert "\x1b" not in out.getvalue() + err.getvalue()
    assert "\u202e" not in err.getvalue()
    assert out.getvalue().count("\n") == 1
    assert len(out.getvalue()) < LINE + 10


def test_colours_are_for_terminals_only():
    plain, tty = io.StringIO(), Tty()
    for out in (plain, tty):
        Terminal(out=out, err=io.StringIO()).trace(Trace("tool", "ls"))

    assert plain.getvalue() == "  > ls\n"
    assert tty.getvalue() == "\x1b[36m  > ls\x1b[0m\n"


def test_quiet_says_only_what_went_wrong():
    out, err = io.StringIO(), io.StringIO()
    terminal = Terminal(quiet=True, out=out, err=err)

    terminal.progress("starting")
    terminal.trace(Trace("tool", "ls"))
    terminal.warn("it broke")

    assert (out.getvalue(), err.getvalue()) == ("", "sanduk: it broke\n")


def test_a_reader_that_left_does_not_end_the_run():
    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    terminal = Terminal(out=Gone(), err=io.StringIO())
    for _ in range(2):
        terminal.trace(Trace("tool", "ls"))


# -- the row of an ended run -------------------------------------------------------------------


def test_whatever_an_agent_says_its_ending_can_be_stored():
    hostile = "\x00\ud800" + "x" * (FINAL_TEXT_MAX * 2)
    run = make_run(state="ending", lease_owner="me")
    ending = Ending(
        Outcome.FAILED,
        reason=hostile,
        result=Result(
            ok=False,
            text=hostile,
            error=hostile,
            tally=Tally(input_tokens=2**70, cost_usd=float("nan")),
            resets_at=float("inf"),
        ),
        report=Report(Run.Report.SAVED, "# Done", "d" * 64, 6),
    )

    assert Run.objects.mark_ended(run.uid, "me", **ending.columns())

    run.refresh_from_db()
    assert (run.state, run.outcome, run.exit_code) == ("ended", "failed", 1)
    assert run.final_text.endswith("[cut by sanduk]")
    assert len(run.final_text) < FINAL_TEXT_MAX + 50
    assert run.tally == {"input_tokens": 2**70}
    assert run.rate_limit_resets_at is None
    assert run.report == "# Done"


def test_when_a_rate_limit_resets_is_kept():
    ending = Ending(Outcome.RATE_LIMITED, result=Result(ok=False, resets_at=1_800_000_000.0))

    assert ending.columns()["rate_limit_resets_at"] == dt.datetime(2027, 1, 15, 8, 0, tzinfo=dt.UTC)
