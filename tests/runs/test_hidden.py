"""Keys that a container printed are taken out of everything that is kept."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs import report
from runs.hidden import MARK, Hiding

KEY, OTHER = "sk-canary-0123456789", "sk-canary-0123456789-longer"


def through(hiding: Hiding, pieces: list[bytes]) -> bytes:
    return b"".join([*(hiding.feed(piece) for piece in pieces), hiding.rest()])


@given(st.data())
def test_a_key_is_found_however_the_stream_is_cut(data):
    text = data.draw(
        st.lists(st.sampled_from([KEY, OTHER, KEY[:9], "sk-", "a line\n", "ü"]), max_size=12)
    )
    whole = "".join(text).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=12)))
    pieces = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    hiding = Hiding([KEY, OTHER])
    passed = through(hiding, pieces)

    assert KEY.encode() not in passed
    assert hiding.found == (KEY.encode() in whole)
    if not hiding.found:
        assert passed == whole


@pytest.mark.parametrize("line", [b"plain words\n", b"it ends on s", b"\xff\xfe\x00"])
def test_what_holds_no_key_passes_unchanged(line: bytes):
    hiding = Hiding([KEY])

    assert through(hiding, [line]) == line
    assert not hiding.found


def test_only_what_may_begin_a_key_is_held_back():
    hiding = Hiding([KEY])

    assert hiding.feed(b"hello sk-can") == b"hello "
    assert hiding.feed(b"dy\n") == b"sk-candy\n"


def test_a_key_of_a_few_letters_blanks_no_words():
    assert Hiding(["none", ""]).text("none of them") == "none of them"


def test_without_keys_the_bytes_are_the_very_same():
    data = b"x" * 1000

    assert Hiding([]).feed(data) is data


def test_a_report_is_kept_without_the_key_says_so_and_is_known_as_collected(tmp_path):
    text = f"# Found\nthe key is {KEY}\n"
    (tmp_path / "REPORT.md").write_text(text)
    found = report.collect(str(tmp_path), limit=1000)
    kept = report.hidden(found, Hiding([KEY]))

    assert kept.text == f"# Found\nthe key is {MARK}\n"
    assert kept.note == "altered: a key was taken out"
    assert report.hidden(found, Hiding([OTHER])) is found
    # the next run takes it away: it does not come back under a name of its own
    assert report.set_aside(str(tmp_path), "u-1", known=frozenset({kept.sha256})) == ""
    assert list(tmp_path.iterdir()) == []
