"""opencode, measured at 1.18.33.

The task goes in on standard input: so it reaches the model unaltered, while as an argument opencode
would wrap it in quotation marks. The provider is made known by a variable that holds configuration;
the key stays in another. Its drivers for both protocols are inside its binary.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from relay import Protocol, Provider
from runs.agents.base import Agent, AgentRefusal, Launch, Reader, Request, Result, Tally, Trace
from runs.agents.evidence import (
    ANSWER_CHARS,
    count,
    dollars,
    mapping,
    returned,
    sentence,
    shown,
    text_of,
    total,
)

KEY_ENV = "OPENCODE_RELAY_KEY"
CONFIG_ENV = "OPENCODE_CONFIG_CONTENT"
# Without the last it looks up where its list of models is.
QUIET = {
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
}
# Instruction files and settings of the workspace, plug-ins, skills from outside of its own folder.
BARE = {
    "OPENCODE_DISABLE_PROJECT_CONFIG": "1",
    "OPENCODE_DISABLE_CLAUDE_CODE": "1",
    "OPENCODE_DISABLE_EXTERNAL_SKILLS": "1",
    "OPENCODE_PURE": "1",
}
DRIVERS: dict[Protocol, str] = {
    "openai-chat": "@ai-sdk/openai-compatible",
    "anthropic-messages": "@ai-sdk/anthropic",
}
EFFORTS: dict[Protocol, str] = {
    "openai-chat": "reasoningEffort",
    "anthropic-messages": "effort",
}
TOOLS = ("bash", "edit", "glob", "grep", "read", "skill", "task", "todowrite", "webfetch", "write")
_UNFINISHED = frozenset({"", "tool-calls"})
_FAILED = frozenset({"content-filter", "error"})


class Opencode(Agent):
    name = "opencode"
    recipe = "opencode"
    protocols = ("openai-chat", "anthropic-messages")
    honours = frozenset({"effort", "allowed_tools", "bare", "key_env", "base_url_env"})
    efforts = ("low", "medium", "high", "xhigh", "max")
    takes_stdin = True
    needs_model = True
    skills_dir = ".agents/skills"
    instructions_file = ".config/opencode/AGENTS.md"

    def check(self, request: Request, provider: Provider) -> None:
        super().check(request, provider)
        for tool in _tools(request):
            if tool not in TOOLS and tool.lower() in TOOLS:
                # An unknown name is no error to opencode: it would work without any tool.
                raise AgentRefusal(f"opencode knows no tool {tool}; it is called {tool.lower()}")

    def launch(
        self, request: Request, provider: Provider, *, task: str, root: str, credential: str
    ) -> Launch:
        model = request.model or provider.default_model
        protocol = self.protocol(provider)
        entry: dict[str, Any] = {"name": model}
        if request.effort:
            entry["options"] = {EFFORTS[protocol]: request.effort}
        key_env, base_url = request.key_env or KEY_ENV, root + provider.prefix
        made = {
            "npm": DRIVERS[protocol],
            "name": "sanduk relay",
            "options": {"baseURL": base_url, "apiKey": f"{{env:{key_env}}}"},
            "models": {model: entry},
        }
        config: dict[str, Any] = {"provider": {"sanduk": made}}
        if tools := _tools(request):
            config["permission"] = {"*": "deny", **dict.fromkeys(tools, "allow")}
        argv = ["run", "--format", "json", "--auto"]
        argv += ["--title", "run"]  # else it asks the model for one, which its own count leaves out
        argv += ["--model", f"sanduk/{model}"]
        env = {
            **QUIET,
            **(BARE if request.bare else {}),
            key_env: credential or "none",
            CONFIG_ENV: json.dumps(config, separators=(",", ":")),
        }
        if request.base_url_env:
            env[request.base_url_env] = base_url
        return Launch(tuple(argv), env, task_on_stdin=True)

    def reader(self) -> OpencodeReader:
        return OpencodeReader()


def _tools(request: Request) -> list[str]:
    words = (word.strip() for word in (request.allowed_tools or "").split(","))
    return [word for word in words if word]


class OpencodeReader(Reader):
    """Reads `--format json`. It has no last record of its own: the last `step_finish` that was not
    for tool calls ends it well, an `error` after it ends it badly."""

    def __init__(self) -> None:
        self._reason = ""  # why the last step ended
        self._error = ""
        self._limited = False
        self._text = ""
        self._turns: int | None = None
        self._input: int | None = None
        self._cached: int | None = None
        self._output: int | None = None
        self._cost: float | None = None

    def record(self, record: dict[str, Any]) -> Iterable[Trace]:
        kind = record.get("type")
        part = mapping(record.get("part"))
        if kind == "text":
            self._text = text_of(part.get("text"), ANSWER_CHARS) or self._text
            text = text_of(part.get("text"))
            return [Trace("text", text)] if text else ()
        if kind == "tool_use":
            return _tool(part)
        if kind == "step_finish":
            self._step(part)
        elif kind == "error":
            self._error, self._limited = _failure(record.get("error"))
            return [Trace("problem", self._error)]
        return ()

    def result(self) -> Result | None:
        error = self._error
        if not error and self._reason in _UNFINISHED:
            return None
        if not error and self._reason in _FAILED:
            error = f"the model call ended: {self._reason}"
        return Result(
            ok=not error,
            text=self._text,
            error=error,
            tally=Tally(self._input, self._cached, self._output, self._turns, self._cost),
            rate_limited=self._limited,
        )

    def _step(self, part: dict[str, Any]) -> None:
        self._error, self._limited = "", False
        self._reason = text_of(part.get("reason"), 200) or "stop"
        self._turns = total(self._turns, 1)
        tokens = mapping(part.get("tokens"))
        cache = mapping(tokens.get("cache"))
        read = cache.get("read")
        went_in = total(tokens.get("input"), read, cache.get("write"))
        self._input = total(self._input, went_in)
        self._cached = total(self._cached, read)
        # Its `output` leaves out what was thought.
        self._output = total(self._output, tokens.get("output"), tokens.get("reasoning"))
        cost = dollars(part.get("cost"))
        if cost:  # it is told no prices, so a 0 is one it does not know
            self._cost = dollars((self._cost or 0) + cost)


def _tool(part: dict[str, Any]) -> list[Trace]:
    """A tool's one record comes when it has ended: its input first, then how it failed, if so."""
    name = text_of(part.get("tool"), 200) or "tool"
    state = mapping(part.get("state"))
    lines = [Trace("tool", name, shown(state.get("input")))]
    code = count(mapping(state.get("metadata")).get("exit"))
    if state.get("status") == "error":
        lines.append(Trace("problem", f"{name} failed", sentence(state.get("error"))))
    elif code:
        how = f"{name} ended with exit code {code}"
        lines.append(Trace("problem", how, shown(state.get("output"))))
    else:
        lines += returned(name, state.get("output"))
    return lines


def _failure(value: object) -> tuple[str, bool]:
    """An error's words, and whether the provider's rate limit is what it tells."""
    error = mapping(value)
    data = mapping(error.get("data"))
    words = sentence(data.get("message") or value).strip()
    if not words:
        words = text_of(error.get("name"), 200).strip() or "an error without words"
    status = count(data.get("statusCode"))
    return (f"{words} (status {status})" if status else words), status == 429
