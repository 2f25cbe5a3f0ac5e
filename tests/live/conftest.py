"""What the live suites share: one relay by hand, and why a suite is left out."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

ROOT = Path(__file__).parents[2]
TOKEN = "live-run-token"
PATIENCE_S = 240.0  # a small machine may load a model first


def variable(name: str, what: str) -> str:
    """The value of a variable that opts in; without it the test is left out and says why."""
    value = os.environ.get(name, "").strip()
    if not value:
        pytest.skip(f"{name} is not set: {what}")
    return value


@dataclass
class Relay:
    """A relay in a process of its own, in front of a live model."""

    url: str
    process: subprocess.Popen[str]
    calls: list[dict[str, Any]] = field(default_factory=list)

    def ask(self, path: str, body: dict[str, Any], *, token: str = TOKEN) -> httpx.Response:
        """One call, read to its end. Its record follows with `call`."""
        headers = {"authorization": f"Bearer {token}", "anthropic-version": "2023-06-01"}
        return httpx.post(
            f"http://{self.url}{path}", headers=headers, json=body, timeout=PATIENCE_S
        )

    def get(self, path: str) -> httpx.Response:
        headers = {"authorization": f"Bearer {TOKEN}"}
        return httpx.get(f"http://{self.url}{path}", headers=headers, timeout=PATIENCE_S)

    def call(self) -> dict[str, Any]:
        """The record of the next call that has ended."""
        assert self.process.stdout is not None
        found: dict[str, Any] = json.loads(self.process.stdout.readline())["call"]
        self.calls.append(found)
        return found

    def total(self) -> dict[str, Any]:
        """End it; what it counted in all."""
        self.process.send_signal(signal.SIGTERM)
        out, _ = self.process.communicate(timeout=20)
        found: dict[str, Any] = json.loads(out.splitlines()[-1])["total"]
        return found


@contextlib.contextmanager
def relaying(*words: str) -> Iterator[Relay]:
    """`python -m relay` with these words. The key comes from the environment, as a run's does."""
    command = [sys.executable, "-m", "relay", "--listen", "127.0.0.1:0", "--token-env", "RUN_TOKEN"]
    process = subprocess.Popen(
        [*command, *words],
        cwd=ROOT,
        env={**os.environ, "RUN_TOKEN": TOKEN},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    watchdog = threading.Timer(PATIENCE_S + 30, process.kill)
    watchdog.start()
    try:
        assert process.stdout is not None
        first = process.stdout.readline()
        if not first:
            pytest.fail(f"the relay did not start: {process.communicate()[1]}")
        yield Relay(json.loads(first)["listening"], process)
    finally:
        watchdog.cancel()
        process.kill()
        process.communicate()


def events(answer: httpx.Response) -> list[Any]:
    """The data of each server-sent event; "[DONE]" stays a word."""
    lines = [line[5:].strip() for line in answer.text.splitlines() if line.startswith("data:")]
    return [line if line == "[DONE]" else json.loads(line) for line in lines]


def is_counted(call: dict[str, Any]) -> bool:
    """Whether a call is complete and its provider's usage was read."""
    usage = call["usage"] or {}
    counted = (usage.get("input_tokens") or 0) > 0 and (usage.get("output_tokens") or 0) > 0
    return bool(call["completed"] and call["status"] == 200 and counted and call["raw_usage"])


def question(model: str, **more: Any) -> dict[str, Any]:
    """A short one, for Chat Completions and Messages."""
    words = [{"role": "user", "content": "Answer with the word yes."}]
    return {"model": model, "messages": words, "max_tokens": 64, **more}
