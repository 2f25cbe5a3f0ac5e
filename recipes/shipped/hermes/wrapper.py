#!/usr/bin/env python3
"""Runs `hermes --oneshot` and prints what it does, one JSON object a line.

hermes itself prints its last answer only. What it did stands in its session store, which is read
while it works; what it used stands in a file, which is made outside of the workspace and read when
it has ended. The last line is the result. Without --oneshot this becomes hermes.
"""

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
CONTENT_CHARS = 20_000
ROWS = (
    "SELECT id, role, substr(content, 1, ?), substr(tool_calls, 1, 100000), tool_name"
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


def say(record: dict[str, object]) -> None:
    sys.stdout.write(f"{json.dumps(record)}\n")
    sys.stdout.flush()


def newest(store: Path) -> int:
    """The number of the last message of an earlier run, where the home was lent."""
    rows = ask(store, "SELECT max(id) FROM messages")
    return rows[0][0] or 0 if rows else 0


def tell(store: Path, seen: int) -> int:
    """Print the messages that came after number `seen`; the number of the last one."""
    for number, role, content, calls, tool in ask(store, ROWS, CONTENT_CHARS, seen):
        seen = number
        if role in ("assistant", "tool"):
            message = {"type": role, "content": content, "tool": tool, "calls": parsed(calls)}
            say({key: value for key, value in message.items() if value})
    return seen


def ask(store: Path, query: str, *values: int) -> list[tuple[Any, ...]]:
    """Rows of the store; none while there is none, or while hermes makes its tables."""
    if not store.exists():
        return []
    try:
        database = sqlite3.connect(f"{store.as_uri()}?mode=ro", uri=True, timeout=2)
        try:
            return database.execute(query, values).fetchall()
        finally:
            database.close()
    except sqlite3.OperationalError:  # the next look finds what this one missed
        return []


def parsed(text: str | None) -> object:
    try:
        return json.loads(text) if text else None
    except ValueError:  # cut, as it was too long to read whole
        return text


def read(usage: Path) -> object:
    try:
        return json.loads(usage.read_text("utf-8"))
    except (OSError, ValueError):  # hermes ended before it wrote it
        return None


if __name__ == "__main__":
    sys.exit(main())
