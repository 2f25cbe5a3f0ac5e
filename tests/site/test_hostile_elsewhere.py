"""What an agent wrote, where no page shows it: e-mails, tables, a terminal, the admin's lists."""

from __future__ import annotations

import csv
import datetime as dt
import io
import re
from email import message_from_bytes, policy
from typing import Any
from unicodedata import category
from urllib.parse import quote

import pytest
from django.contrib import admin
from django.contrib.auth import get_user_model
from django.core import mail
from django.core.mail.backends.smtp import EmailBackend
from django.core.management import get_commands, load_command_class
from django.urls import reverse

from assistants import noticing
from assistants.delivery.kinds import EmailSettings
from assistants.delivery.mail import send
from assistants.models import Notice, OutboxItem
from runs import clock
from runs.models import AuditEvent, Decision, RelayCall, RunEvent
from tests.assistants.sending.making import parcel
from tests.browser.texts import HOSTILE, PWN
from tests.factories import make_run
from tests.site.pages import ACTING, EVIL, HIDING, Place, hostile_place, make_item, somebody

pytestmark = pytest.mark.django_db
BOUND = ("=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1")  # what a table takes for a formula


@pytest.fixture
def place(tmp_path, settings) -> Place:
    settings.SANDUK_HOME = tmp_path / "state"
    settings.SANDUK_HOME.mkdir(mode=0o700)
    made = hostile_place()
    made.item.body = HOSTILE
    made.item.save()
    for uid in (made.run.uid, made.live.uid):
        RunEvent.objects.create(
            run_id=made.run.pk if uid == made.run.uid else made.live.pk, sequence=2,
            at=clock.now(), kind="tool", text=HOSTILE, detail=HOSTILE,
        )  # fmt: skip
    Decision.objects.create(
        subject=f"outbox:{made.item.pk}", digest="0" * 64, verdict="approve", reason=HOSTILE,
        account="root", via="terminal",
    )  # fmt: skip
    AuditEvent.objects.create(
        action="outbox.approve", subject=EVIL[:100], account="root", detail={"reason": HOSTILE}
    )
    return made


def unseen(text: str) -> list[str]:
    """The characters that nobody sees, or that act on a terminal."""
    return [ascii(char) for char in text if category(char) in ("Cc", "Cf") and char not in "\n\t"]


# -- a terminal -----------------------------------------------------------------------------------
COMMANDS = [
    ("outbox",),
    ("outbox", "--pending"),
    ("outbox", "show", "{item}"),
    ("outbox", "show", "{sent}"),
    ("inbox",),
    ("inbox", "--all"),
    ("assistant", "list"),
    ("assistant", "show", "daily"),
    ("assistant", "history", "daily"),
    ("memory", "daily", "log"),
    ("show", "{run}"),
    ("show", "{run}", "--trace"),
    ("show", "{run}", "--calls"),
    ("show", "{run}", "--egress"),
    ("show", "{run}", "--seal"),
    ("show", "{run}", "--report"),
    ("logs", "{run}"),
    ("logs", "{run}", "--calls"),
    ("runs",),
    ("runs", "--live"),
    ("usage",),
    ("usage", "--models"),
    ("audit",),
    ("destination", "list"),
    ("approve", "{item}", "--expect", "0000000000000"),
    ("deliver", "{sent}"),
]


def typed(words: tuple[str, ...], place: Place, *more: str) -> int:
    sent = OutboxItem.objects.exclude(pk=place.item.pk).first()
    known = {"item": place.item.pk, "sent": sent.pk if sent else 0, "run": place.run.uid}
    name, *rest = (word.format(**known) for word in words)
    command: Any = load_command_class(get_commands()[f"sanduk_{name}"], f"sanduk_{name}")
    options = vars(command.create_parser("sanduk", f"sanduk_{name}").parse_args([*rest, *more]))
    return int(command.guarded(**options))


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_no_command_lets_it_act_on_a_terminal(words, place, capsys):
    typed(words, place)

    out, err = capsys.readouterr()
    assert out or err
    assert unseen(out + err) == []


def test_the_commands_really_show_it(place, capsys):
    for words in (("outbox", "show", "{item}"), ("show", "{run}", "--trace"), ("audit",)):
        typed(words, place)
        assert "__pwned" in capsys.readouterr().out, words


@pytest.mark.parametrize(
    "words",
    [each for each in COMMANDS if each[0] in ("outbox", "inbox", "show", "runs", "audit")],
    ids=" ".join,
)
def test_json_is_safe_to_look_at_as_well(words, place, capsys):
    if "--report" in words:
        return
    typed(words, place, "--json")

    assert unseen(capsys.readouterr().out) == []


# -- e-mails --------------------------------------------------------------------------------------
def test_an_e_mail_that_tells_of_it_holds_nothing_of_it(place, settings):
    settings.SANDUK_SENDS_MAIL = True
    settings.SANDUK_BASE_URL = "http://box.example"
    ada = somebody("ada", "administrator", email="ada@example.test")
    long_ago = clock.now() - dt.timedelta(hours=1)
    Notice.objects.create(user=ada, of_items=True, of_troubles=True, looked_at=long_ago)
    cut = make_run(state="ended", outcome="interrupted", reason=HOSTILE, ended_at=clock.now())
    for row in (place.item, place.assistant, cut):
        at = clock.now() - dt.timedelta(minutes=1)
        fields = {"created_at": at} if row is place.item else (
            {"disabled_at": at} if row is place.assistant else {"ended_at": at}
        )  # fmt: skip
        type(row).objects.filter(pk=row.pk).update(**fields)

    assert noticing.send_due() == 1

    (letter,) = mail.outbox
    whole = message_from_bytes(letter.message().as_bytes(), policy=policy.default)
    text = whole.get_content()
    assert whole.get_content_type() == "text/plain"
    assert "\n" not in str(whole["Subject"])
    for part in (*ACTING, *HIDING, "owned", "evil", "__pwned", "alert(", "{{"):
        assert part not in text + str(whole["Subject"])
    assert "daily" in text
    assert unseen(text) == []


def test_the_e_mail_that_delivers_it_has_headers_of_our_own_and_plain_text(monkeypatch):
    sent: list[Any] = []
    monkeypatch.setattr(EmailBackend, "open", lambda self: False)
    monkeypatch.setattr(EmailBackend, "send_messages", lambda self, given: sent.extend(given))
    config = EmailSettings(to="team@example.test", sender="box@example.test", host="127.0.0.1")
    send(parcel(f"Bcc: victim@example.test\r\nSubject: other\r\n\r\n{HOSTILE}"), config, 5)
    whole = message_from_bytes(sent[0].message().as_bytes(), policy=policy.default)

    assert whole["Bcc"] is None
    assert len(whole.get_all("Subject")) == 1
    assert unseen(str(whole["Subject"])) == []
    assert {part.get_content_type() for part in whole.walk()} == {"text/plain"}


# -- tables ---------------------------------------------------------------------------------------
def cells(answer) -> list[str]:
    text = b"".join(answer.streaming_content if answer.streaming else [answer.content]).decode()
    return [cell for row in csv.reader(io.StringIO(text)) for cell in row]


@pytest.fixture
def ada(client):
    found = somebody("ada", "administrator")
    client.force_login(found)
    return client


@pytest.mark.parametrize("hostile", [*BOUND, HOSTILE[:200], EVIL])
def test_no_cell_of_any_table_is_a_formula_or_hides(ada, place, hostile):
    make_run(state="ended", agent=hostile[:200], model=hostile[:200], provider=hostile[:60],
             reason=hostile, spent_usd=1.0)  # fmt: skip
    AuditEvent.objects.create(
        action="run.stop", subject=hostile[:100], account=hostile[:150], detail={"why": hostile}
    )
    addresses = [
        *(f"{reverse('spend')}?by={by}&format=csv" for by in ("agent", "provider", "model")),
        f"{reverse('admin:runs_auditevent_export')}?format=csv",
    ]
    for address in addresses:
        answer = ada.get(address)
        assert answer.status_code == 200, address
        assert answer["Content-Type"].startswith("text/csv"), address
        found = cells(answer)
        wrong = [cell for cell in found if re.match(r"[=+@\t\r]|-\D|-1$", cell)]
        assert wrong == [], address
        if "export" not in address:  # which is verified, so it holds every character
            assert [cell for cell in found if unseen(cell)] == [], address


# -- the admin's own lists ------------------------------------------------------------------------
def admin_pages() -> list[str]:
    found = []
    for model in admin.site._registry:
        label = f"{model._meta.app_label}_{model._meta.model_name}"
        found.append(reverse(f"admin:{label}_changelist"))
        row = model._default_manager.first()
        if row is not None and model._meta.app_label != "auth":
            found += [
                reverse(f"admin:{label}_{what}", args=[row.pk]) for what in ("change", "history")
            ]
    return found


def test_no_list_record_or_title_of_the_admin_lets_it_act_or_hide(client, place):
    client.force_login(get_user_model().objects.create_superuser("root"))
    RelayCall.objects.update(model_asked=HOSTILE[:200], refusal=HOSTILE)
    make_item(place.assistant, HOSTILE)
    for address in admin_pages():
        answer = client.get(address)
        assert answer.status_code == 200, address
        shown = answer.content.decode()
        title = re.search(r"<title>(.*?)</title>", shown, re.S)
        assert title is not None, address
        assert "<" not in title[1], address
        for raw in (*HIDING, *ACTING, f"<script>{PWN}"):
            assert raw not in shown, (address, raw)


@pytest.mark.parametrize(
    "query",
    ["?q={0}", "?agent={0}", "?model={0}", "?o={0}", "?e=1&q={0}", "?p={0}", "?_facets={0}"],
)
def test_what_stands_in_an_address_does_not_act_either(client, place, query):
    client.force_login(get_user_model().objects.create_superuser("root"))
    address = reverse("admin:runs_run_changelist") + query.format(quote(HOSTILE[:900]))
    answer = client.get(address, follow=True)
    shown = answer.content.decode()
    for raw in (*ACTING, f"<script>{PWN}"):
        assert raw not in shown
