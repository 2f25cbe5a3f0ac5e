"""hax 0.5.0, from its documents: it was not run here.

The task is a bare argument. It starts itself under the name `hax` for its own sub-tasks, so that
is what its image must call it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from relay import Provider
from runs.agents.base import Agent, Launch, Reader, Request, Result, Tally, Trace
from runs.agents.evidence import (
    ANSWER_CHARS,
    count,
    dollars,
    mapping,
    names_rate_limit,
    outcome_error,
    shown,
    text_of,
    total,
)

QUIET = {"HAX_CATALOG_URL": "", "HAX_NOTIFY": "off"}  # no look-up of models, no notification
_ITEM_KEYS = ("kind", "type", "id", "call_id", "tool_name")  # the rest is the tool's input


class Hax(Agent):
    name = "hax"
    recipe = "hax"
    protocols = ("openai-chat", "anthropic-messages")
    honours = frozenset({"effort", "max_turns", "bare", "key_env", "base_url_env"})
    efforts = ("low", "medium", "high")  # the words both protocols have in common
    skills_dir = ".agents/skills"
    instructions_file = ".config/hax/AGENTS.md"
    from_documents = True

    def task_argument(self, task: str) -> str:
        # Its documents know no `--`; what begins with a line break is a flag to no parser.
        return f"\n{task}" if task.startswith("-") else task

    def launch(
        self, request: Request, provider: Provider, *, task: str, root: str, credential: str
    ) -> Launch:
        messages = self.protocol(provider) == "anthropic-messages"
        flavour = "anthropic" if messages else "openai"
        variable = f"HAX_{flavour.upper()}"
        argv = ["--json", f"--provider={flavour}-compatible"]
        if model := request.model or provider.default_model:
            argv.append(f"--model={model}")
        if request.effort:
            argv.append(f"--effort={request.effort}")
        if request.bare:
            argv.append("--bare")
        argv.append(self.task_argument(task))
        env = {
            **QUIET,
            request.key_env or f"{variable}_API_KEY": credential or "none",
            request.base_url_env or f"{variable}_BASE_URL": root + provider.prefix,
        }
        if request.max_turns is not None:
            env["HAX_MAX_TURNS"] = str(request.max_turns)
        return Launch(tuple(argv), env)

    def reader(self) -> HaxReader:
        return HaxReader()


class HaxReader(Reader):
    """Reads `--json`: items with a `kind`, then one record of type `result`.

    Tokens stand in the `turn_usage` items, turns and cost in the result.
    """

    def __init__(self) -> None:
        self._result: Result | None = None
        self._text = ""
        self._input: int | None = None
        self._cached: int | None = None
        self._output: int | None = None

    def record(self, record: dict[str, Any]) -> Iterable[Trace]:
        if record.get("type") == "result":
            self._result = self._end(record)
            return ()
        kind = record.get("kind")
        if kind == "assistant":
            self._text = text_of(record.get("text"), ANSWER_CHARS) or self._text
            text = text_of(record.get("text"))
            return [Trace("text", text)] if text else ()
        if kind == "tool_call":
            name = text_of(record.get("tool_name"), 200) or "tool"
            rest = {key: value for key, value in record.items() if key not in _ITEM_KEYS}
            return [Trace("tool", name, shown(rest) if rest else "")]
        if kind == "turn_usage":
            usage = mapping(record.get("usage"))
            self._input = total(self._input, usage.get("input"))  # cached ones are in it
            self._cached = total(self._cached, usage.get("cached"))
            self._output = total(self._output, usage.get("output"))
        return ()

    def result(self) -> Result | None:
        return self._result

    def _end(self, record: dict[str, Any]) -> Result:
        error = outcome_error(record)
        tally = Tally(
            self._input,
            self._cached,
            self._output,
            count(record.get("turns")),
            # It is told no prices, so a 0 is a cost it does not know.
            dollars(record.get("cost")) or None,
        )
        return Result(
            ok=not error,
            text=text_of(record.get("text"), ANSWER_CHARS) or self._text,
            error=error,
            tally=tally,
            rate_limited=names_rate_limit(error),
        )
