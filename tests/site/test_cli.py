"""The `sanduk` command as a person meets it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sanduk_site import __version__
from sanduk_site.cli import INTERNAL, SUMMARIES, _commands
from tests.migrated import prepared

ROOT = Path(__file__).parents[2]
COMMANDS = sorted(set(_commands()) - INTERNAL)


@pytest.fixture
def fresh(tmp_path: Path) -> Path:
    """For the state directory of a test whose command must not make one."""
    return tmp_path / "state"


@pytest.fixture
def sanduk(tmp_path: Path, request: pytest.FixtureRequest):
    """sanduk(words...): run it in an empty directory, with a state directory of its own."""
    state = tmp_path / "state"
    if "fresh" not in request.fixturenames:
        prepared(state)

    def run(*words: str, stdin: bytes = b"", **env: str) -> subprocess.CompletedProcess[str]:
        kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        (tmp_path / "here").mkdir(exist_ok=True)
        done = subprocess.run(
            [sys.executable, "-m", "sanduk_site", *words],
            cwd=tmp_path / "here",
            env={**kept, "SANDUK_HOME": str(state), "PYTHONPATH": str(ROOT), **env},
            capture_output=True,
            input=stdin,
            timeout=60,
            check=False,
        )
        out, err = done.stdout.decode(), done.stderr.decode()
        assert "Traceback" not in err, err
        return subprocess.CompletedProcess(done.args, done.returncode, out, err)

    return run


def test_bare_it_explains_itself_on_stderr_and_exits_2(sanduk):
    done = sanduk()

    assert (done.returncode, done.stdout) == (2, "")
    assert "first steps:" in done.stderr
    for name in COMMANDS:
        assert f"\n  {name}" in done.stderr


@pytest.mark.parametrize("word", ["--help", "-h", "help"])
def test_help_is_on_stdout_and_no_error(sanduk, word):
    done = sanduk(word)

    assert (done.returncode, done.stderr) == (0, "")
    assert "usage: sanduk COMMAND" in done.stdout


@pytest.mark.parametrize("word", ["--version", "-V", "version"])
def test_it_says_its_version(sanduk, word):
    """C-12: there was none."""
    assert sanduk(word).stdout == f"sanduk {__version__}\n"


def test_a_first_word_that_is_no_command_is_refused_with_a_hint(sanduk, fresh):
    done = sanduk("fix", "the tests; rm -rf /")

    assert (done.returncode, done.stdout) == (2, "")
    assert "'fix' is no command; there are" in done.stderr
    assert "sanduk run 'fix the tests; rm -rf /'" in done.stderr
    assert not fresh.exists()


def test_a_word_with_escape_sequences_is_not_printed_raw(sanduk):
    """L-13."""
    assert "\x1b" not in sanduk("\x1b[2Jx").stderr


def test_every_command_has_a_summary():
    assert set(COMMANDS) == set(SUMMARIES) & set(_commands())


@pytest.mark.parametrize("name", COMMANDS)
def test_every_commands_help_has_examples_and_none_of_djangos_flags(sanduk, name, fresh):
    done = sanduk(name, "--help")

    assert done.returncode == 0
    assert done.stdout.startswith(f"usage: sanduk {name} ")
    assert f"examples:\n  sanduk {name}" in done.stdout
    for flag in ("--settings", "--pythonpath", "--traceback", "--skip-checks", "--verbosity"):
        assert flag not in done.stdout
    assert not fresh.exists(), "help touches nothing"


@pytest.mark.parametrize("name", ["build", "ps", "stop", "clean", "destroy", "run", "demo"])
def test_every_verb_that_talks_to_an_engine_takes_runtime_and_quiet(sanduk, name):
    told = sanduk(name, "--help").stdout

    assert "--runtime" in told
    assert "-q, --quiet" in told


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "--time", "5m", "x"], "unrecognized arguments: --time"),
        (["run", "--work", "x", "x"], "unrecognized arguments"),
        (["run", "--no-such-flag", "x"], "unrecognized arguments: --no-such-flag"),
        (["run", "--mode", "safe", "x"], "invalid choice: 'safe'"),
        (["run", "--cpus", "many", "x"], "it takes a number from"),
        (["run", "--max-turns", "1.5", "x"], "it takes a whole number"),
        (["run", "--proxy-network", "n", "x"], "--proxy-network is gone: a run's network"),
        (["run", "--proxy-port", "80", "x"], "--proxy-port is gone: the relay listens on a socket"),
        (["run", "--proxy-port=80", "x"], "--proxy-port is gone"),
        (["run", "--proxy-allow-path", "/v1", "x"], "--proxy-allow-path is gone"),
        (["run", "one", "two"], "unrecognized arguments: two"),
        (["list", "cats"], "invalid choice: 'cats'"),
        (["show"], "RUN"),
    ],
)
def test_a_wrong_flag_is_one_line_after_the_usage_and_exits_2(sanduk, words, said, fresh):
    done = sanduk(*words)

    assert (done.returncode, done.stdout) == (2, "")
    last = done.stderr.splitlines()[-1]
    assert last.startswith("sanduk: ")
    assert said in last
    assert not fresh.exists()


@pytest.mark.parametrize("what", ["agents", "providers", "runtimes", "recipes"])
def test_lists_need_no_engine_and_leave_nothing_behind(sanduk, tmp_path, what, fresh):
    done = sanduk("list", what, PATH=str(tmp_path))

    assert done.returncode == 0
    assert done.stdout
    assert not fresh.exists()


def test_a_reader_that_leaves_early_is_no_error(tmp_path: Path):
    command = f"{sys.executable} -m sanduk_site list providers --json | head -c 1"
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "SANDUK_HOME": str(tmp_path), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )

    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr


@pytest.mark.parametrize(
    "words", [["show", "nope"], ["stop", "nope"], ["show", "*"], ["stop", "%"]]
)
def test_a_run_that_does_not_exist_is_named(sanduk, words):
    done = sanduk(*words)

    assert done.returncode == 2
    assert done.stderr == f"sanduk: there is no run '{words[1]}'; sanduk runs lists them\n"


def test_an_id_that_is_no_runs_may_be_a_changes(sanduk):
    done = sanduk("show", "3f2a9c")

    assert done.returncode == 2
    assert done.stderr.endswith("; a change is shown by sanduk change show 3f2a9c\n")


# -- sanduk run --------------------------------------------------------------------------------

DRY = ("run", "--agent", "pi", "--provider", "rehearsal", "--dry-run")


def test_a_dry_run_has_no_side_effect_and_needs_no_key_and_no_engine(sanduk, tmp_path: Path, fresh):
    """C-3: it needed the engine, created a network and needed the key."""
    done = sanduk("run", "--provider", "openai", "--agent", "codex", "--dry-run", "x",
                  PATH=str(tmp_path / "empty"), HOME=str(tmp_path / "home"))  # fmt: skip

    assert (done.returncode, done.stderr) == (0, "")
    assert "mode:        sealed" in done.stdout
    assert sorted(p.name for p in tmp_path.iterdir()) == ["here"]
    assert list((tmp_path / "here").iterdir()) == []


def test_a_dry_run_as_json_is_one_object(sanduk, tmp_path: Path):
    import json

    done = sanduk(*DRY, "--json", "-w", str(tmp_path / "w"), "x")

    told = json.loads(done.stdout)
    assert told["agent"] == "pi"
    assert told["mode"] == "sealed"
    assert told["workdir"] == str(tmp_path / "w")
    assert told["image"].startswith("sanduk")
    assert not (tmp_path / "w").exists()


def test_a_dry_run_shows_no_escape_sequence_and_no_value_of_a_variable(sanduk):
    done = sanduk(*DRY, "-e", "MINE=canary", "-w", "/tmp/\x1b[31mred", "x")

    assert "\x1b" not in done.stdout
    assert "MINE" in done.stdout
    assert "canary" not in done.stdout


def test_the_default_mode_can_be_changed_and_proxy_means_sealed(sanduk):
    assert "mode:        key-safe" in sanduk(*DRY, "x", SANDUK_DEFAULT_MODE="key-safe").stdout
    assert "mode:        sealed" in sanduk(*DRY, "--proxy", "x", SANDUK_DEFAULT_MODE="open").stdout


@pytest.mark.parametrize("source", ["word", "file", "stdin"])
def test_a_task_is_a_word_a_file_or_stdin(sanduk, tmp_path: Path, source):
    text = "look\nat ümläuts"
    (tmp_path / "task.md").write_text(text)
    words = {"word": [text], "file": ["--task-file", str(tmp_path / "task.md")],
             "stdin": ["--task-file", "-"]}[source]  # fmt: skip

    assert sanduk(*DRY, *words, stdin=text.encode()).returncode == 0


@pytest.mark.parametrize(
    ("words", "stdin", "said"),
    [
        ([], b"", "give a task: sanduk run"),
        (["x", "--task-file", "y"], b"", "not both"),
        ([""], b"", "the task is empty"),
        (["--task-file", "-"], b"", "the task is empty"),
        (["--task-file", "-"], b" \n ", "the task is empty"),
        (["--task-file", "-"], b"caf\xe9", "--task-file - is not UTF-8 text"),
        (["--task-file", "-"], b"a\0b", "NUL byte"),
        (["--task-file", "-"], b"x" * (16 * 2**20 + 1), "larger than 16 MiB"),
        (["--task-file", "missing"], b"", "--task-file missing cannot be read: No such file"),
        (["--task-file", "."], b"", "--task-file . cannot be read: Is a directory"),
        (["--task-file", "~nobody-of-that-name/f"], b"", "no such home"),
        (["-w", "~nobody-of-that-name/f", "x"], b"", "no such home"),
        (["--timeout", "1h30m", "x"], b"", "--timeout takes a duration"),
        (["--timeout", "8d", "x"], b"", "at most 7d"),
        (["--idle-timeout", "never", "x"], b"", "--idle-timeout takes a duration"),
        (["--proxy", "--mode", "open", "x"], b"", "contradicts --mode open"),
        (["--no-network", "--mode", "sealed", "x"], b"", "contradicts --mode sealed"),
    ],
)
def test_what_is_wrong_with_an_order_is_one_line_and_exits_2(sanduk, words, stdin, said):
    done = sanduk(*DRY, *words, stdin=stdin)

    assert (done.returncode, done.stdout) == (2, "")
    [line] = done.stderr.splitlines()
    assert said in line


@pytest.mark.parametrize("flag", ["-o", "--stats-file"])
@pytest.mark.parametrize("kind", ["no directory", "a link", "a directory", "no home"])
def test_an_output_that_points_nowhere_is_refused_before_the_run(sanduk, tmp_path, flag, kind):
    """C-10: it failed after the paid run."""
    (tmp_path / "link").symlink_to("target")
    path = {"no directory": "nowhere/f", "a link": str(tmp_path / "link"),
            "a directory": str(tmp_path), "no home": "~nobody-of-that-name/f"}[kind]  # fmt: skip

    done = sanduk("run", "--agent", "pi", "--provider", "rehearsal", flag, path, "x", PATH="/none")

    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert path in line
    assert sanduk("runs", "--json").stdout == "[]\n", "no run was written down"


@pytest.mark.parametrize("flag", [["-o", "r.md"], ["--stats-file", "s.json"]])
def test_what_a_detached_run_cannot_give_is_refused(sanduk, flag):
    done = sanduk("run", "--agent", "pi", "--provider", "rehearsal", "--detach", *flag, "x")

    assert done.returncode == 2
    assert "means nothing with --detach" in done.stderr


def test_a_task_in_another_encoding_is_refused(sanduk):
    done = sanduk(*DRY, os.fsdecode(b"caf\xe9"))

    assert done.returncode == 2
    assert "not UTF-8" in done.stderr
