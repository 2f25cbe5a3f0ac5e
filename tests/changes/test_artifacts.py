"""Artifacts and the results contract: what an agent leaves beside its work harms nobody."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from changes import artifacts, results
from changes.models import Artifact
from changes.patches import ChangedPath
from runs.refusal import Refusal
from tests.changes.rows import make_attempt, make_change


@pytest.fixture
def left(tmp_path) -> Path:
    place = tmp_path / "clone" / ".sanduk" / "artifacts"
    place.mkdir(parents=True)
    return place


def taken(left: Path) -> dict[str, str]:
    return {each.name: each.refused for each in artifacts.take(left.parents[1])}


def test_pictures_and_texts_are_taken_byte_for_byte(left):
    (left / "shot.png").write_bytes(b"\x89PNG\r\n\0")
    (left / "log.TXT").write_bytes(b"x")

    assert artifacts.take(left.parents[1]) == (
        artifacts.Taken("log.TXT", b"x"),
        artifacts.Taken("shot.png", b"\x89PNG\r\n\0"),
    )


def test_everything_else_is_refused_by_name(left, tmp_path):
    (tmp_path / "secret.txt").write_text("x")
    (left / "run.sh").write_text("x")
    (left / "none").write_text("x")
    (left / "link.txt").symlink_to(tmp_path / "secret.txt")
    os.mkfifo(left / "pipe.txt")
    (left / "dir.txt").mkdir()
    (left / "large.txt").write_bytes(b"x" * (artifacts.FILE_MAX + 1))

    found = taken(left)

    assert set(found) == {"run.sh", "none", "link.txt", "pipe.txt", "dir.txt", "large.txt"}
    assert all(found.values())


def test_there_is_a_limit_to_their_number_and_to_all_together(left, monkeypatch):
    monkeypatch.setattr(artifacts, "COUNT_MAX", 2)
    monkeypatch.setattr(artifacts, "TOTAL_MAX", 10)
    for name, size in (("a.txt", 6), ("b.txt", 6), ("c.txt", 3), ("d.txt", 1)):
        (left / name).write_bytes(b"x" * size)

    found = taken(left)

    assert [name for name, why in found.items() if not why] == ["a.txt", "c.txt"]
    assert "larger than" in found["b.txt"]
    assert found["d.txt"] == "there are more than 2"


@pytest.mark.django_db
def test_a_name_names_no_path_of_this_host(left, tmp_path, settings):
    settings.SANDUK_HOME = tmp_path / "home"
    hostile = b"..\\..\x1b[2J\xff\n.txt"
    Path(os.fsdecode(os.fsencode(left) + b"/" + hostile)).write_bytes(b"content")
    attempt = make_attempt(make_change())
    before = {path for path in tmp_path.rglob("*") if path.is_file()}

    artifacts.keep(attempt, artifacts.take(left.parents[1]))

    row = Artifact.objects.get()
    assert row.name == "..\\\\..\\x1b[2J\\xff\\x0a.txt"
    (written,) = {path for path in tmp_path.rglob("*") if path.is_file()} - before
    assert written == tmp_path / "home" / "changes" / attempt.change.uid / "artifacts" / row.uid
    assert written.stat().st_mode & 0o777 == 0o600
    assert artifacts.content_of(row) == b"content"


@pytest.mark.django_db
def test_what_was_refused_is_on_record_without_content(left, tmp_path, settings):
    settings.SANDUK_HOME = tmp_path / "home"
    (left / "run.sh").write_text("x")
    artifacts.keep(make_attempt(make_change()), artifacts.take(left.parents[1]))

    row = Artifact.objects.get()
    assert (row.name, row.size) == ("run.sh", 0)
    with pytest.raises(Refusal, match="was not kept"):
        artifacts.content_of(row)


@pytest.mark.django_db
def test_content_that_was_altered_or_is_gone_is_not_shown(left, tmp_path, settings):
    settings.SANDUK_HOME = tmp_path / "home"
    (left / "a.txt").write_text("x")
    artifacts.keep(make_attempt(make_change()), artifacts.take(left.parents[1]))
    row = Artifact.objects.get()
    (file,) = (tmp_path / "home").rglob(row.uid)

    file.write_text("y")
    with pytest.raises(Refusal, match="not what the agent left"):
        artifacts.content_of(row)
    file.unlink()
    file.symlink_to(left / "a.txt")
    with pytest.raises(Refusal, match="cannot be read"):
        artifacts.content_of(row)


@pytest.mark.django_db
def test_when_not_all_can_be_written_none_is_kept(left, tmp_path, settings, monkeypatch):
    settings.SANDUK_HOME = tmp_path / "home"
    (left / "a.txt").write_text("x")
    (left / "b.txt").write_text("x")
    real = artifacts._write

    def once(path: Path, data: bytes) -> None:
        if any(path.parent.iterdir()):
            raise OSError(28, "No space left on device")
        real(path, data)

    monkeypatch.setattr(artifacts, "_write", once)
    with pytest.raises(OSError, match="No space"):
        artifacts.keep(make_attempt(make_change()), artifacts.take(left.parents[1]))

    assert not Artifact.objects.exists()
    assert not [path for path in (tmp_path / "home").rglob("*") if path.is_file()]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.png", "image/png"),
        ("a.SVG", "text/plain"),
        ("a.html", "text/plain"),
        ("a.png.html", "text/plain"),
        ("png", "application/octet-stream"),
    ],
)
def test_what_could_run_in_a_browser_is_served_as_text(name, kind):
    assert artifacts.type_of(Artifact(name=name)) == kind


def account(tmp_path: Path, text: str | bytes) -> tuple[results.Results | None, str]:
    (tmp_path / ".sanduk").mkdir(exist_ok=True)
    file = tmp_path / ".sanduk" / "results.json"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return results.take(tmp_path)


def test_an_account_is_optional(tmp_path):
    assert results.take(tmp_path) == (None, "")


def test_an_account_is_read_with_whatever_else_it_says(tmp_path):
    said = {
        "task_id": "x",
        "status": "succeeded",
        "summary": "done",
        "files_changed": [],
        "tests_run": 3,
        "duration_seconds": 1.5,
        "risks": ["none"],
        "extra": {"a": 1},
    }

    found, wrong = account(tmp_path, json.dumps(said))

    assert wrong == ""
    assert (found.summary, found.tests_run, found.files_changed) == ("done", 3, ())


@pytest.mark.parametrize(
    "text",
    [
        '{"summary": "x", "duration_seconds": "abc"}',
        '{"summary": "x", "duration_seconds": []}',
        '{"summary": "x", "duration_seconds": NaN}',
        '{"summary": "x", "duration_seconds": -1}',
        '{"summary": "x", "tests_run": -1}',
        '{"summary": "x", "tests_run": true}',
        '{"summary": "x", "tests_run": 99999999999999999999}',
        '{"summary": "x", "summary": "y"}',
        '{"summary": " "}',
        '{"summary": "x", "status": "great"}',
        '{"summary": "x", "files_changed": "a"}',
        "[" * 100_000,
        "{}",
        "[]",
        b"\xff",
        '{"summary": "\\ud800"}',
        '{"summary": "x\\u0000"}',
        '{"summary": "x", "pad": "' + "x" * results.FILE_MAX + '"}',
    ],
    ids=range(18),
)
def test_an_account_that_is_none_is_left_aside_and_harms_nothing(tmp_path, text):
    found, wrong = account(tmp_path, text)

    assert found is None
    assert wrong.startswith("results.json: ")
    assert len(wrong) < 500


def changed(path: bytes, old: bytes | None = None) -> ChangedPath:
    return ChangedPath(path, old, "modified", "100644", "100644", "1", "2", False, 1, 1)


@pytest.mark.parametrize(
    ("claimed", "flagged"),
    [
        (None, []),
        (("a.py", "./b.py"), []),
        ((), [b"a.py"]),
        (("a.py",), [b"b.py"]),
        (("a.py", "b.py", "c.py"), [b"c.py"]),
        (("a.py", "b.py", "old.py"), []),
    ],
)
def test_a_claim_that_differs_from_what_changed_is_flagged(claimed, flagged):
    real = [changed(b"a.py"), changed(b"b.py", b"old.py")]

    found = results.mismatch(results.Results(summary="x", files_changed=claimed), real)

    assert [flag.path for flag in found] == flagged
