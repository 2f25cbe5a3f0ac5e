"""Gemini CLI, measured at 0.61.0.

The task goes in on standard input: 1 MiB, a leading dash, quotes and newlines arrive unaltered. Its
settings (a key from the environment, no statistics) are in its image; only where the model is comes
from variables. With a model named it makes no routing call of its own.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable
from typing import Any

from relay import Provider
from runs.agents.base import Agent, Launch, Reader, Request, Result, Sitting, Tally, Trace
from runs.agents.evidence import (
    ANSWER_CHARS,
    clean,
    count,
    mapping,
    returned,
    sentence,
    shown,
    text_of,
)

_WRAPPED = "[API Error: "


class Gemini(Agent):
    name = "gemini"
    recipe = "gemini"
    protocols = ("gemini",)
    honours = frozenset({"key_env", "base_url_env"})
    takes_stdin = True
    sits = True
    skills_dir = ".agents/skills"
    instructions_file = ".gemini/GEMINI.md"

    def launch(
        self, request: Request, provider: Provider, *, task: str, root: str, credential: str
    ) -> Launch:
        argv = ["--output-format", "stream-json", "--yolo", "--skip-trust"]
        if model := request.model or provider.default_model:
            argv.append(f"--model={model}")
        env = _environment(request, provider, root, credential)
        # A task that begins like one of its own slash commands would be taken for the command.
        before = "\n" if task.startswith("/") else ""
        return Launch(tuple(argv), env, task_on_stdin=True, before_task=before)

    def sitting(
        self, request: Request, provider: Provider, *, at: Sitting, root: str, credential: str
    ) -> Launch:
        argv = ["--skip-trust"] if at.asks else ["--yolo", "--skip-trust"]
        if model := request.model or provider.default_model:
            argv.append(f"--model={model}")
        if at.seed:
            argv.append(f"--prompt-interactive={at.seed}")
        return Launch(tuple(argv), _environment(request, provider, root, credential))

    def reader(self) -> GeminiReader:
        return GeminiReader()


def _environment(
    request: Request, provider: Provider, root: str, credential: str
) -> dict[str, str]:
    return {
        request.key_env or "GEMINI_API_KEY": credential or "none",
        request.base_url_env or "GOOGLE_GEMINI_BASE_URL": root + _before_version(provider),
    }


def _before_version(provider: Provider) -> str:
    """The path before `/v1beta/models`, which gemini appends itself."""
    paths = (route.path for route in provider.routes if route.protocol == "gemini")
    return next(paths, "").partition("/v1beta/")[0]


class GeminiReader(Reader):
    """Reads `--output-format stream-json`, which ends with a `result`.

    What the model says comes in pieces; they are one trace line when something else follows.
    """

    def __init__(self) -> None:
        self._result: Result | None = None
        self._text = ""  # said since the last tool call
        self._told = True  # whether it has become a trace line
        self._tools: dict[str, str] = {}  # names by id, of calls whose result is still to come

    def record(self, record: dict[str, Any]) -> Iterable[Trace]:
        kind = record.get("type")
        if kind == "message":
            if record.get("role") == "assistant":
                self._piece(text_of(record.get("content"), ANSWER_CHARS))
            return ()
        lines = self._said()
        if kind == "init":
            lines.append(Trace("note", f"model {text_of(record.get('model'), 200) or 'unknown'}"))
        elif kind == "tool_use":
            lines.append(self._tool(record))
        elif kind == "tool_result":
            lines += self._tool_result(record)
        elif kind == "error":
            words = _api_error(record.get("message"))[0] or "an error without words"
            lines.append(Trace("problem", words))
        elif kind == "result":
            self._result = self._terminal(record)
        return lines

    def result(self) -> Result | None:
        return self._result

    def _piece(self, text: str) -> None:
        if text and self._told:
            self._text, self._told = "", False
        self._text += text[: max(ANSWER_CHARS - len(self._text), 0)]

    def _said(self) -> list[Trace]:
        if self._told:
            return []
        self._told = True
        return [Trace("text", clean(self._text))]

    def _tool(self, record: dict[str, Any]) -> Trace:
        name = text_of(record.get("tool_name"), 200) or "tool"
        if len(self._tools) < 1_000:
            self._tools[text_of(record.get("tool_id"), 200)] = name
        return Trace("tool", name, shown(record.get("parameters")))

    def _tool_result(self, record: dict[str, Any]) -> list[Trace]:
        name = self._tools.pop(text_of(record.get("tool_id"), 200), "") or "tool"
        if record.get("status") != "error":
            return returned(name, record.get("output"))
        why = sentence(record.get("error") or record.get("output"))
        return [Trace("problem", f"{name} failed", why)]

    def _terminal(self, record: dict[str, Any]) -> Result:
        ok = record.get("status") == "success"
        error, limited = ("", False) if ok else _failure(mapping(record.get("error")))
        return Result(
            ok=ok,
            text=self._text,
            error=error,
            tally=_tally(mapping(record.get("stats"))),
            rate_limited=limited,
        )


def _failure(error: dict[str, Any]) -> tuple[str, bool]:
    """The words of a failed run, and whether the provider's rate limit is what they tell."""
    said, status = _api_error(error.get("message"))
    words = said.strip() or text_of(error.get("type"), 200).strip()
    words = words or "the result record says neither success nor why not"
    return (f"{words} (status {status})" if status else words), status == 429


def _api_error(message: object) -> tuple[str, int | None]:
    """What the API answered, out of `[API Error: ...]`: its words and, if they show, its status.

    The status is the error's code where the answer stands there whole. Where only its words do,
    a 429 is the one that gemini adds advice to, on the next line.
    """
    whole = text_of(message).strip()
    text = whole.removeprefix(_WRAPPED)
    if text.startswith("{"):
        with contextlib.suppress(RecursionError, ValueError):
            answer = mapping(json.JSONDecoder().raw_decode(text)[0])
            return sentence(answer), count(mapping(answer.get("error")).get("code"))
    if text == whole:
        return sentence(text), None
    said, _, advice = text.rpartition("]\n")
    if said and not advice.endswith("]"):
        return sentence(said), 429
    return sentence(text.removesuffix("]")), None


def _tally(stats: dict[str, Any]) -> Tally:
    # Cached ones are in what went in.
    went_in, said = count(stats.get("input_tokens")), count(stats.get("output_tokens"))
    everything = count(stats.get("total_tokens"))
    if everything is not None and went_in is not None and said is not None:
        said = max(said, everything - went_in)  # what was thought is in the sum only
    return Tally(input_tokens=went_in, cached_tokens=count(stats.get("cached")), output_tokens=said)
