"""An agent that prints the key it was given: nothing that is kept or shown holds it."""

from __future__ import annotations

import pytest

from runs.hidden import MARK
from tests.engine.running import DONE, Installation

pytestmark = pytest.mark.engine
KEY = "sk-canary-8c1f0e5d7b"
# slowly, so that the key arrives in two pieces
PRINT = (
    'printf \'{"type": "text", "text": "I have \'; printf %s "$RELAY_TOKEN" | cut -c-9 | '
    "tr -d '\\n'; sleep 0.3; printf %s \"$RELAY_TOKEN\" | cut -c10- | tr -d '\\n'; "
    'printf \'"}\\n\'; echo "$RELAY_TOKEN" >&2; '
    'echo "the key is $RELAY_TOKEN" > REPORT.md'
)


def test_a_key_that_an_agent_printed_is_kept_nowhere(docker: Installation):
    done = docker.sanduk(
        *docker.words(f"{PRINT}; {DONE}", "--mode", "open", "--provider", "openai"),
        OPENAI_API_KEY=KEY,
    )
    shown = docker.sanduk("show", docker.row["uid"], "--json").out
    kept = b"".join(file.read_bytes() for file in docker.home.rglob("*") if file.is_file())

    assert done.code == 0, done
    assert f"text: I have {MARK}" in docker.events()
    assert f"stderr: {MARK}" in docker.events()
    assert docker.row["report"] == f"the key is {MARK}\n"
    assert "a key stood in what the agent wrote" in done.out
    assert KEY in (docker.work / "REPORT.md").read_text(), "the workdir is the person's own"
    for where in (done.out, done.err, shown):
        assert KEY not in where
    assert KEY.encode() not in kept
