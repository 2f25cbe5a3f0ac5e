"""Assistants on a real installation: their directories, and what became of them."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.engine.running import Done, Installation


def reporting(text: str) -> str:
    """A brief of the scripted agent: write that report and end well."""
    return f"""printf '%s' '{text}' > REPORT.md
echo '{{"type": "result", "ok": true, "text": "done"}}'
exit
"""


def answering(pause_s: int) -> str:
    """A brief: take that long, then report each message that is a question, and remember it."""
    return rf"""
echo '{{"type": "text", "text": "ready"}}'; sleep {pause_s}
exec python3 -c '
import json, re, sys
words = re.findall(r"^question-\d+$", sys.stdin.read(), re.M)
open("REPORT.md", "w").write(" ".join(words) or "nothing new")
open("memory.txt", "a").write(" ".join(words) + "\n")
print(json.dumps({{"type": "result", "ok": True, "text": "done"}}))
' <<'NO_MORE_MESSAGES'
"""  # what follows the brief, the messages, is what this reads on its standard input


class Home:
    """One installation's assistants."""

    def __init__(self, made: Installation) -> None:
        self.made = made

    def add(self, name: str, brief: str, **keys: Any) -> Path:
        """Write an assistant's directory and take it in. `keys` are those of its toml."""
        place = self.lay_out(name, brief, **keys)
        done = self.made.sanduk("assistant", "add", str(place))
        assert done.code == 0, done
        return place

    def take_in(self, *places: Path) -> None:
        """Take in many at once: one process of ours instead of many."""
        script = (
            "import os, sys, django; django.setup()\n"
            "from django.core.management import call_command\n"
            "for place in sys.argv[1:]: call_command('sanduk_assistant', 'add', place)\n"
        )
        words = [sys.executable, "-c", script, *map(str, places)]
        environment = {**self.made.environment, "DJANGO_SETTINGS_MODULE": "sanduk_site.settings"}
        done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done

    def tell(self, name: str, text: str) -> None:
        """Put a message into its inbox, as the command does but in no time."""
        self.change(
            "INSERT INTO assistants_inboxmessage "
            "(assistant_id, body, source, source_id, account, created_at) "
            "SELECT id, ?, 'test', '', '', datetime('now') FROM assistants_assistant "
            "WHERE name = ?",
            text,
            name,
        )

    def lay_out(self, name: str, brief: str, **keys: Any) -> Path:
        """Write its directory alone."""
        place = self.made.ground / name
        (place / "workspace").mkdir(parents=True)
        if os.geteuid() == 0:
            os.chown(place / "workspace", 1000, 1000)
        (place / "brief.md").write_text(brief)
        values = {
            "agent": "scripted-offline",
            "provider": "rehearsal",
            "runtime": self.made.engine,
            "every": "1h",
            "approval": True,
            "args": ["--skip-key-check", "--no-report-instruction", "--memory", "256m"],
            **keys,
        }
        lines = [f"{key} = {json.dumps(value)}" for key, value in values.items()]
        (place / "assistant.toml").write_text("\n".join(lines) + "\n")
        return place

    def due(self, name: str) -> None:
        """Have its next slot be now, on time."""
        self.change(
            "UPDATE assistants_schedule SET next_at = datetime('now', '-1 second') WHERE "
            "assistant_id = (SELECT id FROM assistants_assistant WHERE name = ?)",
            name,
        )

    def change(self, statement: str, *values: Any) -> None:
        file = self.made.home / "sanduk.sqlite3"
        with contextlib.closing(sqlite3.connect(file, timeout=20)) as database:
            database.execute(statement, values)
            database.commit()

    def rows(self, statement: str, *values: Any) -> list[dict[str, Any]]:
        file = self.made.home / "sanduk.sqlite3"
        with contextlib.closing(sqlite3.connect(file, timeout=20)) as database:
            database.row_factory = sqlite3.Row
            return [dict(row) for row in database.execute(statement, values).fetchall()]

    def wakeups(self, name: str = "") -> list[dict[str, Any]]:
        """Oldest first."""
        return self.rows(
            "SELECT w.*, a.name FROM assistants_wakeup w JOIN assistants_assistant a "
            "ON a.id = w.assistant_id WHERE ? IN ('', a.name) ORDER BY w.id",
            name,
        )

    def items(self) -> list[dict[str, Any]]:
        return self.rows("SELECT * FROM assistants_outboxitem ORDER BY id")

    def waiting_messages(self) -> list[str]:
        found = self.rows(
            "SELECT body FROM assistants_inboxmessage WHERE consumed_at IS NULL ORDER BY id"
        )
        return [row["body"] for row in found]

    def tick(self, *words: str, **options: Any) -> Done:
        return self.made.sanduk("tick", *words, **options)
