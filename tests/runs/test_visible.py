"""Nothing hostile that is printed can move the cursor, ring, hide or reverse."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.visible import visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ünïcode 漢字 🙂", "plain ünïcode 漢字 🙂"),
        ("\x1b[2J\x1b]0;title\x07", "\\x1b[2J\\x1b]0;title\\x07"),
        ("\x9b31m", "\\x9b31m"),  # the C1 form of ESC [
        ("a\rb", "a b"),
        ("a\nb\tc", "a b c"),
        ("abc\x08\x08\x08xyz", "abc\\x08\\x08\\x08xyz"),
        ("\x00", "\\x00"),
        ("\x7f", "\\x7f"),
        ("user\u202egnp.exe", "user\\u202egnp.exe"),
        ("\u2066\u2069", "\\u2066\\u2069"),
        ("zero\u200bwidth\u200d", "zero\\u200bwidth\\u200d"),
        ("\ufeff", "\\ufeff"),
        ("a\u2028b\u2029c", "a\\u2028b\\u2029c"),
        ("\U000e0041", "\\ue0041"),  # a tag character
        ("soft\xadhyphen", "soft\\xadhyphen"),
        ("\ud800", "\\ud800"),
        ("\x85", "\\x85"),
    ],
)
def test_what_moves_hides_or_reverses_is_written_out(text, shown):
    """L-13: agent text with ESC sequences went to the terminal raw."""
    assert visible(text) == shown


def test_lines_and_tabs_stay_where_they_are_wanted():
    assert visible("a\n\tb\r\nc\x1b", lines=True) == "a\n\tb \nc\\x1b"


@pytest.mark.parametrize(
    ("text", "limit", "shown"),
    [("abcdef", 6, "abcdef"), ("abcdefg", 6, "abcde…"), ("\x1b\x1b", 6, "\\x1b\\…"), ("", 6, "")],
)
def test_a_limit_counts_what_is_shown(text, limit, shown):
    assert visible(text, limit=limit) == shown


@given(st.text(alphabet=st.characters()), st.none() | st.integers(1, 50), st.booleans())
def test_whatever_it_is_given_it_is_safe_to_print(text, limit, lines):
    shown = visible(text, limit=limit, lines=lines)

    allowed = "\n\t" if lines else ""
    assert not any(unicodedata.category(c)[0] == "C" for c in shown if c not in allowed)
    assert limit is None or len(shown) <= limit
    shown.encode()
