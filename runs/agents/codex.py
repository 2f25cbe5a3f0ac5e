"""Codex, measured at 0.171.0.

The task goes in on standard input (`-`): 1 MiB, a leading dash, quotes and newlines arrive
unaltered. The provider is made known by `-c` flags; the key stays in a variable.

Before a person it asks at its first start whether it may trust the directory, and offers a newer
model than the one it was given: both are answered by `-c` flags too. A sandbox of its own cannot be
made inside the container: told to ask, it can run nothing but what it asked for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from relay import Provider
from runs.agents.base import Agent, Launch, Reader, Request, Result, Sitting, Tally, Trace
from runs.agents.evidence import (
    ANSWER_CHARS,
    count,
    mapping,
    returned,
    sentence,
    shown,
    text_of,
)

DEFAULT_MODEL = "gpt-5.6-luna"
KEY_ENV = "CODEX_RELAY_KEY"
# Without these it looks up four names in the background and leaves seconds late.
QUIET = {
    "analytics.enabled": False,
    "check_for_update_on_startup": False,
    "features.plugins": False,
    "features.apps": False,
}
# Models it would offer another one for, as its own table has them.
NEWER_MODELS = {
    "gpt-5.5": "gpt-6-sol",
    "gpt-5.6-luna": "gpt-6-luna",
    "gpt-5.6-sol": "gpt-6-sol",
    "gpt-5.6-terra": "gpt-6-sol",
}
# "unexpected status 429 Too Many Requests", "exceeded retry limit, last status: 429 ..."
_RATE_LIMITED = re.compile(r"\bstatus:? 429\b")


class Codex(Agent):
    name = "codex"
    recipe = "codex"
    protocols = ("openai-responses",)
    honours = frozenset({"effort", "key_env", "base_url_env"})
    # It sends any word on as it is; these are the ones the Responses API has names for.
    efforts = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
    takes_stdin = True
    sits = True
    skills_dir = ".agents/skills"
    instructions_file = ".codex/AGENTS.md"

    def launch(
        self, request: Request, provider: Provider, *, task: str, root: str, credential: str
    ) -> Launch:
        settings, env = _settings(request, provider, root, credential)
        argv = ["exec", "--json", "--sandbox", "danger-full-access", "--ignore-user-config"]
        argv.append("--skip-git-repo-check")
        argv += _flags(settings)
        argv.append(f"--model={request.model or provider.default_model or DEFAULT_MODEL}")
        argv.append("-")
        return Launch(tuple(argv), env, task_on_stdin=True)

    def sitting(
        self, request: Request, provider: Provider, *, at: Sitting, root: str, credential: str
    ) -> Launch:
        settings, env = _settings(request, provider, root, credential)
        # a table: a path would be cut at its dots
        trusted = f'{{{json.dumps(at.workdir)}={{trust_level="trusted"}}}}'
        seen = ",".join(f'"{old}"="{new}"' for old, new in NEWER_MODELS.items())
        if at.asks:
            argv = ["--sandbox=workspace-write", "--ask-for-approval=on-request"]
        else:
            argv = ["--dangerously-bypass-approvals-and-sandbox"]
        argv += _flags(settings)
        argv += ["-c", f"projects={trusted}", "-c", f"notice.model_migrations={{{seen}}}"]
        argv.append(f"--model={request.model or provider.default_model or DEFAULT_MODEL}")
        if at.seed:
            argv += ["--", at.seed]
        return Launch(tuple(argv), env)

    def reader(self) -> CodexReader:
        return CodexReader()


def _settings(
    request: Request, provider: Provider, root: str, credential: str
) -> tuple[dict[str, str | bool], dict[str, str]]:
    """What `-c` flags say, and the environment."""
    settings: dict[str, str | bool] = {
        "model_provider": "sanduk",
        "model_providers.sanduk.name": "sanduk relay",
        "model_providers.sanduk.base_url": root + provider.prefix,
        "model_providers.sanduk.wire_api": "responses",
        **QUIET,
    }
    env = {"CODEX_DISABLE_UPDATE_CHECK": "1"}
    if credential:  # codex refuses to start when the variable it is told to read is empty
        key_env = request.key_env or KEY_ENV
        settings["model_providers.sanduk.env_key"] = key_env
        env[key_env] = credential
    if request.base_url_env:
        env[request.base_url_env] = root + provider.prefix
    if request.effort:
        settings["model_reasoning_effort"] = request.effort
    return settings, env


def _flags(settings: dict[str, str | bool]) -> list[str]:
    flags: list[str] = []
    for key, value in settings.items():
        flags += ["-c", f"{key}={json.dumps(value, ensure_ascii=False)}"]
    return flags


class CodexReader(Reader):
    """Reads `exec --json`. `turn.completed` and `turn.failed` are the terminal records."""

    def __init__(self) -> None:
        self._result: Result | None = None
        self._text = ""

    def record(self, record: dict[str, Any]) -> Iterable[Trace]:
        kind = record.get("type")
        if kind in ("item.started", "item.completed"):
            return self._item(mapping(record.get("item")), ended=kind == "item.completed")
        if kind == "error":
            # Printed before each retry too, so it fails nothing: `turn.failed` does.
            return [Trace("problem", sentence(record.get("message")) or "an error without words")]
        if kind == "turn.started":
            self._result = None
        elif kind == "turn.completed":
            usage = mapping(record.get("usage"))
            self._result = Result(ok=True, text=self._text, tally=_tally(usage))
        elif kind == "turn.failed":
            error = sentence(record.get("error")) or "the turn failed without a reason"
            self._result = Result(
                ok=False,
                text=self._text,
                error=error,
                tally=_tally(mapping(record.get("usage"))),
                rate_limited=bool(_RATE_LIMITED.search(error)),
            )
        return ()

    def result(self) -> Result | None:
        return self._result

    def _item(self, item: dict[str, Any], *, ended: bool) -> list[Trace]:
        kind = text_of(item.get("type"), 200)
        if kind == "command_execution":
            return _command(item, ended=ended)
        if not ended or kind in ("", "reasoning"):
            return []
        if kind == "agent_message":
            self._text = text_of(item.get("text"), ANSWER_CHARS)
            text = text_of(item.get("text"))
            return [Trace("text", text)] if text else []
        if kind == "error":  # a warning, such as a model it has no data of
            return [Trace("note", sentence(item.get("message")))]
        rest = {key: value for key, value in item.items() if key not in ("id", "type")}
        return [Trace("tool", kind.replace("_", " "), shown(rest))]


def _command(item: dict[str, Any], *, ended: bool) -> list[Trace]:
    if not ended:
        return [Trace("tool", "command", shown(item.get("command")))]
    code = count(item.get("exit_code"))
    if item.get("status") == "failed" or code:
        how = f"command ended with exit code {code}" if code else "command failed"
        return [Trace("problem", how, shown(item.get("aggregated_output")))]
    return returned("command", item.get("aggregated_output"))


def _tally(usage: dict[str, Any]) -> Tally:
    return Tally(
        input_tokens=count(usage.get("input_tokens")),  # cached ones are in it
        cached_tokens=count(usage.get("cached_input_tokens")),
        output_tokens=count(usage.get("output_tokens")),
    )
