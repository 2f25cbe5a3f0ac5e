"""Nothing an agent wrote can act on a page, hide on it, or turn what stands there around."""

from __future__ import annotations

import pytest
from django.urls import reverse

from runs import markdown
from runs.models import RelayCall, RunEvent
from tests.site.pages import ACTING, EVIL, HIDING, hostile_place, make_item, somebody

pytestmark = pytest.mark.django_db


@pytest.fixture
def place():
    return hostile_place()


@pytest.fixture
def client(client):
    client.force_login(somebody("ada", "administrator"))
    return client


def addresses(place) -> list[str]:
    run, item = place.run, place.item
    event, call = RunEvent.objects.first(), RelayCall.objects.first()
    return [
        reverse("home"),
        reverse("run", args=[run.uid]),
        f"{reverse('run', args=[run.uid])}?show=raw",
        reverse("run", args=[place.live.uid]),
        reverse("outbox"),
        f"{reverse('outbox')}?show=all",
        *(reverse("outbox-item", args=[each.pk]) for each in place.assistant.outbox.all()),
        f"{reverse('outbox-item', args=[item.pk])}?show=raw",
        reverse("assistants"),
        reverse("assistant", args=["daily"]),
        reverse("assistant-brief", args=["daily"]),
        reverse("assistant-security", args=["daily"]),
        reverse("run-allow", args=[run.uid, 2]),
        reverse("memory", args=[place.snapshot.pk]),
        *(f"{reverse('spend')}?by={by}" for by in ("day", "assistant", "agent", "model")),
        f"{reverse('spend')}?by=agent&format=csv",
        f"{reverse('spend')}?by=model&format=csv",
        reverse("system"),
        reverse("admin:runs_run_changelist"),
        reverse("admin:runs_run_change", args=[run.pk]),
        reverse("admin:runs_runevent_changelist"),
        reverse("admin:runs_runevent_change", args=[event.pk]),
        reverse("admin:runs_relaycall_changelist"),
        reverse("admin:runs_relaycall_change", args=[call.pk]),
    ]


def test_no_page_or_table_holds_a_hostile_text_as_it_is(client, place):
    for address in addresses(place):
        answer = client.get(address)
        assert answer.status_code == 200, address
        assert "default-src 'self'" in answer["Content-Security-Policy"], address
        is_page = answer["Content-Type"].startswith("text/html")
        shown = answer.content.decode()
        for raw in (*HIDING, *(ACTING if is_page else ())):
            assert raw not in shown, (address, raw)
        assert "14 {% load" not in shown, address


@pytest.mark.parametrize("show", ["rendered", "raw"])
def test_a_text_of_five_megabytes_is_cut_where_everybody_sees_it(client, show):
    place = hostile_place()
    place.run.report = EVIL * (5 * 2**20 // len(EVIL))
    place.run.save(update_fields=["report"])
    item = make_item(place.assistant, place.run.report)
    for address in (reverse("run", args=[place.run.uid]), reverse("outbox-item", args=[item.pk])):
        shown = client.get(f"{address}?show={show}").content.decode()
        assert "cut on this page" in shown
        assert len(shown) < 4_000_000
    whole = client.get(reverse("outbox-body", args=[item.pk]))
    assert whole.content.decode() == item.body
    assert whole["Content-Type"] == "application/octet-stream"
    assert whole["Content-Disposition"].startswith("attachment")


def test_no_value_of_a_variable_is_on_a_runs_page(client, place):
    shown = client.get(reverse("run", args=[place.run.uid])).content.decode()
    assert "NAME" in shown
    assert "no-secret-value" not in shown


@pytest.mark.parametrize(
    "text",
    [
        "<b onclick=x>",
        "[x](javascript:alert(1))",
        "[x](JAVASCRIPT&colon;alert(1))",
        "[x](data:text/html;base64,AAAA)",
        "<javascript:alert(1)>",
        "![x](https://evil.example/pixel)",
        "<svg/onload=alert(1)>",
        "[x]: javascript:alert(1)\n\n[x]",
    ],
)
def test_markdown_makes_nothing_that_acts_or_loads(text):
    made = str(markdown.rendered(text))
    for bad in ("<b", "<img", "<svg", "<script", "href", "src="):
        assert bad not in made.replace("&lt;", ""), made


def test_markdown_leads_to_web_and_mail_addresses_only_and_says_where():
    made = markdown.rendered("[bank](https://evil.example/a) [out](/admin/logout/)")
    assert 'href="https://evil.example/a"' in made
    assert 'rel="noopener noreferrer nofollow"' in made
    assert "(<code>https://evil.example/a</code>)" in made
    assert 'href="/admin' not in made


def test_markdown_shows_a_character_that_an_entity_hides():
    made = markdown.rendered("a &#x202e; b &#8203; c \u202e d")
    assert "\u202e" not in made
    assert "\u200b" not in made
    assert made.count("\\u202e") == 2


def test_markdown_keeps_what_a_report_needs():
    made = markdown.rendered("# A\n\n| b | c |\n|---|---|\n| 1 | 2 |\n\n- *d*\n\n`e`")
    for tag in ("<h1>", "<table>", "<td>", "<li>", "<em>", "<code>"):
        assert tag in made


def test_a_cell_of_a_spend_file_is_no_formula(client):
    from tests.factories import make_run

    make_run(state="ended", agent="=HYPERLINK(1)", spent_usd=1.0)
    answer = client.get(f"{reverse('spend')}?by=agent&format=csv")
    assert "'=HYPERLINK(1)" in answer.content.decode()
