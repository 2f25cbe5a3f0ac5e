"""An exported audit record can be checked without the database it came from."""

from __future__ import annotations

import csv
import datetime as dt
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runs import audit, audit_export, audit_file, csv_cells
from runs.management.commands import sanduk_audit
from runs.models import AuditEvent
from runs.refusal import Refusal
from tests.runs.conftest import state
from tests.site.pages import EVIL, somebody

__all__ = ["state"]
pytestmark = pytest.mark.django_db(transaction=True)
EVIL_CELLS = ["=1+1", "@cmd", "-2", "+3", "\ttab", "'quoted", 'a "b", c\r\nd', EVIL[:90]]


@pytest.fixture(autouse=True)
def there(state):
    state.mkdir(exist_ok=True)


@pytest.fixture
def record():
    """Ten events of two people and this account, hostile where they can be."""
    anna = somebody("anna")
    for number, subject in enumerate(EVIL_CELLS):
        audit.record("run.stop", subject, odd={"2": 1.5, "a": "ü\x00"}, step=number)
    audit.record("outbox.approve", "outbox:1", actor=anna, reason="=HYPERLINK(1)")
    audit.record("outbox.approve", "outbox:2", actor=anna)


def act(*words: str) -> int:
    command = sanduk_audit.Command()
    return command.act(**vars(command.create_parser("sanduk", "audit").parse_args(list(words))))


def exported(place: Path, *words: str) -> Path:
    assert act("export", str(place), *words) == 0
    return place


def rewritten(place: Path, change) -> Path:
    """The export with its lines as `change` returns them."""
    lines = [json.loads(line) for line in place.read_text().splitlines()]
    place.write_text("".join(f"{json.dumps(each)}\n" for each in change(lines)))
    return place


@pytest.mark.parametrize("name", ["record.jsonl", "record.csv"])
def test_a_whole_export_stands_and_is_for_its_owner_alone(record, tmp_path, name, capsys):
    place = exported(tmp_path / name)
    found = audit_file.checked(place)
    assert (found.events, found.troubles, found.gaps) == (10, [], 0)
    assert found.compared
    assert found.is_whole is (name == "record.jsonl")
    assert place.stat().st_mode & 0o777 == 0o600
    assert act("verify", str(place)) == 0
    assert "10 events; each is as it was written" in capsys.readouterr().out


def test_it_stands_where_its_database_is_not(record, tmp_path):
    places = [exported(tmp_path / name) for name in ("record.jsonl", "record.csv")]
    AuditEvent.objects.all()._raw_delete("default")
    for place in places:
        found = audit_file.checked(place)
        # what says that it is ours, and is not in the record here, is not passed
        assert bool(found.troubles) is (place.suffix == ".jsonl")
    rewritten(places[0], lambda lines: [{**lines[0], "installation": "f" * 16}, *lines[1:]])
    found = audit_file.checked(places[0])
    assert (found.troubles, found.compared, found.last_number) == ([], False, 10)


@pytest.mark.parametrize(
    "change",
    [
        lambda lines: [*lines[:4], {**lines[4], "detail": {}}, *lines[5:]],
        lambda lines: [*lines[:4], {**lines[4], "actor": 99}, *lines[5:]],
        lambda lines: [*lines[:4], *lines[5:]],
        lambda lines: lines[:-1],
        lambda lines: [*lines[:4], lines[5], lines[4], *lines[6:]],
        lambda lines: [*lines, lines[-1]],
        lambda lines: [lines[0], *lines[2:]],
        lambda lines: [{**lines[0], "events": 9}, *lines[1:-1]],
    ],
    ids=["detail", "actor", "gap", "end", "order", "twice", "begin", "count"],
)
@pytest.mark.parametrize("away", [False, True])
def test_whatever_was_done_to_a_whole_export_shows(record, tmp_path, change, away):
    place = exported(tmp_path / "record.jsonl")
    if away:  # another machine's
        rewritten(place, lambda lines: [{**lines[0], "installation": "f" * 16}, *lines[1:]])
        AuditEvent.objects.all()._raw_delete("default")
    rewritten(place, change)
    assert audit_file.checked(place).troubles
    assert act("verify", str(place)) == 1


def test_a_whole_new_chain_does_not_pass_where_the_record_is(record, tmp_path):
    before = exported(tmp_path / "before.jsonl")
    AuditEvent.objects.all()._raw_delete("default")
    audit.record("run.stop", "another")
    found = audit_file.checked(before)
    assert "event 1 is not the one in this installation's record" in found.troubles


def test_a_changed_cell_of_a_table_shows(record, tmp_path):
    place = exported(tmp_path / "record.csv")
    place.write_text(place.read_text().replace("outbox:2", "outbox:3"))
    assert any("changed" in trouble for trouble in audit_file.checked(place).troubles)


def test_filters_are_kept_and_the_gaps_are_said(record, tmp_path, capsys):
    place = exported(tmp_path / "part.jsonl", "--action", "run.stop", "--subject", "@cmd")
    head, event = (json.loads(line) for line in place.read_text().splitlines())
    assert head["filters"] == {"action": "run.stop", "subject": "@cmd"}
    assert (head["events"], event["subject"]) == (1, "@cmd")
    found = audit_file.checked(place)
    assert (found.events, found.gaps, found.troubles, found.is_whole) == (1, 1, [], False)
    assert act("verify", str(place)) == 0
    assert "is not known" in capsys.readouterr().out
    rewritten(place, lambda lines: [{**lines[0], "filters": {}}, lines[1]])
    assert audit_file.checked(place).troubles


def test_people_accounts_and_times_choose(record):
    now = AuditEvent.objects.order_by("-number")[0].at
    minute = dt.timedelta(minutes=1)
    assert audit_export.chosen(who="anna").count() == 2
    assert audit_export.chosen(who=audit.account()).count() == 8
    assert audit_export.chosen(since=now - minute, until=now + minute).count() == 10
    assert audit_export.chosen(since=now + minute).count() == 0
    assert audit_export.chosen(until=now - minute).count() == 0


def test_no_cell_is_a_formula(record, tmp_path):
    place = exported(tmp_path / "record.csv")
    with place.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [csv_cells.unsafe(row["subject"]) for row in rows][:8] == EVIL_CELLS
    for row in rows:
        for cell in row.values():
            assert not cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n")), cell


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
def test_what_is_made_safe_comes_back(text):
    assert csv_cells.unsafe(csv_cells.safe(text)) == text
    assert not csv_cells.safe(text).startswith(("=", "+", "-", "@"))


def test_nothing_is_replaced_and_what_fails_leaves_nothing(record, tmp_path, monkeypatch):
    place = exported(tmp_path / "record.jsonl")
    with pytest.raises(Refusal, match="there already"):
        act("export", str(place))

    def broken(*_: object):
        yield "begun"
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(audit_export, "written", broken)
    with pytest.raises(OSError, match="No space"):
        act("export", str(tmp_path / "other.jsonl"))
    assert not (tmp_path / "other.jsonl").exists()


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"{}\n", b'{"export": "sanduk-audit-1", "last": {}}\n[]\n', b"a,b\n1,2\n",
     b"\xff\xfe", b"number,at,actor,who,account,action,subject,detail,previous,sha256\n1,2\n",
     b'{"export": "sanduk-audit-1", "last": {}}\n{"number": 1e99}\n', b'{"a":' * 100_000],
)  # fmt: skip
def test_what_is_no_export_is_refused_in_one_line(tmp_path, content):
    place = tmp_path / "odd"
    place.write_bytes(content)
    with pytest.raises(Refusal, match="no export of an audit record"):
        act("verify", str(place))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.binary(max_size=300))
def test_no_file_is_a_crash(tmp_path, content):
    place = tmp_path / "odd"
    place.write_bytes(b'{"export": "sanduk-audit-1", "last": {}}\n' + content)
    try:
        audit_file.checked(place)
    except Refusal as exc:
        assert "no export" in str(exc)  # noqa: PT017 - both ends are right


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("verify", "--subject", "x"), "without --subject"),
        (("export", "--limit", "3"), "without export"),
        (("--format", "csv"), "goes with export"),
        (("--since", "yesterday"), "is no time"),
        (("export", "--json"), "--format jsonl"),
    ],
)
def test_words_that_do_not_go_together_are_refused(words, why):
    with pytest.raises(Refusal, match=why):
        act(*words)


def test_the_page_exports_what_its_list_shows(record, client, tmp_path):
    client.force_login(somebody("vera", "viewer"))
    listed = client.get("/admin/runs/auditevent/?action=outbox.approve").content.decode()
    assert 'href="export/?action=outbox.approve&amp;format=csv"' in listed
    answer = client.get("/admin/runs/auditevent/export/?action=outbox.approve&format=jsonl&p=2")
    place = tmp_path / "part.jsonl"
    place.write_bytes(answer.getvalue())
    assert answer["Content-Disposition"] == 'attachment; filename="audit.jsonl"'
    found = audit_file.checked(place)
    assert (found.events, found.is_whole, found.troubles) == (2, False, [])
    whole = client.get("/admin/runs/auditevent/export/")
    place.write_bytes(whole.getvalue())
    assert audit_file.checked(place).is_whole
    assert client.post("/admin/runs/auditevent/export/").status_code == 405
    assert client.get("/admin/runs/auditevent/export/?format=exe").status_code == 404
    assert client.get("/admin/runs/auditevent/export/?nothing=1").status_code == 404


def test_who_may_not_see_events_exports_none(record, client):
    assert "/admin/login/" in client.get("/admin/runs/auditevent/export/")["Location"]
    client.force_login(somebody("nobody"))
    assert client.get("/admin/runs/auditevent/export/").status_code == 403
