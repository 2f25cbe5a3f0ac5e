"""How a run of a real agent ends when its model fails: the outcome, the words, the tokens."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.engine.running import Installation

pytestmark = pytest.mark.engine
ONE_TRY = {
    "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
    "general": {"maxAttempts": 1},
}


def failed(docker: Installation, agent: str, status: int, *flags: str) -> dict[str, object]:
    task = f"rehearsal: status {status}\nLook around."
    words = ("--agent", agent, "--provider", "rehearsal", "-w", str(docker.work), "--json", *flags)
    done = docker.sanduk("run", "-q", *words, "--", task, limit_s=120)
    run: dict[str, object] = json.loads(done.out)
    assert done.code == (5 if run["outcome"] == "rate_limited" else 1), done
    assert "this failure was asked for" in str(run["reason"])
    assert str(status) in str(run["reason"])
    assert "{" not in str(run["reason"])
    docker.nothing_left()
    return run


@pytest.mark.parametrize("status", [401, 402])
@pytest.mark.parametrize("agent", ["pi", "opencode", "gemini", "hermes"])
def test_a_refused_call_fails_the_run_in_words(
    docker: Installation, agent_images: None, agent: str, status: int
):
    """pi and hermes exit with 0, gemini with 145 and 146: the words come from what they print."""
    run = failed(docker, agent, status)

    assert run["outcome"] == "failed"


@pytest.mark.parametrize(("status", "outcome"), [(429, "rate_limited"), (500, "failed")])
def test_hermes_ends_after_its_retries(
    docker: Installation, agent_images: None, status: int, outcome: str
):
    assert failed(docker, "hermes", status)["outcome"] == outcome


@pytest.mark.usefixtures("needs_root")  # gemini does not take another's settings for the system's
@pytest.mark.parametrize(("status", "outcome"), [(429, "rate_limited"), (500, "failed")])
def test_gemini_ends_when_it_may_try_no_more(
    docker: Installation, agent_images: None, tmp_path: Path, status: int, outcome: str
):
    """As its image is made it tries five times, a minute long."""
    tmp_path.chmod(0o755)
    (tmp_path / "settings.json").write_text(json.dumps(ONE_TRY))
    flags = ("--mount", f"{tmp_path}:/lent", "-e")
    path = "GEMINI_CLI_SYSTEM_SETTINGS_PATH=/lent/settings.json"

    assert failed(docker, "gemini", status, *flags, path)["outcome"] == outcome
