"""Strict reading of single values."""

from __future__ import annotations

import json
import math

import pytest

from runs.agents import evidence


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, 0),
        (7, 7),
        (10**15, 10**15),
        (10**15 + 1, None),
        (-1, None),
        (True, None),
        (1.0, None),
        ("7", None),
        (None, None),
        ([7], None),
    ],
)
def test_a_count_is_a_whole_number_that_fits(value, expected):
    assert evidence.count(value) is expected or evidence.count(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, 0.0),
        (1.5, 1.5),
        (math.nan, None),
        (math.inf, None),
        (-0.01, None),
        (10**400, None),
        (True, None),
        ("1", None),
    ],
)
def test_dollars_are_a_finite_amount(value, expected):
    assert evidence.dollars(value) == expected


def test_a_total_leaves_out_what_is_no_count():
    assert evidence.total(1, None, "2", 3) == 4
    assert evidence.total(None, "2") is None


def test_a_total_beyond_every_honest_count_is_unknown():
    assert evidence.total(10**15, 10**15) is None


def test_a_long_text_is_cut_and_says_so():
    assert evidence.clean("x" * 1_500, 100) == "x" * 100 + " … [1,400 more characters]"


def test_text_can_be_stored_anywhere():
    cleaned = evidence.clean("a\0b\ud800c")

    assert "\0" not in cleaned
    assert cleaned.encode("utf-8")


def test_a_value_nested_too_deeply_is_not_shown():
    value: object = 1
    for _ in range(100_000):
        value = [value]

    assert evidence.shown(value) == "[nested too deeply to show]"
    assert evidence.sentence({"message": value})


def test_an_error_of_lists_in_lists_is_survived_at_any_depth():
    for depth in (100, 900, 100_000):
        value: object = 1
        for _ in range(depth):
            value = [value]

        assert evidence.sentence(value)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ("  plain  ", "plain"),
        ({"message": "direct"}, "direct"),
        ({"error": {"error": {"message": "inner"}}}, "inner"),
        ({"error": "a word"}, "a word"),
        ({"detail": {"message": "detail"}}, "detail"),
        ({"message": {"message": "not a text"}}, '{"message": {"message": "not a text"}}'),
        ([{"message": "one"}, None, "two"], "one; two"),
        ('429: {"message": "slow"}', "429: slow"),
        ('429 {"error": {"message": "slow"}} (after 3)', "429 slow (after 3)"),
        ("braces {like these} stay", "braces {like these} stay"),
        ('no message in {"code": 1}', 'no message in {"code": 1}'),
        ("deep " + "{" * 10, "deep " + "{" * 10),
        (None, ""),
        (7, "7"),
    ],
)
def test_an_error_becomes_a_sentence(error, words):
    assert evidence.sentence(error) == words


def test_a_json_error_nested_very_deeply_stays_a_text():
    text = "500: " + '{"a":' * 3_000 + "1" + "}" * 3_000

    assert evidence.sentence(text).startswith("500: {")


def test_only_a_bounded_number_of_blocks_is_read():
    blocks = [{"type": "text", "text": "x"}] * 5_000

    assert len(evidence.mappings(blocks)) == 1_000
    assert evidence.mappings({"type": "text"}) == []


def test_what_is_shown_of_an_object_is_json():
    assert json.loads(evidence.shown({"a": [1, None, "ü"]})) == {"a": [1, None, "ü"]}
