"""What changed between two memories, in lines that are safe to print and do not take for ever."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assistants.memory import differences
from assistants.memory.capture import MB, capture
from assistants.memory.differences import Texts, compare
from assistants.memory.manifest import Manifest
from assistants.memory.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def read(work: Path, store: Store) -> Manifest:
    return capture(
        str(work), store, max_bytes=64 * MB, is_kept_report=lambda _: False
    ).manifest  # fmt: skip


def told(old: Manifest, new: Manifest) -> list[str]:
    return [each.line() for each in compare(old, new)]


def test_each_kind_of_change_has_its_word(work, store):
    for name in ("edited", "gone", "tool", "becomes", "moved"):
        (work / name).write_text(f"{name}\n")
    (work / "link").symlink_to("edited")
    old = read(work, store)
    (work / "edited").write_text("edited more\n")
    (work / "gone").unlink()
    (work / "tool").chmod(0o755)
    (work / "becomes").unlink()
    (work / "becomes").symlink_to("/etc")
    (work / "sub").mkdir()
    (work / "moved").rename(work / "sub" / "there")
    (work / "link").unlink()
    (work / "link").symlink_to("tool")
    (work / "new").write_text("new\n")

    assert told(old, read(work, store)) == [
        "type     becomes  (file -> link, link to /etc)",
        "changed  edited  (7 -> 12 bytes)",
        "removed  gone  (5 bytes)",
        "changed  link  (link to tool)",
        "added    new  (4 bytes)",
        "added    sub  (directory)",
        "renamed  moved -> sub/there  (6 bytes)",
        "mode     tool  (mode 0644 -> 0755)",
    ]


def test_names_and_targets_cannot_move_the_cursor(work, store):
    old = read(work, store)
    (work / "\x1b[2Jclear").write_text("x")
    (work / "new\nline").symlink_to("‮gnp")
    lines = "".join(told(old, read(work, store)))

    assert "\x1b" not in lines
    assert "\n" not in lines
    assert "‮" not in lines


def lines_of(work: Path, store: Store, old: str, new: str) -> list[str]:
    (work / "text").write_text(old)
    before = read(work, store)
    (work / "text").write_text(new)
    [difference] = compare(before, read(work, store))
    return Texts(store).lines(difference)


def test_a_text_shows_the_lines_around_a_change_with_their_numbers(work, store):
    old = "".join(f"line {number}\n" for number in range(1, 101))
    lines = lines_of(work, store, old, old.replace("line 50\n", "LINE 50\n"))

    assert lines == [
        "@@ -47,7 +47,7 @@",
        " line 47",
        " line 48",
        " line 49",
        "-line 50",
        "+LINE 50",
        " line 51",
        " line 52",
        " line 53",
    ]


def test_a_newline_that_is_missing_at_the_end_shows(work, store):
    assert lines_of(work, store, "a\n", "a")[-1] == "+a  (no newline at the end)"


def test_lines_are_cut_and_made_visible(work, store):
    lines = lines_of(work, store, "a\n", "\x1b[31m" + "x" * 5000 + "\n")

    assert lines[-1].startswith("+\\x1b[31m")
    assert len(lines[-1]) == differences.LINE


@pytest.mark.parametrize("data", [b"\xff\xfe", b"a\0b"])
def test_what_is_no_text_is_said_to_be_binary(work, store, data):
    old = read(work, store)
    (work / "data").write_bytes(data)
    [difference] = compare(old, read(work, store))

    assert Texts(store).lines(difference) == ["(binary)"]


def test_large_texts_and_many_lines_are_not_shown(work, store):
    assert lines_of(work, store, "a", "x" * 300_000) == ["(not shown: more than 256 KB)"]
    lines = lines_of(work, store, "", "".join(f"{n}\n" for n in range(1000)))
    assert len(lines) == differences.TEXT_LINES + 1
    assert lines[-1] == "(601 more lines are not shown)"


def test_all_texts_together_have_a_bound(work, store):
    old = read(work, store)
    for number in range(20):
        (work / f"{number}").write_text("".join(f"{number} {n}\n" for n in range(500)))
    texts = Texts(store)
    shown = [texts.lines(each) for each in compare(old, read(work, store))]

    assert sum(map(len, shown)) < differences.ALL_LINES + 50
    assert shown[-1] == ["(not shown: there are too many differences)"]


def test_texts_made_to_be_hard_to_compare_take_little_time(work, store):
    few = [f"{n % 101}" for n in range(30_000)]
    began = time.process_time()
    lines = lines_of(work, store, "\n".join(few), "\n".join(reversed(few)))

    assert time.process_time() - began < 20
    assert lines[0].startswith("@@ -1,")


LINES = st.lists(st.sampled_from(["a", "b", "c", "", "@@ -1 +1 @@"]), max_size=30)


def applied(old: list[str], hunks: list[str]) -> list[str]:
    """What a unified difference makes of `old`, read independently of who wrote it."""
    result, at = [], 0
    for line in hunks:
        if line.startswith("@@ "):
            span = line.split(" ")[1][1:]
            first, _, count = span.partition(",")
            start = int(first) - (0 if count == "0" else 1)
            result += old[at:start]
            at = start
        elif line[0] == "+":
            result.append(line[1:])
        else:
            assert old[at] == line[1:]
            result += [line[1:]] if line[0] == " " else []
            at += 1
    return result + old[at:]


@settings(max_examples=200, deadline=None)
@given(LINES, LINES, st.booleans())
def test_a_difference_applied_to_the_old_text_gives_the_new_one(old, new, is_hard):
    texts = Texts.__new__(Texts)
    texts._pairs, texts._lines = (0 if is_hard else 10**6), 10**6

    assert applied(old, texts._unified(old, new)) == new


def test_equal_memories_have_no_difference_and_empty_files_are_not_renamed(work, store):
    (work / "a").touch()
    old = read(work, store)
    assert compare(old, old) == []
    (work / "a").rename(work / "b")

    assert [each.change for each in compare(old, read(work, store))] == ["removed", "added"]
