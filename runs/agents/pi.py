"""pi, measured at 1.6.0.

The task goes in on standard input: 1 MiB, a leading dash, quotes and newlines arrive as they are,
less white space at both ends. Its exit code is 0 after a failure too: only the records tell.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from relay import Protocol, Provider
from runs.agents.base import Agent, AgentRefusal, Launch, Reader, Request, Result, Tally, Trace
from runs.agents.evidence import (
    count,
    dollars,
    mapping,
    returned,
    sentence,
    shown,
    text_blocks,
    text_of,
    total,
)

KEY_ENV = "PI_RELAY_KEY"
MODELS_ENV = "SANDUK_MODELS_JSON"  # the image's entrypoint writes it to pi's models.json
QUIET = {"PI_OFFLINE": "1", "PI_SKIP_VERSION_CHECK": "1", "PI_TELEMETRY": "0"}
APIS: dict[Protocol, str] = {
    "openai-chat": "openai-completions",
    "anthropic-messages": "anthropic-messages",
    "openai-responses": "openai-responses",
}
TOOLS = ("read", "bash", "edit", "write", "grep", "find", "ls")
_BEYOND_HIGH = ("xhigh", "max")  # pi lowers these to high unless the model maps them
# "429: {...}" of Chat, "429 {...}" of Messages, "sanduk API error (429): {...}" of Responses
_RATE_LIMITED = re.compile(r"^429\b|\(429\)")


class Pi(Agent):
    name = "pi"
    recipe = "pi"
    protocols = ("openai-chat", "anthropic-messages", "openai-responses")
    honours = frozenset({"effort", "allowed_tools", "bare", "key_env", "base_url_env"})
    efforts = ("minimal", "low", "medium", "high", "xhigh", "max")
    takes_stdin = True
    needs_model = True
    skills_dir = ".agents/skills"
    repository_tools = "read,bash,edit,write,grep,find,ls"
    instructions_file = ".pi/agent/AGENTS.md"

    def check(self, request: Request, provider: Provider) -> None:
        super().check(request, provider)
        if request.effort in _BEYOND_HIGH and self.protocol(provider) == "anthropic-messages":
            raise AgentRefusal(
                f"pi sends --effort {request.effort} to provider {provider.name} as high; "
                "say --effort high"
            )
        for word in (request.allowed_tools or "").split(","):
            tool = word.strip()
            if tool not in TOOLS and tool.lower() in TOOLS:
                # An unknown name is no error to pi: it would work without any tool.
                raise AgentRefusal(f"pi knows no tool {tool}; it is called {tool.lower()}")

    def launch(
        self, request: Request, provider: Provider, *, task: str, root: str, credential: str
    ) -> Launch:
        model = request.model or provider.default_model
        argv = ["--print", "--mode", "json", "--no-session", "--no-approve"]
        argv += ["--model", f"sanduk/{model}"]
        if request.effort:
            argv += ["--thinking", request.effort]
        if request.allowed_tools:
            argv += ["--tools", request.allowed_tools]
        if request.bare:
            argv += ["--no-context-files", "--no-extensions", "--no-skills"]
            argv.append("--no-prompt-templates")
        entry: dict[str, Any] = {"id": model}
        if request.effort:
            entry["reasoning"] = True
            entry["thinkingLevelMap"] = {level: level for level in _BEYOND_HIGH}
        key_env, protocol = request.key_env or KEY_ENV, self.protocol(provider)
        env = {
            **QUIET,
            key_env: credential or "none",  # pi asks for a login when it has no key at all
            MODELS_ENV: models_json(provider, protocol, root, api_key=f"${key_env}", model=entry),
        }
        if request.base_url_env:
            env[request.base_url_env] = base_url(provider, protocol, root)
        return Launch(tuple(argv), env, task_on_stdin=True)

    def reader(self) -> PiReader:
        return PiReader()


def base_url(provider: Provider, protocol: Protocol, root: str) -> str:
    """The address pi is told; with Messages it appends /v1/messages itself."""
    if protocol == "anthropic-messages":
        return root + provider.prefix.removesuffix("/v1")
    return root + provider.prefix


def models_json(
    provider: Provider, protocol: Protocol, root: str, *, api_key: str, model: dict[str, Any]
) -> str:
    """pi's model file: one provider, the relay, with one model.

    Args:
        root: `scheme://host:port` of the relay, or of the provider in open mode.
        api_key: how the file names the variable that holds the key; never the key.
        model: the model's entry, its `id` and what else the file says of it.
    """
    made = {
        "name": "sanduk relay",
        "baseUrl": base_url(provider, protocol, root),
        "api": APIS[protocol],
        "apiKey": api_key,
        "models": [model],
    }
    return json.dumps({"providers": {"sanduk": made}}, separators=(",", ":"))


class PiReader(Reader):
    """Reads `--mode json`. It ends with `agent_end`, unless that announces a retry, and then
    `agent_settled`; whether it went well stands in the assistant's last `message_end`."""

    def __init__(self) -> None:
        self._ended = False
        self._answered = False
        self._error = ""
        self._text = ""
        self._turns = 0
        self._input: int | None = None
        self._cached: int | None = None
        self._output: int | None = None
        self._cost: float | None = None

    def record(self, record: dict[str, Any]) -> Iterable[Trace]:
        kind = record.get("type")
        if kind == "message_end":
            return self._message(mapping(record.get("message")))
        if kind == "tool_execution_start":
            name = text_of(record.get("toolName"), 200) or "tool"
            return [Trace("tool", name, shown(record.get("args")))]
        if kind == "tool_execution_end":
            return _tool_end(record)
        if kind == "auto_retry_start":
            attempt, most = count(record.get("attempt")), count(record.get("maxAttempts"))
            why = sentence(record.get("errorMessage")) or "unknown"
            return [Trace("problem", f"retrying, {attempt or '?'} of {most or '?'}: {why}")]
        self._lifecycle(record)
        return ()

    def result(self) -> Result | None:
        if not self._ended:
            return None
        error = self._error or ("" if self._answered else "the agent ended without an answer")
        return Result(
            ok=not error,
            text=self._text,
            error=error,
            tally=Tally(self._input, self._cached, self._output, self._turns, self._cost),
            rate_limited=bool(_RATE_LIMITED.search(error)),
        )

    def _lifecycle(self, record: dict[str, Any]) -> None:
        kind = record.get("type")
        if kind == "agent_start":
            self._ended = False
        elif kind == "agent_end":
            self._ended = not record.get("willRetry")
        elif kind == "agent_settled":
            self._ended = True
            if record.get("aborted") is True:
                self._error = self._error or "the agent says it was aborted"
        elif kind == "auto_retry_end" and record.get("success") is False:
            self._error = sentence(record.get("finalError")) or "every retry failed"

    def _message(self, message: dict[str, Any]) -> list[Trace]:
        if message.get("role") != "assistant":
            return []
        self._add_usage(mapping(message.get("usage")))
        reason = message.get("stopReason")
        if reason in ("error", "aborted"):
            self._error = sentence(message.get("errorMessage")) or f"the model call ended: {reason}"
            return [Trace("problem", self._error)]
        self._error = ""
        self._answered = True
        self._turns += 1
        said = text_blocks(message.get("content"))
        if not said:
            return []
        self._text = said
        return [Trace("text", text_of(said))]

    def _add_usage(self, usage: dict[str, Any]) -> None:
        read = usage.get("cacheRead")
        went_in = total(usage.get("input"), read, usage.get("cacheWrite"))
        self._input = total(self._input, went_in)
        self._cached = total(self._cached, read)
        self._output = total(self._output, usage.get("output"))
        # A model pi has no prices of counts as 0, which would read as free.
        cost = dollars(mapping(usage.get("cost")).get("total"))
        if cost:
            self._cost = dollars((self._cost or 0) + cost)


def _tool_end(record: dict[str, Any]) -> list[Trace]:
    name = text_of(record.get("toolName"), 200) or "tool"
    content = mapping(record.get("result")).get("content")
    if record.get("isError") is not True:
        return returned(name, text_blocks(content))
    return [Trace("problem", f"{name} failed", shown(text_blocks(content)))]
