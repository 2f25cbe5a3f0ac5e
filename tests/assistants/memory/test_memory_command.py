"""`sanduk memory`: every verb, in words and as JSON."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from assistants import deciding
from assistants.management.commands import sanduk_memory
from assistants.memory import snapshots
from assistants.models import MemorySnapshot, Wakeup
from runs import credentials
from runs.hidden import MARK
from runs.home import prepare
from runs.refusal import Refusal
from tests.assistants.memory.conftest import names, wake, workspace, writing
from tests.factories import make_run

pytestmark = pytest.mark.django_db


def act(*words: str) -> int:
    command = sanduk_memory.Command()
    parser = command.create_parser("sanduk", "sanduk_memory")
    return command.act(**vars(parser.parse_args(list(words))))


def said(capsys, *words: str) -> str:
    capsys.readouterr()
    assert act(*words) == 0
    return capsys.readouterr().out


def test_log_lists_snapshots_newest_first_and_says_what_waits(held, capsys):
    after = wake(held, writing("notes", "x"))
    assert act("held", "log") == 0
    out, err = capsys.readouterr()

    first, second, third = out.splitlines()
    assert first.startswith("ID ")
    assert second.split()[0] == str(after.pk)
    assert "waiting" in second
    assert "before" in third
    assert f"waiting for review: {after.pk}" in err
    [newest] = json.loads(said(capsys, "held", "log", "--limit", "1", "--json"))
    assert (newest["id"], newest["digest"]) == (after.pk, after.digest)


def test_diff_shows_what_the_last_wakeup_changed(held, capsys):
    writing("notes", "one\n")(workspace(held))
    after = wake(held, writing("notes", "one\n\x1b[2Jtwo\n"))
    assert act("held", "diff") == 0
    out, err = capsys.readouterr()

    assert "changed  notes" in out
    assert "    +\\x1b[2Jtwo" in out
    assert "\x1b" not in out
    assert f"it waits: sanduk memory held accept|reject {after.pk}" in err
    assert "+\\x1b" not in said(capsys, "held", "diff", "--names-only")


def test_no_print_of_a_memory_holds_a_secret_of_this_host(scout, capsys):
    prepare()
    key = "kept-in-the-store"
    credentials.store("HOOK_SECRET", key)
    wake(scout, writing("notes", f"{'x' * 395}{key}\nand {key}\n"))
    wake(scout, writing(f"named-{key}", "x"))
    after = MemorySnapshot.objects.order_by("-pk").first()
    (workspace(scout) / "link").symlink_to(key)
    act("scout", "take")
    first = MemorySnapshot.objects.order_by("pk").first()

    told = [
        said(capsys, "scout", *words)
        for words in (["diff"], ["diff", str(first.pk), "now"], ["show"], ["show", "--json"],
                      ["diff", str(first.pk), "now", "--json"])
    ]  # fmt: skip
    page = deciding.changes(after)

    assert MARK in told[0]
    assert f"+and {MARK}" in told[1]
    assert not [each for each in [*told, str(page)] if key[:8] in each]


def test_names_are_shown_as_they_are(scout, capsys):
    wake(scout, writing("a\nb\tc", "x"))
    Path(os.fsdecode(os.fsencode(workspace(scout)) + b"/d\xff")).write_text("x")
    act("scout", "take")

    shown = said(capsys, "scout", "show")
    assert "a\\nb\\tc" in shown
    assert "d\\xff" in shown
    assert "udcff" not in shown


def test_diff_of_two_and_of_now_and_as_json(scout, capsys):
    first = wake(scout, writing("notes", "one"))
    second = wake(scout, writing("more", "two"))
    writing("notes", "by hand")(workspace(scout))

    assert "added    more" in said(capsys, "scout", "diff", str(first.pk), str(second.pk))
    assert "added    notes" in said(capsys, "scout", "diff", str(first.pk))
    assert "changed  notes" in said(capsys, "scout", "diff", str(second.pk), "now")
    count = scout.snapshots.count()
    found = json.loads(said(capsys, "scout", "diff", str(second.pk), "now", "--json"))
    assert found["to"] == "now"
    assert found["from"]["id"] == second.pk
    [change] = found["differences"]
    assert (change["change"], change["path"]) == ("changed", "notes")
    assert scout.snapshots.count() == count
    assert said(capsys, "scout", "diff", "now") == said(
        capsys, "scout", "diff", str(second.pk), "now"
    )


def test_diff_names_what_could_not_be_kept(make, capsys):
    make(memory_max_mb=1)
    from assistants.models import Assistant

    scout = Assistant.objects.get(name="scout")
    wake(scout, lambda place: (place / "huge").write_bytes(bytes(3_000_000)))

    assert "not kept huge: 3.0 MB are more than is left of 1 MB" in said(capsys, "scout", "diff")


def test_show_lists_every_entry(scout, capsys):
    wake(scout, lambda place: (place / "link").symlink_to("/etc/passwd"))
    assert "link -> /etc/passwd" in said(capsys, "scout", "show")
    after = wake(scout, writing("notes\nof mine", "one"))
    shown = said(capsys, "scout", "show", str(after.pk))

    assert "3  notes\\nof mine" in shown
    found = json.loads(said(capsys, "scout", "show", "--json"))
    assert [entry["path"] for entry in found["entries"]] == ["link", "notes\nof mine"]


def test_report_shows_the_last_report_and_what_that_wakeup_changed(scout, capsys):
    with pytest.raises(Refusal, match="has no wakeup with a run yet"):
        act("scout", "report")
    after = wake(scout, writing("notes", "learned\n"))
    run = make_run(workspace=str(workspace(scout)), state="ended", report="All \x1b[1mwell\nindeed")
    Wakeup.objects.filter(pk=after.wakeup_id).update(run=run)

    out = said(capsys, "scout", "report")
    assert "All \\x1b[1mwell\nindeed" in out
    assert "added    notes" in out
    found = json.loads(said(capsys, "scout", "report", "--json"))
    assert found["report"]["text"] == run.report
    assert [each["path"] for each in found["memory"]["differences"]] == ["notes"]


def test_restore_says_how_to_undo_it(scout, capsys):
    first = wake(scout, writing("notes", "one"))
    wake(scout, writing("notes", "two"))
    capsys.readouterr()
    assert act("scout", "restore", str(first.pk)) == 0
    out, err = capsys.readouterr()

    assert f"holds snapshot {first.pk} again" in out
    assert (workspace(scout) / "notes").read_text() == "one"
    undo = err.split("to undo it: sanduk memory scout ")[1].split()
    assert act("scout", *undo) == 0
    assert (workspace(scout) / "notes").read_text() == "two"
    done = json.loads(said(capsys, "scout", "restore", str(first.pk), "--json"))
    assert done["restored"]["digest"] == first.digest
    assert done["left_beside"] is None


def test_restoring_what_nobody_accepted_says_that_it_waits(held, capsys):
    after = wake(held, writing("notes", "x"))
    act("held", "reject", str(after.pk), "--reason", "not sure")
    capsys.readouterr()
    act("held", "restore", str(after.pk))
    copy = held.snapshots.order_by("-pk")[0]

    assert f"sanduk memory held accept {copy.pk}" in capsys.readouterr().err


def test_accept_and_reject_tell_what_the_next_wakeup_starts_from(held, capsys):
    first = wake(held, writing("notes", "x"))
    assert act("held", "accept", str(first.pk), "--reason", "read it") == 0
    out, err = capsys.readouterr()
    assert "review accepted by" in out
    assert f"the next wakeup starts from snapshot {first.pk}" in err

    second = wake(held, writing("poison", "x"))
    assert act("held", "reject", str(second.pk), "--reason", "orders") == 0
    out, err = capsys.readouterr()
    assert ": orders" in out
    assert f"the workspace is put back: snapshot {first.pk + 1} restored" in err
    assert names(workspace(held)) == ["notes"]


def test_take_keeps_what_is_there(scout, capsys):
    writing("notes", "x")(workspace(scout))
    taken = json.loads(said(capsys, "scout", "take", "--json"))

    assert (taken["moment"], taken["files"]) == ("by_hand", 1)
    assert MemorySnapshot.objects.get().pk == taken["id"]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("restore",), "restore needs the ID of a snapshot"),
        (("show", "1", "2"), "show takes one ID at most"),
        (("log", "1"), "log takes no ID"),
        (("diff", "1", "2", "3"), "diff takes two IDs at most"),
        (("log", "--reason", "x"), "--reason is for accept and reject"),
        (("show", "--names-only"), "--names-only is for diff and report"),
        (("show", "99999999"), "scout has no snapshot '99999999'"),
        (("show", "²"), "scout has no snapshot '²'"),
        (("show", "9" * 30), "scout has no snapshot"),
        (("show",), "scout has no snapshot yet"),
    ],
)
def test_what_cannot_be_is_refused_with_the_fix(scout, words, why):
    with pytest.raises(Refusal, match=why.replace("(", r"\(")):
        act("scout", *words)


def test_a_snapshot_of_another_assistant_is_not_found(scout, held):
    other = wake(held, writing("notes", "x"))

    with pytest.raises(Refusal, match="scout has no snapshot"):
        act("scout", "restore", str(other.pk))


def test_an_assistant_that_is_not_there_is_refused(scout):
    with pytest.raises(Refusal, match="did you mean scout"):
        act("scuot", "log")


def test_a_damaged_memory_is_one_sentence(scout):
    after = wake(scout, writing("notes", "x"))
    for path in (snapshots.store_of(scout).root / "lists").iterdir():
        path.write_bytes(b"nothing")

    with pytest.raises(Refusal, match="is lost or damaged; other snapshots may be whole"):
        act("scout", "show", str(after.pk))
