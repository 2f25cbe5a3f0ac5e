"""The live suite is tried here with the scripted model standing in for a llama-server."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.engine_fixtures import require_docker

ROOT = Path(__file__).parents[2]
SERVE = """
import asyncio, signal, socket, sys
from relay.rehearsal import create_rehearsal_app
from relay.server import serving

async def main():
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    with socket.socket(fileno=int(sys.argv[1])) as bound:
        bound.setblocking(False)
        async with serving(create_rehearsal_app(), bound):
            print("listening", flush=True)
            await stop.wait()

asyncio.run(main())
"""
# what opts in to a suite, or steers it: none of it is a test's business but the stand-in's address
OPT_IN = {
    "LLAMA_SERVER", "LLAMA_MODEL", "OPENAI_MODEL", "OPENAI_API_KEY", "OPENROUTER_API_KEY",
    "OPENROUTER_MODEL", "ANTHROPIC_API_KEY", "LIVE_BAD_KEYS",
}  # fmt: skip


@pytest.fixture
def stand_in() -> Iterator[str]:
    """The scripted model on a port of this machine, in a process of its own."""
    with socket.create_server(("127.0.0.1", 0)) as bound:
        port, number = bound.getsockname()[1], bound.fileno()
        process = subprocess.Popen(
            [sys.executable, "-c", SERVE, str(number)],
            cwd=ROOT, pass_fds=(number,), stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "listening\n"
        yield f"http://127.0.0.1:{port}"
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)


def live(*words: str, **variables: str) -> tuple[int, str]:
    """pytest on the live suite, with nothing opted in but what is given."""
    kept = {name: value for name, value in os.environ.items() if name not in OPT_IN}
    kept = {k: v for k, v in kept.items() if not k.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/live", *words],
        cwd=ROOT, env={**kept, **variables}, capture_output=True, text=True, timeout=800,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def test_the_llama_suite_passes_on_the_stand_in(stand_in: str):
    code, said = live("-m", "live and not engine", "-k", "llama", LLAMA_SERVER=stand_in)

    assert code == 0, said
    assert re.search(r"\b8 passed\b", said), said
    assert "skipped" not in said


@pytest.mark.engine
@pytest.mark.timeout(900)  # the agent's image may have to be built first
def test_a_sealed_agent_works_on_the_stand_in(stand_in: str):
    require_docker()
    code, said = live("-m", "live and engine", "-k", "llama", LLAMA_SERVER=stand_in)

    assert code == 0, said
    assert re.search(r"\b1 passed\b", said), said


def test_without_its_variable_each_suite_is_left_out_by_name():
    code, said = live("-m", "live", "-rs")

    assert code == 0, said
    assert "passed" not in said.splitlines()[-1]
    for name in ("LLAMA_SERVER", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "LIVE_BAD_KEYS"):
        assert f"{name} is not set: " in said, name


def test_it_is_not_among_the_tests_that_run_when_none_is_named():
    """pytest's exit code 5 says that nothing was left to run."""
    code, said = live("--collect-only", LLAMA_SERVER="http://127.0.0.1:9")

    assert code == 5, said
    assert "deselected" in said
