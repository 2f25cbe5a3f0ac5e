"""The gate: who may let an item out, once, and what that binds to."""

from __future__ import annotations

import datetime as dt

import pytest
from django.contrib.auth.models import User
from django.db import transaction

from assistants import outbox, showing_items
from assistants.config import Config
from assistants.models import Delivery, InboxMessage, MemorySnapshot, OutboxItem
from runs import clock, credentials
from runs.hidden import Hiding
from runs.models import AuditEvent, Decision, TerminalAccount
from runs.refusal import Refusal
from runs.verdicts import Person
from tests.assistants.sending.making import act, approve, make_destination, make_item, reject
from tests.factories import make_assistant, make_wakeup

pytestmark = pytest.mark.django_db
ROOT = Person(account="root")


def user(name: str) -> Person:
    return Person(user=User.objects.create(username=name), account=name)


def standing_of(item: OutboxItem) -> str:
    return "\n".join(showing_items.standing(OutboxItem.objects.get(pk=item.pk)))


def state_of(item: OutboxItem) -> str:
    return OutboxItem.objects.get(pk=item.pk).state


def test_a_held_item_waits_and_goes_nowhere():
    assistant = make_assistant()
    make_destination("log", "file", assistant, path="/nowhere")

    item = make_item(assistant, hold=True)
    assert item.state == "pending"
    assert not Delivery.objects.exists()
    assert not Decision.objects.exists()


def test_an_item_that_needs_no_approval_is_approved_by_the_policy_in_writing():
    assistant = make_assistant()
    log = make_destination("log", "file", assistant, path="/nowhere")
    make_destination("other", "file", path="/nowhere")

    item = make_item(assistant)
    assert (item.state, item.decided_by) == ("approved", "policy")
    (decision,) = Decision.objects.all()
    assert (decision.subject, decision.digest) == (f"outbox:{item.pk}", item.sha256)
    assert (decision.account, decision.via, decision.actor) == ("policy", "policy", None)
    assert [each.destination for each in Delivery.objects.all()] == [log]


def test_the_item_is_undone_with_the_transaction_that_ends_its_wakeup():
    wakeup = make_wakeup(state="ended")
    with transaction.atomic():
        outbox.write(wakeup, "hello", Config(hold=False))
        transaction.set_rollback(True)

    assert not OutboxItem.objects.exists()
    assert not Decision.objects.exists()


@pytest.mark.parametrize("body", ["nul \0 and half \ud800 of a character", "", "ü" * 100])
def test_any_text_is_stored_and_its_digest_fits(body):
    item = OutboxItem.objects.get(pk=make_item(body=body, hold=True).pk)

    assert outbox.digest_of(item.body) == item.sha256
    approve(item, ROOT)


def test_a_found_secret_blocks_approval_by_itself_and_a_person_needs_a_reason():
    credentials.store("HOOK_SECRET", "kept-in-the-store")

    item = make_item(body="it is\nkept-in-the-store")
    assert item.state == "pending"
    assert item.secrets_found == [
        {"kind": "held", "name": "HOOK_SECRET", "spelling": "plain", "line": 2, "times": 1}
    ]
    with pytest.raises(Refusal, match="needs a --reason"):
        approve(item, ROOT)
    assert approve(item, ROOT, reason="it was changed since").item.state == "approved"
    assert Decision.objects.get().reason == "it was changed since"
    told = [str(event.detail) + event.subject for event in AuditEvent.objects.all()]
    assert not any("kept-in" in each for each in told)


def test_a_secret_that_was_taken_out_is_a_finding_too(capsys):
    """The report was altered before it came here: the key itself is not there to be found."""
    key = "kept-in-the-store"
    item = make_item(body=Hiding([key]).text(f"one\nit is {key}, and {key} again"))

    assert item.state == "pending"
    assert [(each["kind"], each["line"], each["times"]) for each in item.secrets_found] == [
        ("replaced", 2, 2)
    ]
    with pytest.raises(Refusal, match="needs a --reason"):
        approve(item, ROOT)
    assert act("outbox", "show", str(item.pk)) == 0
    out = capsys.readouterr().out
    assert "! secret? line 2: held secret, replaced (altered: a key was taken out, 2 times)" in out
    assert f"sha256 {item.sha256} of the altered text" in out
    assert showing_items.as_json(item)["altered"]
    assert not showing_items.as_json(make_item())["altered"]


@pytest.mark.parametrize("wrong", ["", " ", "0" * 11])
def test_an_empty_digest_is_a_wrong_one(wrong):
    item = make_item(hold=True)

    with pytest.raises(Refusal, match=r"read it again|too short"):
        approve(item, ROOT, expect=wrong)
    with pytest.raises(SystemExit):
        act("approve", str(item.pk), "--expect", "")
    with pytest.raises(SystemExit):
        act("reject", str(item.pk), "--reason= ")
    item.refresh_from_db()
    assert item.state == "pending"


def test_secrets_that_cannot_be_looked_for_block_approval_by_itself(state):
    (state / "credentials").write_text("{broken")

    assert make_item().state == "pending"


def test_an_item_of_unreviewed_memory_says_so():
    assistant = make_assistant(config=Config(memory_review=True))
    for moment, digest in (("by_hand", "0" * 64), ("before", "1" * 64)):
        MemorySnapshot.objects.create(assistant=assistant, moment=moment, digest=digest)

    item = make_item(assistant, hold=True)
    assert item.unreviewed_memory


def test_a_decision_is_final_whatever_comes_after():
    """S-5: reject after approve, approve after reject, and either of what the policy approved."""
    approved, rejected, by_policy = make_item(hold=True), make_item(hold=True), make_item()
    approve(approved, ROOT)
    reject(rejected, ROOT)

    with pytest.raises(Refusal, match="already approved by root at 20"):
        reject(approved, Person(account="other"))
    with pytest.raises(Refusal, match="already rejected by root"):
        approve(rejected, Person(account="other"))
    with pytest.raises(Refusal, match="already approved by policy"):
        reject(by_policy, ROOT)
    states = [state_of(each) for each in (approved, rejected, by_policy)]
    assert states == ["approved", "rejected", "approved"]


def test_a_rejection_needs_a_reason_which_is_kept():
    item = make_item(hold=True)
    with pytest.raises(Refusal, match="--reason"):
        reject(item, ROOT, reason="")

    assert reject(item, ROOT, reason="old figures").item.reason == "old figures"


def test_a_decision_binds_to_what_was_read():
    item = make_item(hold=True)

    for wrong in ("0" * 64, item.sha256[:11], item.sha256 + "0"):
        with pytest.raises(Refusal, match=r"read it again|too short"):
            approve(item, ROOT, expect=wrong)
    approve(item, ROOT, expect=item.sha256[:12].upper())
    assert Decision.objects.get().digest == item.sha256


def test_a_text_that_was_changed_in_the_database_cannot_be_approved():
    item = make_item(hold=True)
    OutboxItem.objects.filter(pk=item.pk).update(body="something else")

    with pytest.raises(Refusal, match="digest does not fit"):
        approve(item, ROOT)


def test_two_people_must_approve_and_one_is_never_two():
    item = make_item(hold=True, approvals=2)
    anna, boris = user("anna"), user("boris")

    standing = approve(item, anna)
    assert (standing.item.state, standing.approvals, standing.missing) == ("pending", 1, 1)
    with pytest.raises(Refusal, match="anna has decided"):
        approve(item, anna)
    assert state_of(item) == "pending"
    assert approve(item, boris).item.decided_by == "anna, boris"
    assert state_of(item) == "approved"


def test_after_one_of_two_approvals_it_is_told_whose_that_was():
    item = make_item(hold=True, approvals=2)
    assert "waits for 2 people to approve" in standing_of(item)

    approve(item, user("anna"))
    assert "approved by 1 of 2 people: anna; waits for more" in standing_of(item)


def test_what_is_for_others_than_its_author_is_told_so():
    item = make_item(hold=True, exclude_author=True)

    with pytest.raises(Refusal, match="is for 1 person other than who asked for it or fed it to a"):
        approve(item, Person(account="nobody-here"))


def test_the_right_digest_that_is_too_short_is_told_to_be():
    item = make_item(hold=True)

    with pytest.raises(Refusal, match=r"too short: it takes the first 12 characters .* this is 11"):
        outbox.decide(item.pk, Decision.Verdict.APPROVE, user("anna"), expect=item.sha256[:11])
    with pytest.raises(Refusal, match="has the digest"):
        outbox.decide(item.pk, Decision.Verdict.APPROVE, user("boris"), expect="0" * 11)


def test_an_account_mapped_to_nobody_counts_only_where_one_approval_is_asked():
    two, eyes = make_item(hold=True, approvals=2), make_item(hold=True, exclude_author=True)

    with pytest.raises(Refusal, match="sanduk user map root USER"):
        approve(two, ROOT)
    with pytest.raises(Refusal, match="other than who asked for it or fed it"):
        approve(eyes, ROOT)
    assert not Decision.objects.exists()
    assert reject(two, ROOT).item.state == "rejected"


def test_one_rejection_ends_it_whoever_approved_before():
    item = make_item(hold=True, approvals=2)
    approve(item, user("anna"))

    assert reject(item, user("boris")).item.decided_by == "boris"
    assert state_of(item) == "rejected"


def test_whoever_fed_it_or_asked_for_it_does_not_approve_it():
    anna, boris, clara, dora = (user(name) for name in ("anna", "boris", "clara", "dora"))
    TerminalAccount.objects.create(account="bo", user=boris.user)
    TerminalAccount.objects.create(account="cl", user=clara.user)
    wakeup = make_wakeup(state="ended", asked_by="cl")
    for fields in ({"author": anna.user}, {"account": "bo"}):
        InboxMessage.objects.create(
            assistant=wakeup.assistant, body="do it", **fields
        ).given_to.add(wakeup)
    item = outbox.write(wakeup, "hello", Config(exclude_author=True))

    for person in (anna, boris, clara):
        with pytest.raises(Refusal, match="cannot approve it"):
            approve(item, person)
    assert approve(item, dora).item.state == "approved"


def test_what_nobody_decides_in_time_expires_and_stays_so(monkeypatch):
    item, other = make_item(hold=True, expires_s=60), make_item(hold=True)
    assert outbox.expire_due() == 0
    later = clock.now() + dt.timedelta(seconds=61)
    monkeypatch.setattr(clock, "now", lambda: later)

    with pytest.raises(Refusal, match="already expired by policy"):
        approve(item, ROOT)
    assert (state_of(item), state_of(other)) == ("expired", "pending")
    assert AuditEvent.objects.get().action == "outbox.expire"


def test_every_decision_is_in_the_audit_record():
    approve(make_item(hold=True), ROOT)
    reject(make_item(hold=True), user("anna"), reason="no")

    rows = AuditEvent.objects.order_by("number").values_list("action", "actor__username")
    assert list(rows) == [("outbox.approve", None), ("outbox.reject", "anna")]


def test_an_item_that_is_not_there_is_refused():
    with pytest.raises(Refusal, match="there is no item 7"):
        outbox.decide(7, Decision.Verdict.APPROVE, ROOT)
