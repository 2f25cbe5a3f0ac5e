"""Whose words a reason is made of: an agent's are never shown as sanduk's."""

from __future__ import annotations

import pytest

from runs.agents.base import Result
from runs.outcome import LAST_WORDS, Seen, decide
from runs.own_words import Words, of_run, repeated

SILENT = "the agent exited with 3 and no terminal record"


def failed(**fields: object) -> Result:
    return Result(ok=False, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("seen", "quoted"),
    [
        (Seen(exit_code=0, result=failed(error="I gave up")), "I gave up"),
        (Seen(exit_code=0, result=failed(error="wait", rate_limited=True)), "wait"),
        (Seen(exit_code=0, result=failed(error="which?", needs_input=True)), "which?"),
        (Seen(exit_code=0, result=failed()), ""),
        (Seen(exit_code=0, result=failed(rate_limited=True)), ""),
        (Seen(exit_code=0, result=failed(needs_input=True)), ""),
        (Seen(exit_code=3, last_words="segfault"), "segfault"),
        (Seen(exit_code=3), ""),
        (Seen(exit_code=3, result=Result(ok=True)), ""),
        (Seen(exit_code=0, result=Result(ok=True), checks_calls=True), ""),
        (Seen(halt="interrupted", halt_reason="the process that executed it is gone"), ""),
        (Seen(halt="timed_out", halt_reason="not done within 5s (--timeout)"), ""),
        (Seen(exit_code=137, oom_killed=True, memory="4g"), ""),
        (Seen(exit_code=1, exhausted="nothing is left"), ""),
        (Seen(not_started="no such file"), ""),
    ],
)
def test_of_every_end_the_agents_part_is_known(seen, quoted):
    outcome, reason = decide(seen)
    words = of_run(outcome, reason)
    assert words.own + words.quoted + words.rest == reason
    assert words.quoted == quoted


def test_an_agent_that_speaks_like_sanduk_is_quoted_all_the_same():
    for said in ("timed out: not really", f"{SILENT}; and more", f"x{LAST_WORDS}y"):
        assert of_run("failed", said) == Words("", said)


def test_a_text_that_says_it_again_quotes_the_same_part_also_when_cut():
    reason = f"{SILENT}{LAST_WORDS}oh no"
    text = f"failed: {reason}; no copy"
    assert repeated(text, "failed: ", "failed", reason) == Words(
        f"failed: {SILENT}{LAST_WORDS}", "oh no", "; no copy"
    )
    assert repeated(text[:-12], "failed: ", "failed", reason).quoted == "oh"
    assert repeated("else", "failed: ", "failed", "oh no") == Words("", "else")
    assert repeated("timed out: ours", "timed out: ", "timed_out", "ours") == Words(
        "timed out: ours"
    )
