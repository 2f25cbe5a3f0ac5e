"""Paths of bytes as text, and which of them are ours."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from changes.own_paths import is_ours, spelled, unspelled


@given(st.binary(max_size=60))
def test_a_path_is_found_again_from_its_spelling_which_any_terminal_prints(path):
    text = spelled(path)

    assert unspelled(text) == path
    assert text.isprintable()
    text.encode()


@pytest.mark.parametrize("text", ["ü\u202e\\x41", "\\", "\\\\x41", "日本", "\U000e0041"])
def test_a_path_that_reads_like_a_spelling_is_not_taken_for_one(text):
    assert unspelled(spelled(text.encode())) == text.encode()


@pytest.mark.parametrize(
    ("path", "ours"),
    [
        (b".sanduk/skills/x.md", True),
        (b".sandkeep", True),
        (b".Sanduk/x", True),
        (b"sub/.sanduk/x", False),
        (b".sandukx/y", False),
    ],
)
def test_what_an_agent_writes_for_us_is_known_by_its_first_part(path, ours):
    assert is_ours(path) is ours
