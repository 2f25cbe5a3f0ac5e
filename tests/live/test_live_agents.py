"""Each agent with its provider's real model: `make test-agents`, paid, one run an agent.

Left out unless AGENT_LIVE=1 says that money may be spent, and an agent whose provider's key is not
exported is left out as well. A run may spend AGENT_LIVE_BUDGET dollars (0.50); AGENT_LIVE_MODEL_X
names the model of agent x where the provider has no default or another one is wanted.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator

import pytest

from relay import get_provider
from runs.agents import get_agent
from tests.engine.running import Installation, installed
from tests.live.conftest import variable

pytestmark = [pytest.mark.live, pytest.mark.agents, pytest.mark.timeout(900)]
PROVIDERS = {
    "claude": "anthropic",
    "codex": "openai",
    "gemini": "gemini",
    "hermes": "openrouter",
    "opencode": "anthropic",
    "pi": "openai",
}
TASK = (
    "The file note.txt here holds one word. Write that word, and nothing else, into REPORT.md. "
    "Do nothing more."
)


@pytest.fixture
def place() -> Iterator[Installation]:
    variable("AGENT_LIVE", "these runs cost money; AGENT_LIVE=1 allows it")
    with installed("docker") as made:
        yield made


@pytest.mark.parametrize("agent", PROVIDERS)
def test_it_reads_a_nonce_and_reports_it_under_a_budget(place: Installation, agent: str):
    provider = get_provider(PROVIDERS[agent])
    key = variable(provider.key_env, f"{agent} needs a key of {provider.name}")
    model = os.environ.get(f"AGENT_LIVE_MODEL_{agent.upper()}", "")
    if get_agent(agent).needs_model and not (model or provider.default_model):
        pytest.skip(f"AGENT_LIVE_MODEL_{agent.upper()} is not set: {agent} needs a model")
    nonce = secrets.token_hex(8)
    place.work.mkdir()
    (place.work / "note.txt").write_text(f"{nonce}\n")
    if os.geteuid() == 0:
        for path in (place.work, place.work / "note.txt"):
            os.chown(path, 1000, 1000)

    done = place.sanduk(
        "run", "--runtime", "docker", "--agent", agent, "--provider", provider.name, "--json",
        *(("--model", model) if model else ()), "--timeout", "10m", "--max-calls", "30",
        "--budget", os.environ.get("AGENT_LIVE_BUDGET", "0.50"), "--workdir", str(place.work), TASK,
        limit_s=840, **{provider.key_env: key},
    )  # fmt: skip

    found = json.loads(done.out)
    assert (done.code, found["outcome"]) == (0, "succeeded"), done
    assert nonce in found["report"]["text"]
    assert found["seal"].startswith("sealed: nothing answers but the relay")
    assert found["calls"]["completed"] >= 1
    assert found["spent"]["tokens"] > 0
    assert found["spent"]["usd"] <= float(os.environ.get("AGENT_LIVE_BUDGET", "0.50")) * 1.5
    place.nothing_left()
