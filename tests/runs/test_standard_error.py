"""What an agent writes to standard error is shown, and decides nothing."""

from __future__ import annotations

import pytest

from runs.agents.base import Result
from runs.models.run import Outcome
from runs.outcome import Seen, decide


@pytest.mark.parametrize(
    "words",
    [
        "ERROR codex_api::endpoint: failed to connect to websocket: HTTP error: 426",
        "error: fatal: panic: Traceback (most recent call last)",
        "",
    ],
)
def test_what_an_agent_writes_to_standard_error_fails_no_run(words: str):
    seen = Seen(
        exit_code=0, result=Result(ok=True), checks_calls=True, calls_completed=1, last_words=words
    )

    assert decide(seen) == (Outcome.SUCCEEDED, "")


def test_it_explains_a_run_that_ended_without_a_record():
    outcome, reason = decide(Seen(exit_code=1, last_words="no such model"))

    assert outcome == Outcome.FAILED
    assert reason.endswith("its last words: no such model")
