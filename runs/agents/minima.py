"""minima 0.3.0, from its documents: it was not run here.

It has four providers of its own; which of them is told where the relay is follows from whose API
the relay forwards to. The task is bound to its flag, so it may begin with a dash.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from relay import Protocol, Provider
from runs.agents.base import Agent, Launch, Reader, Request, Result, Tally, Trace
from runs.agents.evidence import (
    ANSWER_CHARS,
    count,
    names_rate_limit,
    outcome_error,
    returned,
    shown,
    text_of,
)

_OWN = ("anthropic", "openai", "openrouter")  # these it calls as we do
_BY_PROTOCOL: dict[Protocol, str] = {
    "openai-chat": "llamacpp",
    "anthropic-messages": "anthropic",
    "openai-responses": "openai",
}
_CALL_KEYS = ("type", "id", "call_id", "name")  # the rest is the tool's input
_RESULT_KEYS = ("type", "id", "call_id", "name", "ok")  # the rest is its output


class Minima(Agent):
    name = "minima"
    recipe = "minima"
    protocols = ("openai-chat", "anthropic-messages", "openai-responses")
    honours = frozenset({"max_turns", "key_env", "base_url_env"})
    needs_model = True
    skills_dir = ".config/minima/skills"
    instructions_file = ".config/minima/AGENTS.md"
    from_documents = True

    def task_argument(self, task: str) -> str:
        return f"--prompt={task}"

    def launch(
        self, request: Request, provider: Provider, *, task: str, root: str, credential: str
    ) -> Launch:
        own = provider.name if provider.name in _OWN else _BY_PROTOCOL[self.protocol(provider)]
        argv = ["--json", f"--provider={own}"]
        argv.append(f"--model={request.model or provider.default_model}")
        if request.max_turns is not None:
            argv.append(f"--max-turns={request.max_turns}")
        argv.append(self.task_argument(task))
        env = {
            request.key_env or "MINIMA_API_KEY": credential or "none",
            request.base_url_env or "MINIMA_BASE_URL": root + provider.prefix,
        }
        return Launch(tuple(argv), env)

    def reader(self) -> MinimaReader:
        return MinimaReader()


class MinimaReader(Reader):
    """Reads `--json`. A record of type `result` is the terminal one and holds the sums."""

    def __init__(self) -> None:
        self._result: Result | None = None
        self._text = ""

    def record(self, record: dict[str, Any]) -> Iterable[Trace]:
        kind = record.get("type")
        if kind == "result":
            self._result = self._end(record)
        elif kind == "turn":
            self._text = text_of(record.get("text"), ANSWER_CHARS) or self._text
            text = text_of(record.get("text"))
            return [Trace("text", text)] if text else ()
        elif kind == "tool_call":
            return [Trace("tool", _name(record), _rest(record, _CALL_KEYS))]
        elif kind == "tool_result":
            output = _rest(record, _RESULT_KEYS)
            if record.get("ok"):
                return returned(_name(record), output)
            return [Trace("problem", f"{_name(record)} failed", output)]
        elif kind == "retry":
            attempt = count(record.get("attempt"))
            return [Trace("problem", f"retrying, attempt {'?' if attempt is None else attempt}")]
        return ()

    def result(self) -> Result | None:
        return self._result

    def _end(self, record: dict[str, Any]) -> Result:
        error = outcome_error(record)
        tally = Tally(
            input_tokens=count(record.get("input_tokens")),
            output_tokens=count(record.get("output_tokens")),
            turns=count(record.get("turns")),
        )
        return Result(
            ok=not error,
            text=text_of(record.get("text"), ANSWER_CHARS) or self._text,
            error=error,
            tally=tally,
            rate_limited=names_rate_limit(error),
        )


def _name(record: dict[str, Any]) -> str:
    return text_of(record.get("name"), 200) or "tool"


def _rest(record: dict[str, Any], known: tuple[str, ...]) -> str:
    rest = {key: value for key, value in record.items() if key not in known}
    return shown(rest) if rest else ""
