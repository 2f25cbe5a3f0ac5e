"""A tool that is not in the image is named with what puts it there; nothing else is said of one."""

from __future__ import annotations

from pathlib import Path

import pytest

from changes import missing_tools

RULES = Path("/srv/state/repos/project-0123abcd.toml")


@pytest.mark.parametrize(
    ("command", "code", "printed", "tool"),
    [
        ("pytest -q", 127, "/bin/sh: 1: pytest: not found\n", "pytest"),
        ("pytest -q", 127, "bash: line 1: pytest: command not found\n", "pytest"),
        ("./run", 127, "./run: 3: ./tool/x: not found\n", "./tool/x"),
        ("make test", 2, "pytest -q\nmake: pytest: No such file or directory\n"
         "make: *** [Makefile:2: test] Error 127\n", "pytest"),
        ("make", 2, "/bin/sh: 1: npm: not found\nmake[1]: *** [Makefile:9: x] Error 127\n", "npm"),
        ("./x", 127, "env: 'python9': No such file or directory\n", "python9"),
        ("./x", 127, "/usr/bin/env: ‘node’: No such file or directory\n", "node"),
        ("python3 -m pytest", 1, "/usr/bin/python3: No module named pytest\n", "pytest"),
        ("make", 2, "python3.13: No module named tox\nmake: *** [Makefile:2: x] Error 1\n", "tox"),
        ("a; b", 127, "sh: a: not found\nmore\nsh: b: not found\n", "b"),
        ("quiet-tool x", 127, "", "quiet-tool"),
        ("good", 127, "sh: \x1b[2Jevil: not found\n", "good"),
    ],
)  # fmt: skip
def test_it_is_found_in_what_was_printed(command, code, printed, tool):
    said = missing_tools.named(command, code, printed, RULES)

    assert said.startswith(f"{tool} is not in the image: name ")
    assert str(RULES) in said


@pytest.mark.parametrize(
    ("code", "printed"),
    [
        (1, "sh: 1: pytest: not found\n"),
        (0, ""),
        (2, "make: *** [Makefile:2: test] Error 1\n"),
        (1, "the page was not found\n"),
        (0, "/usr/bin/python3: No module named pytest\n"),
        (1, "ModuleNotFoundError: No module named 'app'\n"),
        (None, "sh: x: not found"),
    ],
)
def test_an_ordinary_failure_names_none(code, printed):
    assert missing_tools.named("pytest -q", code, printed, RULES) == ""


def test_a_kit_of_that_name_is_offered(monkeypatch):
    monkeypatch.setattr("recipes.kit_names", lambda: ("ripgrep", "uv"))

    said = missing_tools.named("x", 127, "sh: 1: /usr/bin/uv: not found\n", RULES)

    assert 'kits = ["uv"]' in said


def test_a_megabyte_without_a_line_end_takes_no_time():
    assert missing_tools.named("x", 127, "a: " * 300_000, RULES).startswith("x is not")
    assert missing_tools.named("x", 127, "a" * 1_000_000, RULES).startswith("x is not")
