"""What a page says of an assistant's schedule and settings is words, not its file."""

from __future__ import annotations

import datetime as dt

import pytest
from django.urls import reverse

from assistants import in_words
from assistants.keys import KEYS
from assistants.schedules import Timing
from runs import clock
from tests.factories import make_assistant, make_schedule
from tests.site.pages import somebody

ANCHOR = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def cron(text: str, **fields: object) -> str:
    timing = Timing(anchor_at=ANCHOR, cron=text, every_s=None, **fields)  # type: ignore[arg-type]
    return in_words.schedule(timing)


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("30 7 * * *", "at 07:30 every day"),
        ("0 9 * * 1-5", "at 09:00 on Monday to Friday"),
        ("5 18 * * 0,6", "at 18:05 on Sunday, Saturday"),
        ("0 6 1 * *", "at 06:00 on day 1 of each month"),
        ("*/10 * * * *", "by the rule */10 * * * *"),
        ("0 6 1 * 1", "by the rule 0 6 1 * 1"),
        ("0 6 * 2 *", "by the rule 0 6 * 2 *"),
    ],
)
def test_a_usual_rule_is_said_in_words_and_any_other_as_it_is(rule, said):
    assert cron(rule) == f"{said} (UTC), missed ones are made up for once"


def test_what_becomes_of_a_missed_slot_is_said():
    rule, young = "0 6 * * *", "once-if-younger-than"
    assert cron(rule, missed=young, missed_within_s=21600).endswith("is made up for within 6h")
    assert cron(rule, missed="skip", quiet_hours="22:00-07:00").endswith(
        "a missed one is left out, not within 22:00-07:00"
    )
    assert in_words.schedule(Timing(anchor_at=ANCHOR, every_s=1800)).startswith("every 30m, missed")


def test_every_key_that_is_named_is_one_of_the_file():
    assert set(in_words._NAMES) <= {key.name for key in KEYS}
    assert {name for name, _ in in_words._SAID} <= set(in_words._NAMES)


@pytest.mark.django_db
def test_the_page_says_it_in_words_and_the_file_on_hover(client):
    assistant = make_assistant("daily")
    make_schedule(
        assistant, every_s=None, cron="30 7 * * *", missed="once-if-younger-than",
        missed_within_s=21600, next_at=clock.now() + dt.timedelta(hours=1),
    )  # fmt: skip
    client.force_login(somebody("vera", "viewer"))
    page = client.get(reverse("assistant", args=["daily"])).content.decode()
    assert "at 07:30 every day (UTC), a missed one is made up for within 6h" in page
    assert 'title="30 7 * * * (UTC), missed: once-if-younger-than 6h"' in page
    assert 'title="memory_review ' in page
    assert "<dt>memory_review" not in page
