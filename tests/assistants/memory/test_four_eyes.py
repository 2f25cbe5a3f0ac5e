"""Who woke or told an assistant does not accept what it wants to remember of that."""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model

from assistants import asked, memory
from assistants.memory import authorship
from assistants.models import InboxMessage, Wakeup
from runs import audit, four_eyes
from runs.models import AuditEvent, TerminalAccount
from runs.refusal import Refusal
from tests.assistants.memory.conftest import names, wake, workspace, writing
from tests.assistants.memory.test_memory_command import act
from tests.factories import make_run

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def strict(settings):
    settings.SANDUK_FOUR_EYES = True


@pytest.fixture
def ada():
    return get_user_model().objects.create_superuser("ada")


@pytest.fixture
def ben():
    return get_user_model().objects.create_superuser("ben")


@pytest.fixture
def remembered(held, ada):
    """What a wakeup wants to remember that Ada told something."""
    after = wake(held, writing("notes", "useful"))
    message = InboxMessage.objects.create(assistant=held, body="hi", author=ada)
    message.given_to.add(after.wakeup)
    return after


def test_who_told_it_something_neither_accepts_nor_restores_and_may_reject(held, remembered, ada):
    for act_on in (memory.accept, memory.restore):
        with pytest.raises(Refusal, match=r"ada asked for memory \d+ or fed it, and cannot"):
            act_on(held, remembered, actor=ada)
    assert not AuditEvent.objects.filter(action__startswith="memory.").exists()
    memory.reject(held, remembered, actor=ada, reason="no")
    remembered.refresh_from_db()
    assert remembered.review == "rejected"


def test_somebody_else_accepts_and_restores(held, remembered, ada, ben):
    assert memory.accept(held, remembered, actor=ben).review == "accepted"
    with pytest.raises(Refusal, match="cannot restore it"):
        memory.restore(held, remembered, actor=ada)
    memory.restore(held, remembered, actor=ben)
    assert names(workspace(held)) == ["notes"]


def test_who_woke_it_on_the_web_is_its_author_too(held, ada):
    after = wake(held, writing("notes", "useful"))
    Wakeup.objects.filter(pk=after.wakeup_id).update(trigger="hand")
    audit.record(asked.ACTION, asked.subject_of(after.wakeup), actor=ada)
    with pytest.raises(Refusal, match="ada asked for memory"):
        memory.accept(held, after, actor=ada)


def test_a_copy_is_whose_the_original_is(held, remembered, ada, ben):
    (workspace(held) / "notes").write_text("something else")
    copy, _, _ = memory.restore(held, remembered, actor=ben)
    assert (copy.wakeup, copy.review) == (None, "waiting")
    with pytest.raises(Refusal, match="ada asked for memory"):
        memory.accept(held, copy, actor=ada)


def test_what_a_person_of_this_host_added_to_it_does_not_make_it_anothers(held, remembered, ada):
    (workspace(held) / "more").write_text("by hand")
    found = memory.take(held, None, "by_hand")
    assert (found.review, found.digest == remembered.digest) == ("waiting", False)
    assert authorship.authors_of(found) == {ada.pk}


def test_who_started_a_run_in_the_workspace_is_behind_what_it_left(held, ada):
    wake(held)
    make_run(state="ended", workspace=str(workspace(held)), requested_by=ada)
    (workspace(held) / "left").write_text("by a run")
    found = memory.take(held, None, "by_hand")
    assert found.review == "waiting"
    assert authorship.authors_of(found) == {ada.pk}


def test_without_four_eyes_the_assistants_own_rule_decides(held, remembered, ada, settings):
    settings.SANDUK_FOUR_EYES = None
    assert not four_eyes.is_on()
    held.config["exclude_author"] = True
    held.save()
    remembered.refresh_from_db()
    with pytest.raises(Refusal, match="cannot accept it"):
        memory.accept(remembered.assistant, remembered, actor=ada)
    held.config["exclude_author"] = False
    held.save()
    remembered.refresh_from_db()
    memory.accept(remembered.assistant, remembered, actor=ada)


def test_at_a_terminal_the_account_counts_as_whom_it_is_mapped_to(held, remembered, ada, ben):
    words = ("held", "accept", str(remembered.pk))
    with pytest.raises(Refusal, match="mapped to no site user: sanduk user map"):
        act(*words)
    mapped = TerminalAccount.objects.create(account=audit.account(), user=ada)
    for verb in ("accept", "restore"):
        with pytest.raises(Refusal, match="ada asked for memory"):
            act("held", verb, str(remembered.pk))
    mapped.user = ben
    mapped.save()
    assert act(*words) == 0
    assert AuditEvent.objects.get(action="memory.accept").actor == ben


def test_at_a_terminal_going_back_is_said_outright(held, capsys, settings):
    settings.SANDUK_FOUR_EYES = None
    first, second = wake(held, writing("one", "1")), wake(held, writing("two", "2"))
    act("held", "accept", str(second.pk))
    with pytest.raises(Refusal, match=f"goes back behind memory {second.pk}"):
        act("held", "accept", str(first.pk))
    capsys.readouterr()
    act("held", "log")
    [line] = [
        each for each in capsys.readouterr().out.splitlines() if each.startswith(f"{first.pk} ")
    ]
    assert "waiting, superseded" in line
    assert act("held", "accept", str(first.pk), "--back") == 0
    first.refresh_from_db()
    assert first.review == "accepted"
