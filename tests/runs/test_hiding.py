"""Files of a workspace that an agent is not to see."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs import hiding
from runs.hiding import check_pattern, found, usual_secrets
from runs.refusal import Refusal

TREE = (
    ".env", "a.py", "config/.env", "config/prod.key", "config/deep/er/x.key", "env", ".env.example",
    "secrets/one", "secrets/two/three", "x/secrets",
)  # fmt: skip


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in TREE:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("s3cret")
    return tmp_path


@pytest.mark.parametrize(
    ("patterns", "hidden"),
    [
        ([], ()),
        ([".env"], (".env", "config/.env")),
        ([".env*"], (".env", ".env.example", "config/.env")),
        (["config/*.key"], ("config/prod.key",)),
        (["config/**/*.key"], ("config/deep/er/x.key", "config/prod.key")),
        (["**/*.key"], ("config/deep/er/x.key", "config/prod.key")),
        (["secrets"], ("secrets", "x/secrets")),
        (["secrets/*"], ("secrets/one", "secrets/two")),
        (["secrets/"], ("secrets", "x/secrets")),
        (["secrets", "one", "secrets/two"], ("secrets", "x/secrets")),  # a directory hides all
        (["?nvx", "env?"], ()),
        (["?env"], (".env", "config/.env")),
        (["[.]env"], ()),  # only * and ? are special
        (["missing"], ()),
    ],
)
def test_a_pattern_matches_names_anywhere_or_a_path(tree: Path, patterns, hidden):
    assert found(tree, patterns).paths == hidden


@pytest.mark.parametrize(
    "pattern", ["", "/", "/etc/passwd", "../x", "a/../b", "./x", "a//b", "*", "**", "**/*", "x\ny"]
)
def test_what_is_no_pattern_below_the_workspace_is_refused_in_one_line(pattern):
    with pytest.raises(Refusal, match=r"--hide") as refusal:
        check_pattern(pattern)
    assert "\n" not in str(refusal.value)


def test_a_link_hides_what_it_leads_to_in_the_workspace(tree: Path):
    (tree / "token").symlink_to("config/prod.key")
    (tree / "outside").symlink_to("/etc/passwd")
    (tree / "nowhere").symlink_to("gone")
    (tree / "self").symlink_to("self")
    (tree / "top").symlink_to(".")

    assert found(tree, ["token", "outside", "nowhere", "self", "top"]).paths == ("config/prod.key",)


def test_a_linked_directory_is_not_walked_into(tree: Path, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / ".env").write_text("s3cret")
    (tree / "there").symlink_to(elsewhere)

    assert found(tree, [".env"]).paths == (".env", "config/.env")


def test_names_in_odd_bytes_are_matched(tree: Path):
    name = os.fsdecode(b"\xff.key")
    (tree / name).write_text("s3cret")

    assert name in found(tree, ["*.key"]).paths


def test_a_pattern_that_matches_nothing_is_told_apart(tree: Path):
    seen = found(tree, ["secrets", "one", "nope", "*.pem", "nope"])

    assert (seen.paths, seen.idle) == (("secrets", "x/secrets"), ("nope", "*.pem"))
    assert found(tree / "gone", [".env"]).idle == (".env",)


def test_a_name_that_no_engine_can_cover_is_refused_with_what_would_do(tree: Path):
    (tree / "config" / "new\nline.key").write_text("s3cret")
    with pytest.raises(Refusal, match=r"--hide matches config/new.*hide its directory") as refusal:
        found(tree, ["*.key"])

    assert "\n" not in str(refusal.value)
    assert found(tree, ["*.key", "config"]).paths == ("config",)


def test_too_many_matches_are_refused_with_what_would_do(tree: Path, monkeypatch):
    monkeypatch.setattr(hiding, "MOST_HIDDEN", 1)
    with pytest.raises(Refusal, match="hide their directory"):
        found(tree, ["*.key"])


def test_a_workspace_too_large_to_look_through_is_refused(tree: Path, monkeypatch):
    monkeypatch.setattr(hiding, "ENTRIES_LOOKED_AT", 5)
    with pytest.raises(Refusal, match="a smaller directory"):
        found(tree, [".env"])


def test_usual_secrets_that_are_not_hidden_are_named(tree: Path):
    (tree / ".ssh").mkdir()
    (tree / ".ssh" / "id_rsa").write_text("s3cret")
    (tree / "node_modules" / "p").mkdir(parents=True)
    (tree / "node_modules" / "p" / ".env").write_text("x")
    seen = usual_secrets(tree, found(tree, ["config/.env"]).paths)

    assert sorted(seen) == [".env", ".ssh", "config/prod.key"]
    assert usual_secrets(tree, found(tree, [".env", ".ssh", "config"]).paths) == []


def test_looking_for_usual_secrets_ends_early_in_a_large_tree(tree: Path, monkeypatch):
    monkeypatch.setattr(hiding, "NOTED_ENTRIES", 1)

    assert len(usual_secrets(tree, ())) <= 1


@given(st.text(max_size=40), st.text(max_size=40))
def test_any_pattern_is_refused_or_matches_without_an_error(pattern: str, path: str):
    try:
        check_pattern(pattern)
    except Refusal:
        return
    hiding._compiled(pattern).fullmatch(path)
