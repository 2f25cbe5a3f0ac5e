"""Nothing hostile that is printed can move the cursor, ring, hide or reverse."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.visible import _shown, visible, visible_name


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
        ("\U000e0041", "\\U000e0041"),  # a tag character
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


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("odd\nname", "odd\\nname"),
        ("odd\\nname", "odd\\\\nname"),
        ("\udc85", "\\x85"),
        ("\x85", "\\u0085"),
        ("plain ünï", "plain ünï"),
    ],
)
def test_a_name_is_told_from_one_that_is_written_like_it(name, shown):
    assert visible_name(name) == shown


NAMES = st.text(st.sampled_from("\\nxu1e085\n\t\x85\udc85\ue004\U000e0041\xad ") | st.characters())


def _read_back(shown: str) -> str:
    def char(found: re.Match[str]) -> str:
        if digits := found[1] or found[2] or found[3]:
            code = int(digits, 16)
            return chr(0xDC00 + code if found[1] and code >= 0x80 else code)
        return {"n": "\n", "t": "\t", "r": "\r", "\\": "\\"}[found[4]]

    return re.sub(
        r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8})|(.))", char, shown, flags=re.DOTALL
    )


@given(NAMES)
def test_a_name_can_be_read_back_so_no_two_look_the_same(name):
    assert _read_back(visible_name(name)) == name


@given(st.text(), st.booleans())
def test_only_what_may_be_odd_is_looked_at_one_by_one(text, lines):
    looked_at = []

    def shown(char: str) -> str:
        looked_at.append(char)
        return _shown(char)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("runs.visible._shown", shown)
        assert visible(text, lines=lines) == "".join(
            c if lines and c in "\n\t" else _shown(c) for c in text
        )
    assert not [c for c in looked_at if " " <= c <= "~"]
