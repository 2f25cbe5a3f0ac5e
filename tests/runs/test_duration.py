"""Durations as people write them."""

from __future__ import annotations

import pytest

from runs.duration import seconds, spoken
from runs.refusal import Refusal


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", 1), ("90", 90), ("90s", 90), ("15m", 900), ("2h", 7200), ("7d", 604800), (" 5m ", 300),
     ("0010", 10), ("604800", 604800), ("168h", 604800)],
)  # fmt: skip
def test_a_duration_is_digits_and_at_most_one_unit(text, value):
    assert seconds(text, what="--timeout") == value


@pytest.mark.parametrize(
    "text",
    ["", " ", "m", "1h30m", "1 h", "1.5h", "-1", "+1", "1H", "1w", "1ms", "٣", "²", "３", "1e3",
     "1_0", "5m\n6m", "0x10", "9" * 400, "nan", "inf"],
)  # fmt: skip
def test_anything_else_is_refused_and_named(text):
    """The first program took Unicode digits, and one of them crashed it."""
    with pytest.raises(Refusal, match="--timeout"):
        seconds(text, what="--timeout")


@pytest.mark.parametrize("text", ["0", "0s", "0d", "8d", "604801", "169h", "999999999d"])
def test_zero_and_more_than_seven_days_are_refused(text):
    with pytest.raises(Refusal, match="more than zero and at most 7d"):
        seconds(text, what="--timeout")


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.04, "0.0 s"), (4.21, "4.2 s"), (10, "10 s"), (59.4, "59 s"), (59.6, "1m 00s"),
     (200, "3m 20s"), (3900, "1h 05m"), (86400, "24h 00m"), (604800, "7d 00h")],
)  # fmt: skip
def test_a_duration_is_said_in_the_largest_units(value, text):
    assert spoken(value) == text
