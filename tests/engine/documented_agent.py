#!/usr/bin/python3
"""Stands in for hax, minima or prime-agent, whichever it is called: no more than their documents.

It asks the model once what the task says, where and with the key it was told, and reports the
answer in that agent's records. A task that begins with `-fail` ends as a failure. Standard library
only.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.request
from pathlib import Path
from typing import Any


def ask(base: str, key: str, model: str, task: str) -> dict[str, Any]:
    body = json.dumps({"model": model, "messages": [{"role": "user", "content": task}]})
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    url = f"{base}/chat/completions"
    request = urllib.request.Request(url, body.encode(), headers)  # noqa: S310 - the relay
    with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
        found: dict[str, Any] = json.load(answer)
    return found


def say(**record: Any) -> None:
    print(json.dumps(record), flush=True)


def flag(name: str) -> str:
    (value,) = [word for word in sys.argv if word.startswith(f"--{name}=")]
    return value.partition("=")[2]


def hax() -> None:
    if "--provider=openai-compatible" not in sys.argv:
        sys.exit("hax: another provider was expected")
    task, key = sys.argv[-1], os.environ["HAX_OPENAI_API_KEY"]
    text, usage = told(ask(os.environ["HAX_OPENAI_BASE_URL"], key, flag("model"), task))
    say(kind="assistant", text=text)
    say(kind="tool_call", tool_name="write", input={"path": "REPORT.md"})
    Path("REPORT.md").write_text(text)
    say(kind="turn_usage", usage={"input": usage[0], "output": usage[1], "cached": 0})
    say(type="result", **outcome(task), text=text, turns=1, cost=None)


def minima() -> None:
    if flag("provider") != "llamacpp":
        sys.exit("minima: another provider was expected")
    task, key = flag("prompt"), os.environ["MINIMA_API_KEY"]
    text, usage = told(ask(os.environ["MINIMA_BASE_URL"], key, flag("model"), task))
    say(type="turn", text=text)
    say(type="tool_call", name="write", input={"path": "REPORT.md"})
    Path("REPORT.md").write_text(text)
    say(type="tool_result", name="write", ok=True)
    numbers = {"input_tokens": usage[0], "output_tokens": usage[1], "turns": 1}
    say(type="result", **outcome(task), text=text, **numbers)


def prime() -> None:
    if sys.argv[1:] == ["--prime-agent-bootstrap"]:
        return
    task, (named, model) = sys.argv[-1], sys.argv[sys.argv.index("--model") + 1].split("/", 1)
    directory = Path(os.environ["PRIME_AGENT_CODING_AGENT_DIR"])
    provider = json.loads((directory / "models.json").read_text())["providers"][named]
    if provider["models"] != [{"id": model}] or provider["api"] != "openai-completions":
        sys.exit("prime-agent: another model or protocol was expected")
    key = os.environ[provider["apiKey"]]
    text, usage = told(ask(provider["baseUrl"], key, model, task))
    say(type="tool_execution_start", toolName="write", args={"path": "REPORT.md"})
    Path("REPORT.md").write_text(text)
    ended = {"stopReason": "stop"}
    if task.lstrip().startswith("-fail"):
        ended = {"stopReason": "error", "errorMessage": "told to fail"}
    numbers = {"input": usage[0], "cacheRead": 0, "cacheWrite": 0, "output": usage[1]}
    content = [{"type": "text", "text": text}]
    say(
        type="message_end",
        message={"role": "assistant", "content": content, "usage": numbers} | ended,
    )
    say(type="agent_end")


def told(answer: dict[str, Any]) -> tuple[str, tuple[int, int]]:
    usage = answer["usage"]
    text = answer["choices"][0]["message"]["content"]
    return text, (usage["prompt_tokens"], usage["completion_tokens"])


def outcome(task: str) -> dict[str, Any]:
    if task.lstrip().startswith("-fail"):
        return {"outcome": "error", "error": {"message": "told to fail"}}
    return {"outcome": "complete", "error": None}


if __name__ == "__main__":
    {"hax": hax, "minima": minima, "prime-agent": prime}[Path(sys.argv[0]).name]()
