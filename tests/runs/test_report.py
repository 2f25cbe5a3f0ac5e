"""REPORT.md: the person's own survives, the agent's is read without trusting it."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from runs import report
from runs.models import Run
from tests.accounts import acting_as, needs_root, open_directory

UID = "0123456789ab"
ASIDE = f"REPORT.before-{UID}.md"
LIMIT = 2 * 2**20


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


# -- what was there before ---------------------------------------------------------------------


def test_without_a_report_nothing_is_set_aside(work: Path):
    assert report.set_aside(str(work), UID) == ""


def test_a_persons_own_report_is_kept_beside(work: Path):
    """L-7: the user's own REPORT.md is never deleted."""
    (work / "REPORT.md").write_text("mine")

    assert report.set_aside(str(work), UID) == ASIDE
    assert (work / ASIDE).read_text() == "mine"
    assert not (work / "REPORT.md").exists()


def test_a_directory_called_report_is_moved_with_what_is_in_it(work: Path):
    """L-7: a directory of that name made every later run fail."""
    (work / "REPORT.md").mkdir()
    (work / "REPORT.md" / "f").write_text("inside")

    assert report.set_aside(str(work), UID) == ASIDE
    assert (work / ASIDE / "f").read_text() == "inside"


def test_a_link_is_moved_and_what_it_points_at_is_untouched(work: Path, tmp_path: Path):
    (tmp_path / "target").write_text("elsewhere")
    (work / "REPORT.md").symlink_to(tmp_path / "target")

    assert report.set_aside(str(work), UID) == ASIDE
    assert (work / ASIDE).is_symlink()
    assert (tmp_path / "target").read_text() == "elsewhere"


@pytest.mark.timeout(10)
def test_a_pipe_is_moved_without_waiting_for_a_writer(work: Path):
    os.mkfifo(work / "REPORT.md")

    assert report.set_aside(str(work), UID) == ASIDE
    assert (work / ASIDE).is_fifo()


def test_a_report_of_ours_that_is_stored_is_removed(work: Path):
    (work / "REPORT.md").write_text("stored")
    known = frozenset({hashlib.sha256(b"stored").hexdigest()})

    assert report.set_aside(str(work), UID, known=known) == ""
    assert list(work.iterdir()) == []


def test_a_report_of_ours_that_was_changed_since_is_kept(work: Path):
    (work / "REPORT.md").write_text("stored, and a note of mine")
    known = frozenset({hashlib.sha256(b"stored").hexdigest()})

    assert report.set_aside(str(work), UID, known=known) == ASIDE


def test_a_link_to_a_stored_report_is_moved_and_not_removed(work: Path, tmp_path: Path):
    (tmp_path / "target").write_text("stored")
    (work / "REPORT.md").symlink_to(tmp_path / "target")
    known = frozenset({hashlib.sha256(b"stored").hexdigest()})

    assert report.set_aside(str(work), UID, known=known) == ASIDE


def test_what_was_set_aside_comes_back_when_the_agent_wrote_nothing(work: Path):
    (work / "REPORT.md").write_text("mine")
    name = report.set_aside(str(work), UID)

    assert report.put_back(str(work), name)
    assert (work / "REPORT.md").read_text() == "mine"
    assert not (work / ASIDE).exists()


@pytest.mark.parametrize("kind", ["file", "directory", "dangling link"])
def test_what_was_set_aside_stays_aside_when_the_agent_left_something(work: Path, kind):
    (work / "REPORT.md").write_text("mine")
    name = report.set_aside(str(work), UID)
    if kind == "file":
        (work / "REPORT.md").write_text("the agent's")
    elif kind == "directory":
        (work / "REPORT.md").mkdir()
    else:
        (work / "REPORT.md").symlink_to("nowhere")

    assert not report.put_back(str(work), name)
    assert (work / ASIDE).read_text() == "mine"


def test_putting_back_what_the_agent_deleted_is_no_error(work: Path):
    assert not report.put_back(str(work), ASIDE)


# -- what the agent left -----------------------------------------------------------------------


def test_a_report_is_read_with_its_digest_and_size(work: Path):
    (work / "REPORT.md").write_text("# Done\n")

    found = report.collect(str(work), limit=LIMIT)

    assert (found.state, found.text, found.size, found.note) == ("saved", "# Done\n", 7, "")
    assert found.sha256 == hashlib.sha256(b"# Done\n").hexdigest()


def test_no_report_is_missing(work: Path):
    assert report.collect(str(work), limit=LIMIT).state == Run.Report.MISSING


@pytest.mark.timeout(10)
@pytest.mark.parametrize("kind", ["link", "pipe", "directory"])
def test_what_is_no_regular_file_is_not_read(work: Path, tmp_path: Path, kind):
    (tmp_path / "shadow").write_text("root:secret")
    {
        "link": lambda: (work / "REPORT.md").symlink_to(tmp_path / "shadow"),
        "pipe": lambda: os.mkfifo(work / "REPORT.md"),
        "directory": lambda: (work / "REPORT.md").mkdir(),
    }[kind]()

    found = report.collect(str(work), limit=LIMIT)

    assert (found.state, found.text) == (Run.Report.REFUSED, "")
    assert "no regular file" in found.note


def test_of_2_gib_the_first_bytes_are_kept_and_the_cut_shows(work: Path):
    """L-8: the outbox once read a whole sparse file into memory."""
    with (work / "REPORT.md").open("wb") as file:
        file.write(b"begin")
        file.truncate(2 * 2**30)

    found = report.collect(str(work), limit=LIMIT)

    assert found.state == Run.Report.CUT
    assert found.size == 2 * 2**30
    assert len(found.text) < LIMIT + 200
    assert found.text.startswith("begin")
    assert "[cut here by sanduk: the first 2,097,152 of 2,147,483,648 bytes]" in found.text
    assert "\x00" not in found.text


def test_bytes_that_are_no_utf8_are_shown_and_said(work: Path):
    (work / "REPORT.md").write_bytes(b"caf\xe9 and a real \xef\xbf\xbd")

    found = report.collect(str(work), limit=LIMIT)

    assert found.state == Run.Report.SAVED
    assert found.text == "caf� and a real �"
    assert "not UTF-8" in found.note


def test_a_replacement_character_of_the_agents_own_is_utf8(work: Path):
    (work / "REPORT.md").write_text("a � b")

    assert report.collect(str(work), limit=LIMIT).note == ""


def test_a_cut_through_a_character_is_not_called_bad_utf8(work: Path):
    (work / "REPORT.md").write_text("ééééé")

    found = report.collect(str(work), limit=5)

    assert found.text.startswith("éé\n")
    assert "UTF-8" not in found.note


def test_a_nul_is_shown_since_no_column_takes_it(work: Path):
    (work / "REPORT.md").write_bytes(b"a\x00b")

    assert report.collect(str(work), limit=LIMIT).text == "a␀b"


def test_an_empty_report_is_a_report(work: Path):
    (work / "REPORT.md").touch()

    assert report.collect(str(work), limit=LIMIT).state == Run.Report.SAVED


def test_a_workspace_replaced_by_a_link_is_not_read(work: Path, tmp_path: Path):
    """An agent with the parent directory lent to it can do that; it must not crash the ending."""
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "REPORT.md").write_text("somebody else's")
    work.rmdir()
    work.symlink_to(tmp_path / "other")

    found = report.collect(str(work), limit=LIMIT)

    assert (found.state, found.text) == (Run.Report.REFUSED, "")


@needs_root
def test_a_report_that_may_not_be_read_says_so():
    with open_directory() as work:
        (work / "REPORT.md").write_text("closed")
        (work / "REPORT.md").chmod(0)
        with acting_as():
            found = report.collect(str(work), limit=LIMIT)

    assert found.state == Run.Report.REFUSED
    assert "may not be read by this account" in found.note


# -- the copy ----------------------------------------------------------------------------------


def test_the_instruction_follows_the_task():
    told = report.with_instruction("do it\n\n")

    assert told.startswith("do it\n\n")
    assert told.count("REPORT.md") == 1
    assert "\n\n\n" not in told
