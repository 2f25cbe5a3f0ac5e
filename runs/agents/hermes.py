"""hermes, measured at 0.19.0 with its command `hermes -z`, on Python 3.13.

The task is an argument, bound to its flag so that it may begin with a dash. hermes prints its last
answer alone and exits with 0 after a failure; the wrapper of its image prints its messages and what
its usage file says, which is never written into the workspace.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from relay import Protocol, Provider
from runs.agents.base import Agent, Launch, Reader, Request, Result, Tally, Trace
from runs.agents.evidence import (
    ANSWER_CHARS,
    count,
    dollars,
    mapping,
    mappings,
    returned,
    sentence,
    shown,
    text_of,
    total,
)

KEY_ENV = "HERMES_RELAY_KEY"
CONFIG_ENV = "SANDUK_HERMES_CONFIG"  # the image's entrypoint writes it to hermes' settings
QUIET = {
    "PIP_NO_INDEX": "1",  # it would try to install what it has no need of
    # It gives up on a silent model after two minutes; that is the relay's business.
    "HERMES_STREAM_READ_TIMEOUT": "1800",
    "HERMES_STREAM_STALE_TIMEOUT": "1800",
}
# At an address it knows to be this machine's, hermes asks three times over which of four model
# servers it is, with and without the token. It does not know this spelling, which means the same.
RELAY_HOST, RELAY_ALIAS = "//127.0.0.1:", "//127.1:"
# Told none, it looks it up with others; it shortens its history well before this is full.
CONTEXT_TOKENS = 128_000
MODES: dict[Protocol, str] = {
    "openai-chat": "chat_completions",
    "anthropic-messages": "anthropic_messages",
}
# "HTTP 429: slow down", "API call failed after 3 retries: HTTP 429: slow down"
_RATE_LIMITED = re.compile(r"^(?:API call failed after \d+ retries: )?HTTP 429\b")


class Hermes(Agent):
    name = "hermes"
    recipe = "hermes"
    protocols = ("openai-chat", "anthropic-messages")
    honours = frozenset({"key_env", "base_url_env"})
    needs_model = True
    skills_dir = ".hermes/skills"
    instructions_file = None  # its own file replaces what hermes is told it is

    def task_argument(self, task: str) -> str:
        return f"--oneshot={task}"

    def launch(
        self, request: Request, provider: Provider, *, task: str, root: str, credential: str
    ) -> Launch:
        key_env = request.key_env or KEY_ENV
        base_url = root.replace(RELAY_HOST, RELAY_ALIAS) + provider.prefix
        config = {
            "model": {
                "default": request.model or provider.default_model,
                "provider": "custom:sanduk",
                "context_length": CONTEXT_TOKENS,
                "supports_vision": True,  # else it asks the relay whether it is such a server
            },
            "custom_providers": [
                {
                    "name": "sanduk",
                    "base_url": base_url,
                    "key_env": key_env,
                    "api_mode": MODES[self.protocol(provider)],
                }
            ],
            "security": {"allow_lazy_installs": False},
        }
        env = {**QUIET, key_env: credential or "none", CONFIG_ENV: json.dumps(config)}
        if request.base_url_env:
            env[request.base_url_env] = base_url
        return Launch(("--yolo", self.task_argument(task)), env)

    def reader(self) -> HermesReader:
        return HermesReader()


class HermesReader(Reader):
    """Reads what the image's wrapper prints: messages, then one `result` with the usage file."""

    def __init__(self) -> None:
        self._ended: dict[str, Any] | None = None
        self._text = ""

    def record(self, record: dict[str, Any]) -> Iterable[Trace]:
        kind = record.get("type")
        if kind == "assistant":
            return self._assistant(record)
        if kind == "tool":
            return _tool_result(record)
        if kind == "result":
            self._ended = record
        return ()

    def result(self) -> Result | None:
        if self._ended is None:
            return None
        said = text_of(self._ended.get("text"), ANSWER_CHARS)
        usage = mapping(self._ended.get("usage"))
        error = _error(self._ended, usage, said)
        return Result(
            ok=not error,
            text=self._text if error else said or self._text,
            error=error,
            tally=_tally(usage),
            rate_limited=bool(_RATE_LIMITED.match(error)),
        )

    def _assistant(self, record: dict[str, Any]) -> list[Trace]:
        lines: list[Trace] = []
        if text := text_of(record.get("content")):
            self._text = text_of(record.get("content"), ANSWER_CHARS)
            lines.append(Trace("text", text))
        for call in mappings(record.get("calls")):
            name = text_of(call.get("name"), 200) or "tool"
            lines.append(Trace("tool", name, shown(call.get("input"))))
        return lines


def _tool_result(record: dict[str, Any]) -> list[Trace]:
    name = text_of(record.get("tool"), 200) or "tool"
    code, why = count(record.get("exit_code")), record.get("error")
    if not code and not why:
        return returned(name, record.get("output"))
    how = f"{name} ended with exit code {code}" if code else f"{name} failed"
    return [Trace("problem", how, sentence(why) if why else shown(record.get("output")))]


def _error(ended: dict[str, Any], usage: dict[str, Any], said: str) -> str:
    """What went wrong, in words; empty when hermes says that it completed its work."""
    if usage.get("failed") is False and usage.get("completed") is True:
        return ""
    words = sentence(usage.get("failure") or said).strip()
    if words:
        return words
    code = count(ended.get("exit_code"))
    return f"hermes exited with {code if code is not None else '?'} and no words"


def _tally(usage: dict[str, Any]) -> Tally:
    read, written = usage.get("cache_read_tokens"), usage.get("cache_write_tokens")
    known = usage.get("cost_status") not in (None, "unknown")
    return Tally(
        input_tokens=total(usage.get("input_tokens"), read, written),
        cached_tokens=count(read),
        output_tokens=count(usage.get("output_tokens")),
        turns=count(usage.get("api_calls")),
        cost_usd=dollars(usage.get("estimated_cost_usd")) if known else None,
    )
