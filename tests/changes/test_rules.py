"""The operator's file of one repository: strict, and never the branch's."""

from __future__ import annotations

import pytest
from django.conf import settings

from changes import globs, rules
from runs.refusal import Refusal

ID = "project-0123abcd"


@pytest.fixture
def written(tmp_path, monkeypatch):
    monkeypatch.setattr(settings, "SANDUK_HOME", tmp_path)
    (tmp_path / "repos").mkdir()

    def write(text: str) -> rules.Rules:
        rules.file_of(ID).write_text(text)
        return rules.of(ID)

    return write


def test_without_a_file_the_usual_rules_hold(written):
    assert rules.of(ID) == rules.Rules()
    assert rules.of(ID).approvals == 1


def test_every_key_is_read(written):
    found = written(
        """
approvals = 2
exclude_author = true
second_person = ["ci/workflow"]
largest_file_mb = 5
test_command = "pytest -q"
test_timeout = "10m"
recipe = "python"
kits = ["uv"]
set_up = ["uv sync --frozen"]
lock_files = ["uv.lock"]

[[flag]]
category = "payment"
paths = ["src/billing/**"]
reason = "it moves money"
severity = "high"
second_person = true

[[expected]]
category = "dependency"
paths = ["docs/requirements.txt"]
reason = "docs only"
"""
    )

    assert found.approvals == 2
    assert found.test_timeout_s == 600
    assert found.flag[0].second_person
    assert found.expected[0].paths == ("docs/requirements.txt",)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("aprovals = 2", "line 1: aprovals: there is no such key; did you mean approvals?"),
        ("approvals = 0", "line 1: approvals: "),
        ("approvals = true", "line 1: approvals: "),
        ('\nexclude_author = "yes"', "line 2: exclude_author: "),
        ('test_timeout = "soon"', "line 1: test_timeout takes a duration"),
        ('[[flag]]\ncategory = "x"\npaths = []\nreason = "r"', "line 3: flag.paths: "),
        (
            '[[flag]]\ncategory = "x"\npaths = ["a"]\nreason = "r"\nseverty = "high"',
            "line 5: flag.severty: there is no such key; did you mean severity?",
        ),
        (
            '[[flag]]\ncategory = "x"\npaths = ["a"]\nreason = "r"\nseverity = "fatal"',
            "line 5: flag.severity: ",
        ),
        (
            '[[expected]]\ncategory = "secret"\npaths = ["**"]\nreason = "r"',
            "line 2: flags of secret are never ordinary",
        ),
        ("approvals = ", "Invalid value"),
        ("a = 1\na = 2", "Cannot overwrite"),
    ],
)
def test_what_is_wrong_is_refused_with_its_line(written, text, said):
    with pytest.raises(Refusal) as refused:
        written(text)

    assert said in str(refused.value)
    assert f"{ID}.toml" in str(refused.value)


def test_a_file_that_is_a_link_is_refused(written, tmp_path):
    (tmp_path / "other.toml").write_text("approvals = 1\n")
    rules.file_of(ID).symlink_to(tmp_path / "other.toml")

    with pytest.raises(Refusal, match="no regular file"):
        rules.of(ID)


@pytest.mark.parametrize("text", [b"\xff", b"#" * (rules.MAX_BYTES + 1)])
def test_a_file_that_is_no_text_or_too_large_is_refused(written, text):
    rules.file_of(ID).write_bytes(text)

    with pytest.raises(Refusal):
        rules.of(ID)


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("Makefile", b"a/b/makefile", True),
        ("Makefile", b"a/Makefile/x", False),
        ("src/*.py", b"src/a.py", True),
        ("src/*.py", b"src/deep/a.py", False),
        ("src/**", b"src/deep/a.py", True),
        ("**/hooks/", b"hooks/x", True),
        ("**/hooks/", b"a/hooks/b/c", True),
        ("/.github/workflows/", b".GitHub/Workflows/x.yml", True),
        ("/.github/workflows/", b"docs/.github/workflows/x.yml", False),
        ("a?c", b"a/c", False),
        ("*.py", b"new\nline.py", True),
        ("*.py", b"\xff.py", True),
        ("Makefile", "Make\u200dfile".encode(), True),
    ],
)
def test_a_glob_names_a_path_in_any_spelling_a_file_system_takes(pattern, path, matches):
    assert globs.matches(path, (pattern,)) is matches
