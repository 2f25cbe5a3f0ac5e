"""A container's output, cut into lines that never hold more than one capped line."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.stream import Lines


def cut_up(pieces: list[bytes], limit: int = 1 << 20) -> list[tuple[bytes, bool]]:
    lines = Lines(limit)
    found = [line for piece in pieces for line in lines.feed(piece)]
    return found + list(lines.rest())


@given(
    st.lists(st.lists(st.sampled_from([b"a", b"\n", b"\r", b"\xff", b"{}"])).map(b"".join)),
    st.integers(1, 6),
)
def test_lines_do_not_depend_on_how_the_stream_was_cut(pieces, limit):
    whole = b"".join(pieces)
    expected = whole.split(b"\n")
    if not expected[-1]:
        expected.pop()

    assert cut_up(pieces, limit) == [(line[:limit], len(line) > limit) for line in expected]


def test_the_last_line_needs_no_end():
    assert cut_up([b"one\ntwo"]) == [(b"one", False), (b"two", False)]


def test_empty_lines_are_lines():
    assert cut_up([b"\n\n"]) == [(b"", False), (b"", False)]


def test_nothing_is_no_line():
    assert cut_up([]) == cut_up([b""]) == []


@pytest.mark.parametrize("ended", [b"", b"\n"])
def test_an_endless_line_takes_no_more_memory_than_its_cap(ended):
    """L-8: one endless line of output was buffered whole."""
    lines, piece = Lines(limit=100_000), b"x" * 65536
    tracemalloc.start()
    try:
        for _ in range(2000):
            assert list(lines.feed(piece)) == []
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    found = [*lines.feed(ended), *lines.rest()]
    assert found == [(b"x" * 100_000, True)]
    assert peak < 1_000_000


def test_the_line_after_one_that_was_cut_is_whole():
    assert cut_up([b"x" * 50, b"\nnext\n"], limit=10) == [(b"x" * 10, True), (b"next", False)]
