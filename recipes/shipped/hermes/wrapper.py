#!/usr/bin/env python3
"""Runs `hermes --oneshot` and prints what it does, one JSON object a line.

hermes itself prints its last answer only. What it did stands in its session store, which is read
while it works; what it used stands in a file, which is made outside of the workspace and read when
it has ended. The last line is the result. Without --oneshot this becomes hermes.
"""

import contextlib
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

CONFIG = "SANDUK_HERMES_CONFIG"  # JSON, which is YAML too
RELAY_ALIAS = "127.1"  # how hermes is told the relay's address
PAUSE_S = 0.5
ANSWER_CHARS = 200_000
SHOWN_CHARS = 20_000  # of a tool's input or output
STORED_CHARS = 4_000_000  # of one message that are read
ROWS = (
    "SELECT id, role, substr(content, 1, ?), substr(tool_calls, 1, ?), tool_name"
    " FROM messages WHERE id > ? ORDER BY id LIMIT 1000"
)


def main() -> int:
    home = Path(os.environ.get("HERMES_HOME") or Path.home() / ".hermes")
    if config := os.environ.pop(CONFIG, ""):
        home.mkdir(parents=True, exist_ok=True)
        (home / "config.yaml").write_text(config, "utf-8")
    for name in ("NO_PROXY", "no_proxy"):
        if name in os.environ:
            os.environ[name] += f",{RELAY_ALIAS}"
    words = sys.argv[1:]
    if not any(word == "-z" or word.startswith("--oneshot") for word in words):
        os.execvp("hermes", ["hermes", *words])  # noqa: S606 - becoming it is the point
    store = home / "state.db"
    with tempfile.TemporaryDirectory(prefix="hermes-") as scratch:
        usage = Path(scratch) / "usage.json"
        with (Path(scratch) / "answer").open("w+b") as answer:
            command = ["hermes", *words, "--usage-file", str(usage)]
            agent = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=answer)
            seen = newest(store)
            while True:
                try:
                    code = agent.wait(PAUSE_S)
                    break
                except subprocess.TimeoutExpired:
                    seen = tell(store, seen)
            tell(store, seen)
            answer.seek(0)
            text = answer.read(4 * ANSWER_CHARS).decode("utf-8", "replace")[:ANSWER_CHARS].strip()
        say({"type": "result", "exit_code": code, "text": text, "usage": read(usage)})
    return code if code >= 0 else 128 - code


def say(record: dict[str, Any]) -> None:
    kept = {key: value for key, value in record.items() if value is not None}
    sys.stdout.write(f"{json.dumps(kept, default=str)}\n")
    sys.stdout.flush()


def newest(store: Path) -> int:
    """The number of the last message of an earlier run, where the home was lent."""
    rows = ask(store, "SELECT max(id) FROM messages")
    return rows[0][0] or 0 if rows else 0


def tell(store: Path, seen: int) -> int:
    """Print the messages that came after number `seen`; the number of the last one."""
    for number, role, content, calls, tool in ask(store, ROWS, STORED_CHARS, STORED_CHARS, seen):
        seen = number
        if role == "assistant":
            say({"type": "assistant", "content": cut(content, ANSWER_CHARS), "calls": named(calls)})
        elif role == "tool":
            given = parsed(content)
            told = given if isinstance(given, dict) else {}
            outcome = {key: cut(told.get(key)) for key in ("exit_code", "error", "output")}
            say({"type": "tool", "tool": tool, **outcome})
    return seen


def ask(store: Path, query: str, *values: int) -> list[tuple[Any, ...]]:
    """Rows of the store; none while there is none, or while hermes makes its tables."""
    if not store.exists():
        return []
    try:
        with contextlib.closing(
            sqlite3.connect(f"{store.as_uri()}?mode=ro", uri=True, timeout=2)
        ) as database:
            database.text_factory = lambda text: text.decode("utf-8", "replace")
            return database.execute(query, values).fetchall()
    except sqlite3.Error:  # the next look finds what this one missed
        return []


def named(calls: object) -> list[dict[str, Any]] | None:
    """The tool calls of a message, each as its name and its input."""
    found = parsed(calls)
    if not isinstance(found, list):
        return None
    functions = [
        call["function"] for call in found if isinstance(call, dict) and "function" in call
    ]
    return [
        {"name": function.get("name"), "input": cut(function.get("arguments"))}
        for function in functions
        if isinstance(function, dict)
    ]


def cut(value: object, limit: int = SHOWN_CHARS) -> object:
    return value[:limit] if isinstance(value, str) else value


def parsed(text: object) -> object:
    try:
        return json.loads(text) if isinstance(text, str) else None
    except (RecursionError, ValueError):  # no JSON, or cut as it was too long
        return None


def read(usage: Path) -> object:
    try:
        return json.loads(usage.read_text("utf-8"))
    except (OSError, RecursionError, ValueError):  # hermes ended before it wrote it
        return None


if __name__ == "__main__":
    sys.exit(main())
