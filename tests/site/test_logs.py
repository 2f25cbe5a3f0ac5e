"""What the site prints of requests: one line for a visitor's mistake, and no one-time link."""

from __future__ import annotations

import io
import logging

import pytest
from django.conf import settings as real
from django.utils.log import log_response

from sanduk_site.logs import Line
from tests.factories import make_run
from tests.site.pages import somebody

pytestmark = pytest.mark.django_db
TOKEN = "one-time-token-7"


@pytest.fixture
def printed():
    """What a handler with the site's formatter prints."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    named = real.LOGGING["formatters"]["line"]
    assert named["()"] == f"{Line.__module__}.{Line.__qualname__}"
    handler.setFormatter(Line(named["fmt"], style=named["style"]))
    logging.getLogger().addHandler(handler)
    yield stream
    logging.getLogger().removeHandler(handler)


def test_a_missing_right_and_an_unknown_name_are_one_line_each(client, printed):
    client.force_login(somebody("vera", "viewer"))
    client.post(f"/runs/{make_run().uid}/stop")
    client.get("/", headers={"host": "evil.example"})

    lines = printed.getvalue().splitlines()
    assert [line.partition(" ")[0] for line in lines] == ["WARNING", "ERROR"]


def test_what_is_our_fault_still_says_where(printed):
    try:
        raise KeyError("of ours")
    except KeyError as exc:
        response = type("Answer", (), {"status_code": 500})()
        log_response("broken: %s", f"/setup/{TOKEN}", response=response, exception=exc)

    assert "Traceback" in printed.getvalue()
    assert "test_logs.py" in printed.getvalue()
    assert TOKEN not in printed.getvalue()


def test_a_one_time_link_is_not_printed(client, printed):
    client.get(f"/setup/{TOKEN}")
    client.get(f"/setup/{TOKEN}/more")

    assert "/setup/…" in printed.getvalue()
    assert TOKEN not in printed.getvalue()
