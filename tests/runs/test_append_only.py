"""Decisions and audit events are written once."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError

from runs import audit
from runs.models import AuditEvent, Decision


def decision(**fields) -> Decision:
    given = {"subject": "outbox:1", "digest": "d" * 64, "verdict": "approve", "via": "web"}
    return Decision(**{**given, **fields})


@pytest.mark.django_db
@pytest.mark.parametrize("row", [decision(), AuditEvent(action="run.stop")])
def test_a_written_row_is_neither_changed_nor_deleted(row):
    row = type(row)(**{f.attname: getattr(row, f.attname) for f in row._meta.concrete_fields})
    row.save()

    with pytest.raises(TypeError, match="never changed"):
        row.save()
    with pytest.raises(TypeError, match="never deleted"):
        row.delete()
    assert type(row).objects.count() == 1


@pytest.mark.django_db
@pytest.mark.parametrize("model", [Decision, AuditEvent])
def test_rows_in_bulk_are_neither_changed_nor_deleted(model):
    row = decision() if model is Decision else AuditEvent(action="run.stop")
    row.save()

    with pytest.raises(TypeError, match="never changed"):
        model.objects.update(account="mallory")
    with pytest.raises(TypeError, match="never changed"):
        model.objects.bulk_update([row], ["account"])
    with pytest.raises(TypeError, match="never deleted"):
        model.objects.all().delete()
    with pytest.raises(TypeError, match="never deleted"):
        model.objects.filter(pk=row.pk).delete()
    assert model.objects.get().account == ""


@pytest.mark.django_db
def test_one_person_decides_once_on_one_content():
    anna = User.objects.create(username="anna")
    decision(actor=anna).save()
    decision(actor=anna, digest="e" * 64).save()
    decision(actor=None, account="anna").save()

    with pytest.raises(IntegrityError):
        decision(actor=anna, verdict="reject").save()


@pytest.mark.django_db
def test_an_audit_event_at_a_terminal_names_the_account():
    event = audit.record("run.stop", "run:abc", by="clean")

    assert event.account == audit.account() != ""
    assert event.detail == {"by": "clean"}


@pytest.mark.django_db
def test_an_audit_event_of_a_site_user_names_no_account():
    anna = User.objects.create(username="anna")

    assert audit.record("run.stop", actor=anna).account == ""
