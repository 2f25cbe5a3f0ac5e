"""The other names of `sanduk change`, and the hints that lead to it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from assistants.management.commands import sanduk_approve, sanduk_reject
from sanduk_site.cli import meant

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("words", "command"),
    [
        ("batch --repo r --task t", "change batch --repo r --task t"),
        ("accept 3f2a9c", "change accept 3f2a9c"),
        ("test 3f2a9c", "change test 3f2a9c"),
        ("revise 3f2a9c --task t", "change revise 3f2a9c --task t"),
        ("status", "change status"),
        ("gc --dry-run", "change gc --dry-run"),
        ("run --repo r --task t", "change run --repo r --task t"),
        ("run --task t --repo=r", "change run --task t --repo=r"),
        ("shell --repo r", "change shell --repo r"),
        ("image build --agent pi", "build --agent pi"),
        # what is none
        ("run what", "run what"),
        ("run --agent pi -- --repo r", "run --agent pi -- --repo r"),
        ("shell --agent pi", "shell --agent pi"),
        ("show 3f2a9c --repo", "show 3f2a9c --repo"),
        ("reject 17", "reject 17"),
        ("images", "images"),
        ("image", "image"),
    ],
)
def test_the_names_of_the_second_program_mean_what_they_meant(words: str, command: str):
    assert meant(words.split()) == command.split()


@pytest.fixture
def sanduk(tmp_path: Path):
    """The console script, in a directory and with a state of its own."""

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        return subprocess.run(
            [sys.executable, "-m", "sanduk_site", *words],
            cwd=tmp_path,
            env={**kept, "SANDUK_HOME": str(tmp_path / "state"), "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run


def test_the_overview_names_them_all(sanduk):
    also = sanduk("--help").stdout.partition("\nalso:\n")[2].partition("\n\n")[0]

    for name in ("batch", "accept", "test", "revise", "status", "gc", "image build", "run --repo",
                 "shell --repo"):  # fmt: skip
        assert f"\n  {name} " in f"\n{also}", name


def test_another_name_is_helped_with_as_what_it_is(sanduk):
    said = sanduk("accept", "--help")

    assert (said.returncode, said.stderr) == (0, "")
    assert said.stdout.startswith("usage: sanduk change accept ")


def test_an_image_is_built_with_a_browser(sanduk):
    said = sanduk("image", "build", "--agent", "pi", "--with-browser", "--dry-run")

    assert said.returncode == 0
    assert " chromium " in said.stdout
    assert " chromium " not in sanduk("image", "build", "--agent", "pi", "--dry-run").stdout


def test_manage_py_has_the_same_command(tmp_path: Path):
    done = subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), "sanduk_change", "show", "--help"],
        cwd=tmp_path, env={**os.environ, "SANDUK_HOME": str(tmp_path / "state")},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: manage.py sanduk_change show ")


def type_(capsys, command, *words: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as ended:
        command.Command().run_from_argv(["sanduk", command.__name__.rpartition(".")[2], *words])
    return int(ended.value.code or 0), capsys.readouterr().err


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("command", "word", "hint"),
    [
        (sanduk_approve, "3f2a9c0d11e4", "sanduk change accept 3f2a9c0d11e4"),
        (sanduk_reject, "3f2a9c0d11e4", "sanduk change reject 3f2a9c0d11e4"),
        (sanduk_reject, "123456", "sanduk change reject 123456"),
        (sanduk_approve, "1\x1b[2J", None),
    ],
)
def test_an_id_that_is_no_item_may_be_a_changes(capsys, monkeypatch, command, word, hint):
    monkeypatch.setattr("runs.management.terminal.prepare", lambda: None)

    code, err = type_(capsys, command, word, "--reason", "x")

    assert code == 2
    assert "\x1b" not in err
    assert (hint in err) if hint else ("sanduk change" not in err)
