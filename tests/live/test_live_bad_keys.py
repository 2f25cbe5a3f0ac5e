"""Made-up keys at three providers (LIVE_BAD_KEYS=1): each says no, and nothing is paid."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from relay.credential import Credential
from relay.preflight import check_key
from relay.providers import get_provider
from tests.live.conftest import ROOT, variable

pytestmark = [pytest.mark.live, pytest.mark.timeout(120)]
BAD = "sk-sanduk-test-no-such-key-0000000000000000"
PROVIDERS = ("anthropic", "openai", "openrouter")


@pytest.fixture(autouse=True)
def opted_in() -> None:
    variable("LIVE_BAD_KEYS", "1 asks three providers about a made-up key, which costs nothing")


@pytest.mark.anyio
@pytest.mark.parametrize("name", PROVIDERS)
async def test_a_bad_key_is_called_one_before_anything_starts(name: str):
    provider = get_provider(name)
    found = await check_key(provider, Credential(BAD, provider.key_env))

    assert found.kind == "bad_key", found
    assert provider.key_env in found.text
    assert BAD not in found.text


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_relay_does_not_start_with_a_bad_key(name: str):
    key_env = get_provider(name).key_env
    done = subprocess.run(
        [sys.executable, "-m", "relay", "--provider", name, "--listen", "127.0.0.1:0",
         "--token-env", "RUN_TOKEN"],
        cwd=ROOT, env={**os.environ, "RUN_TOKEN": "t", key_env: BAD},
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip

    assert done.returncode == 1, done
    assert key_env in done.stderr
    assert BAD not in done.stderr
