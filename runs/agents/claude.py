"""Claude Code, measured at 2.1.332.

The task goes in on standard input: 1 MiB, a leading dash, quotes and newlines arrive unaltered.
claude waits three seconds for its first byte. A task that begins with the name of one of its own
slash commands (`/compact`) is that command, as it is for a person who types it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from relay import Provider
from runs.agents.base import (
    Agent,
    AgentRefusal,
    Launch,
    Reader,
    Request,
    Result,
    Sitting,
    Tally,
    Trace,
)
from runs.agents.evidence import (
    ANSWER_CHARS,
    count,
    dollars,
    mapping,
    mappings,
    returned,
    sentence,
    shown,
    text_blocks,
    text_of,
    total,
)

PERMISSION_MODES = ("acceptEdits", "auto", "bypassPermissions", "dontAsk", "manual", "plan")
# Without these it looks names up, asks for updates and sends HEAD /api/hello.
QUIET = {
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
}
# A key it was not told about before is asked about, by its last letters.
KEY_TAIL = 20
_ASKING = frozenset({"AskUserQuestion", "ExitPlanMode"})


class Claude(Agent):
    name = "claude"
    recipe = "claude"
    protocols = ("anthropic-messages",)
    honours = frozenset({
        "effort", "max_turns", "allowed_tools", "permission_mode", "bare", "key_env",
        "base_url_env",
    })  # fmt: skip
    efforts = ("low", "medium", "high", "xhigh", "max")  # others it ignores with a warning
    takes_stdin = True
    sits = True
    skills_dir = ".claude/skills"
    repository_tools = "Read,Edit,Write,Bash,Glob,Grep,Skill"
    instructions_file = ".claude/CLAUDE.md"

    def check(self, request: Request, provider: Provider) -> None:
        super().check(request, provider)
        mode = request.permission_mode
        if mode and mode not in PERMISSION_MODES:
            raise AgentRefusal(
                f"claude does not know --permission-mode {mode!r}; "
                f"it takes {', '.join(PERMISSION_MODES)}"
            )

    def launch(
        self, request: Request, provider: Provider, *, task: str, root: str, credential: str
    ) -> Launch:
        argv = ["-p", "--output-format", "stream-json", "--verbose"]
        if request.bare:
            argv.append("--bare")
        if request.permission_mode:
            argv.append(f"--permission-mode={request.permission_mode}")
        else:
            argv.append("--dangerously-skip-permissions")
        model = request.model or provider.default_model
        # One element each: `--allowed-tools` alone would swallow what follows it.
        argv += [
            f"--{flag}={value}"
            for flag, value in (
                ("model", model),
                ("effort", request.effort),
                ("allowed-tools", request.allowed_tools),
                ("max-turns", request.max_turns),
            )
            if value
        ]
        env = _environment(request, provider, root, credential)
        # A task that begins like one of its own slash commands would be taken for the command.
        before = "\n" if task.startswith("/") else ""
        return Launch(tuple(argv), env, task_on_stdin=True, before_task=before)

    def sitting(
        self, request: Request, provider: Provider, *, at: Sitting, root: str, credential: str
    ) -> Launch:
        if at.asks:
            argv = ["--permission-mode=manual"]  # by itself it decides about most things alone
        else:
            accepted = {"skipDangerousModePermissionPrompt": True}
            argv = ["--dangerously-skip-permissions", f"--settings={json.dumps(accepted)}"]
        if model := request.model or provider.default_model:
            argv.append(f"--model={model}")
        if at.seed:
            argv += ["--", at.seed]
        known: dict[str, Any] = {
            "hasCompletedOnboarding": True,
            "projects": {at.workdir: {"hasTrustDialogAccepted": True}},
        }
        if credential:
            known["customApiKeyResponses"] = {"approved": [credential[-KEY_TAIL:]], "rejected": []}
        return Launch(
            tuple(argv),
            _environment(request, provider, root, credential),
            home_files={".claude.json": json.dumps(known)},
        )

    def reader(self) -> ClaudeReader:
        return ClaudeReader()


def _environment(
    request: Request, provider: Provider, root: str, credential: str
) -> dict[str, str]:
    env = {**QUIET, request.key_env or "ANTHROPIC_API_KEY": credential}
    if request.base_url_env or provider.name != "anthropic" or root != _own_root(provider):
        # claude appends /v1/messages itself.
        address = root + provider.prefix.removesuffix("/v1")
        env[request.base_url_env or "ANTHROPIC_BASE_URL"] = address
    return env


def _own_root(provider: Provider) -> str:
    port = f":{provider.port}" if provider.port else ""
    return f"{provider.scheme}://{provider.host}{port}"


class ClaudeReader(Reader):
    """Reads `--output-format stream-json`. The last `result` record is the terminal one."""

    def __init__(self) -> None:
        self._result: Result | None = None
        self._text = ""
        self._tools: dict[str, str] = {}  # names by id, of calls whose result is still to come
        self._last_tool = ("", "")  # id and name
        self._denied: set[str] = set()
        self._resets_at: float | None = None

    def record(self, record: dict[str, Any]) -> Iterable[Trace]:
        kind = record.get("type")
        if kind == "assistant":
            return self._assistant(record)
        if kind == "user":
            return self._tool_results(record)
        if kind == "system":
            return self._system(record)
        if kind == "rate_limit_event":
            return self._rate_limit(mapping(record.get("rate_limit_info")))
        if kind == "result":
            self._result = self._terminal(record)
        return ()

    def result(self) -> Result | None:
        return self._result

    def _assistant(self, record: dict[str, Any]) -> list[Trace]:
        lines: list[Trace] = []
        for block in mappings(mapping(record.get("message")).get("content")):
            if block.get("type") == "text":
                lines += self._said(record, block)
            elif block.get("type") == "tool_use":
                identity, name = text_of(block.get("id"), 200), text_of(block.get("name"), 200)
                self._last_tool = (identity, name)
                if len(self._tools) < 1_000:
                    self._tools[identity] = name
                lines.append(Trace("tool", name or "tool", shown(block.get("input"))))
        return lines

    def _said(self, record: dict[str, Any], block: dict[str, Any]) -> list[Trace]:
        text = text_of(block.get("text"))
        if not text:
            return []
        if record.get("is_api_error_message") is True:
            return [Trace("problem", sentence(text))]
        if record.get("parent_tool_use_id") is None:  # otherwise an agent it started speaks
            self._text = text_of(block.get("text"), ANSWER_CHARS)
        return [Trace("text", text)]

    def _tool_results(self, record: dict[str, Any]) -> list[Trace]:
        lines: list[Trace] = []
        for block in mappings(mapping(record.get("message")).get("content")):
            if block.get("type") != "tool_result":
                continue
            name = self._tools.pop(text_of(block.get("tool_use_id"), 200), "") or "tool"
            if block.get("is_error") is True:
                lines.append(Trace("problem", f"{name} failed", _content(block.get("content"))))
            else:
                lines += returned(name, _content(block.get("content")))
        return lines

    def _system(self, record: dict[str, Any]) -> list[Trace]:
        subtype = record.get("subtype")
        if subtype == "api_retry":
            status = count(record.get("error_status"))
            why = text_of(record.get("error"), 200) or "unknown"
            attempt, most = count(record.get("attempt")), count(record.get("max_retries"))
            of = f"{attempt or '?'} of {most or '?'}"
            answer = f" (status {status})" if status else ""
            return [Trace("problem", f"retrying, {of}: {why}{answer}")]
        if subtype == "permission_denied":
            self._deny(record)
            tool = text_of(record.get("tool_name"), 200) or "a tool"
            return [Trace("problem", f"no permission for {tool}", sentence(record.get("message")))]
        if subtype == "init":
            return [Trace("note", f"model {text_of(record.get('model'), 200) or 'unknown'}")]
        return []

    def _rate_limit(self, info: dict[str, Any]) -> list[Trace]:
        if info.get("status") != "rejected":
            return []
        resets_at = count(info.get("resetsAt"))
        self._resets_at = None if resets_at is None else float(resets_at)
        return [Trace("problem", "the provider's rate limit is reached")]

    def _deny(self, denial: dict[str, Any]) -> None:
        if len(self._denied) < 1_000:
            self._denied.add(text_of(denial.get("tool_use_id"), 200))

    def _terminal(self, record: dict[str, Any]) -> Result:
        subtype = text_of(record.get("subtype"), 200)
        # A failed API call says subtype "success" with is_error true: both must be good.
        ok = record.get("is_error") is False and subtype == "success"
        said = text_of(record.get("result"), ANSWER_CHARS)
        limited = not ok and record.get("api_error_status") == 429
        for denial in mappings(record.get("permission_denials")):
            self._deny(denial)
        identity, tool = self._last_tool
        return Result(
            ok=ok,
            text=said if ok and said else self._text,
            error="" if ok else _error(record, subtype),
            tally=_tally(record),
            # Nobody answers in print mode: a refused last tool call, or one that asks a person,
            # is what the agent stopped at. A call refused earlier was worked around.
            needs_input=tool in _ASKING or bool(identity and identity in self._denied),
            rate_limited=limited,
            resets_at=self._resets_at if limited else None,
        )


def _content(content: object) -> str:
    """The text of a tool result, which is a string or a list of blocks."""
    return shown(text_blocks(content) if isinstance(content, list) else content)


def _error(record: dict[str, Any], subtype: str) -> str:
    for key in ("result", "errors", "terminal_reason"):
        words = sentence(record.get(key)) if record.get(key) else ""
        if words:
            return words
    return subtype.replace("_", " ") or "the result record says neither success nor error"


def _tally(record: dict[str, Any]) -> Tally:
    usage = mapping(record.get("usage"))
    read, written = usage.get("cache_read_input_tokens"), usage.get("cache_creation_input_tokens")
    return Tally(
        input_tokens=total(usage.get("input_tokens"), read, written),
        cached_tokens=count(read),
        output_tokens=count(usage.get("output_tokens")),
        turns=count(record.get("num_turns")),
        cost_usd=dollars(record.get("total_cost_usd")),
    )
