"""An agent that is told what to do by a shell script: the task is the script, `sh -s` runs it.

It makes a container print and do anything. What it prints is read as JSON lines:

    {"type": "text", "text": ...}
    {"type": "tool", "text": ..., "detail": ...}
    {"type": "problem", "text": ...}
    {"type": "result", "ok": true, "text": ..., "error": ..., "needs_input": ...,
     "rate_limited": ..., "resets_at": ..., "input_tokens": ..., "output_tokens": ...}

Other lines are ignored. The script finds the relay in $RELAY_URL (with the provider's path
prefix), the run token in $RELAY_TOKEN and the model in $RELAY_MODEL. A script that is followed by
the report instruction ends with `exit`, so that the shell does not read on.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from relay import Provider
from runs.agents.base import Agent, Launch, Reader, Request, Result, Tally, Trace, TraceKind
from runs.agents.evidence import count, sentence, shown, text_of

TRACED: dict[str, TraceKind] = {"text": "text", "tool": "tool", "problem": "problem"}


class Scripted(Agent):
    """Counts as an agent that calls its model, so a run without a relayed call fails."""

    name = "scripted"
    recipe = str(Path(__file__).with_name("scripted.json"))
    protocols = ("anthropic-messages", "openai-chat", "openai-responses")
    honours = frozenset({"key_env", "base_url_env"})
    takes_stdin = True
    for_tests = True
    skills_dir = ".agents/skills"
    instructions_file = ".config/scripted/AGENTS.md"

    def launch(
        self, request: Request, provider: Provider, *, task: str, root: str, credential: str
    ) -> Launch:
        url = root + provider.prefix if root else ""
        env = {
            request.base_url_env or "RELAY_URL": url,
            request.key_env or "RELAY_TOKEN": credential,
        }
        env["RELAY_MODEL"] = request.model or provider.default_model
        return Launch(("-s",), env, task_on_stdin=True)

    def reader(self) -> ScriptedReader:
        return ScriptedReader()


class ScriptedOffline(Scripted):
    """The same for runs with no model: a report without a single relayed call is a success."""

    name = "scripted-offline"
    calls_model = False


class ScriptedReader(Reader):
    def __init__(self) -> None:
        self._result: Result | None = None

    def record(self, record: dict[str, Any]) -> Iterable[Trace]:
        kind = record.get("type")
        if kind == "result":
            self._result = _result(record)
        elif isinstance(kind, str) and kind in TRACED:
            return [Trace(TRACED[kind], text_of(record.get("text")), shown(record.get("detail")))]
        return ()

    def result(self) -> Result | None:
        return self._result


def _result(record: dict[str, Any]) -> Result:
    ok = record.get("ok") is True
    resets_at = count(record.get("resets_at"))
    return Result(
        ok=ok,
        text=text_of(record.get("text")),
        error="" if ok else sentence(record.get("error")) or "the script says it failed",
        tally=Tally(
            input_tokens=count(record.get("input_tokens")),
            output_tokens=count(record.get("output_tokens")),
        ),
        needs_input=record.get("needs_input") is True,
        rate_limited=record.get("rate_limited") is True,
        resets_at=None if resets_at is None else float(resets_at),
    )
