"""The program that starts hermes in its image, with a stand-in for hermes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from recipes.catalog import SHIPPED

WRAPPER = SHIPPED / "hermes" / "wrapper.py"
STORE = """
import json, os, sqlite3, sys, time
from pathlib import Path
home = Path(os.environ["HOME"], ".hermes")
home.mkdir(exist_ok=True)
database = sqlite3.connect(home / "state.db")
database.execute("CREATE TABLE IF NOT EXISTS messages (id INTEGER PRIMARY KEY, role, content,"
                 " tool_calls, tool_name)")
def message(role, content=None, calls=None, tool=None):
    database.execute("INSERT INTO messages VALUES (NULL, ?, ?, ?, ?)",
                     (role, content, calls and json.dumps(calls), tool))
    database.commit()
def usage(**said):
    Path(sys.argv[sys.argv.index("--usage-file") + 1]).write_text(json.dumps(said))
def call(name, arguments):
    return {"id": "c", "type": "function", "function": {"name": name, "arguments": arguments}}
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for name in ("bin", "home", "work", "tmp"):
        (tmp_path / name).mkdir()
    return tmp_path


def stand_in(place: Path, hermes: str) -> None:
    program = place / "bin" / "hermes"
    program.write_text(f"#!{sys.executable}\n{STORE}\n{hermes}\n")
    program.chmod(0o755)


def run(place: Path, hermes: str, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    stand_in(place, hermes)
    return subprocess.run(
        [sys.executable, WRAPPER, *words],
        cwd=place / "work",
        env={
            "PATH": f"{place / 'bin'}:{os.environ['PATH']}",
            "HOME": str(place / "home"),
            "TMPDIR": str(place / "tmp"),
            **env,
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def told(place: Path, hermes: str, *words: str, **env: str) -> list[dict[str, Any]]:
    done = run(place, hermes, *(words or ("--yolo", "--oneshot=-do it")), **env)
    assert done.stderr == ""
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_it_prints_what_hermes_does_and_then_the_result(place: Path) -> None:
    lines = told(
        place,
        """
message("user", "the task")
message("assistant", "I count.", [call("terminal", '{"command": "ls"}')])
message("tool", '{"output": "a", "exit_code": 2, "error": null}', tool="terminal")
message("assistant", "There is one.")
usage(completed=True, failed=False)
print("There is one.")
""",
    )

    assert lines == [
        {
            "type": "assistant",
            "content": "I count.",
            "calls": [{"name": "terminal", "input": '{"command": "ls"}'}],
        },
        {"type": "tool", "tool": "terminal", "exit_code": 2, "output": "a"},
        {"type": "assistant", "content": "There is one."},
        {
            "type": "result",
            "exit_code": 0,
            "text": "There is one.",
            "usage": {"completed": True, "failed": False},
        },
    ]
    assert list((place / "work").iterdir()) == []
    assert list((place / "tmp").iterdir()) == []


def test_it_prints_while_hermes_works(place: Path) -> None:
    """The stand-in ends well only once its first message has been printed."""
    waits = """
message("assistant", "I begin.")
deadline = time.monotonic() + 20
while not Path(os.environ["SEEN"]).exists():
    time.sleep(0.05)
    if time.monotonic() > deadline:
        sys.exit(9)
"""
    stand_in(place, waits)
    seen = place / "seen"
    environment = {
        "PATH": f"{place / 'bin'}:{os.environ['PATH']}",
        "HOME": str(place / "home"),
        "SEEN": str(seen),
    }
    with subprocess.Popen(
        [sys.executable, WRAPPER, "--oneshot=x"],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        first = json.loads(process.stdout.readline())
        seen.touch()
        last = json.loads(process.stdout.readlines()[-1])

    assert first == {"type": "assistant", "content": "I begin."}
    assert last == {"type": "result", "exit_code": 0, "text": ""}


def test_hermes_is_given_its_words_and_a_file_outside_of_the_workspace(place: Path) -> None:
    [result] = told(place, "print(json.dumps(sys.argv[1:]))", "--yolo", "--oneshot=a -b")

    *words, flag, usage = json.loads(result["text"])
    assert (words, flag) == (["--yolo", "--oneshot=a -b"], "--usage-file")
    assert Path(usage).is_relative_to(place / "tmp")


def test_its_settings_are_written_and_the_variable_is_not_handed_on(place: Path) -> None:
    [result] = told(
        place, "print(os.environ.get('SANDUK_HERMES_CONFIG'))", SANDUK_HERMES_CONFIG='{"a": 1}'
    )

    assert result["text"] == "None"
    assert (place / "home" / ".hermes" / "config.yaml").read_text() == '{"a": 1}'


@pytest.mark.parametrize("code", [0, 2])
def test_the_exit_code_is_that_of_hermes(place: Path, code: int) -> None:
    done = run(place, f"sys.exit({code})", "--oneshot=x")

    assert done.returncode == code
    assert json.loads(done.stdout)["exit_code"] == code


def test_without_a_usage_file_the_result_has_none(place: Path) -> None:
    [result] = told(place, "print('HTTP 401: no')")

    assert result == {"type": "result", "exit_code": 0, "text": "HTTP 401: no"}


def test_without_a_task_it_becomes_hermes(place: Path) -> None:
    done = run(place, "print('|'.join(sys.argv[1:]))", "--version", "a b")

    assert (done.returncode, done.stdout) == (0, "--version|a b\n")


def test_what_an_earlier_run_said_is_not_told_again(place: Path) -> None:
    told(place, 'message("assistant", "Before.")')

    assert [line.get("content") for line in told(place, 'message("assistant", "Now.")')] == [
        "Now.",
        None,
    ]


def test_the_relay_is_no_business_of_a_proxy(place: Path) -> None:
    [result] = told(
        place,
        "print(os.environ['NO_PROXY'], os.environ.get('no_proxy'))",
        NO_PROXY="127.0.0.1,localhost",
    )

    assert result["text"] == "127.0.0.1,localhost,127.1 None"


def test_long_inputs_are_cut_and_odd_ones_are_left_out(place: Path) -> None:
    lines = told(
        place,
        """
message("assistant", None, [call("write", "x" * 100_000), 7, {"function": "f"}, {}])
message("tool", "no JSON", tool="write")
message("tool", '["a"]', tool="write")
message("assistant", b"\\xff\\xfe", "[" * 10)
database.execute("INSERT INTO messages VALUES (NULL, 'assistant', CAST(x'c328' AS TEXT), '{', 1)")
database.commit()
""",
    )

    [write] = lines[0]["calls"]
    assert (write["name"], len(write["input"])) == ("write", 20_000)
    assert lines[1] == lines[2] == {"type": "tool", "tool": "write"}
    assert [line["type"] for line in lines[3:]] == ["assistant", "assistant", "result"]
    assert "\ufffd" in lines[4]["content"]


def test_a_store_that_is_none_is_survived(place: Path) -> None:
    [result] = told(
        place,
        "database.close(); (home / 'state.db').write_text('no database ' * 100); print('Done.')",
    )

    assert result["text"] == "Done."
    assert (place / "home" / ".hermes" / "state.db").read_text().startswith("no database")
