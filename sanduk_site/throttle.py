"""What somebody sees who guessed a password too often: for how long, and from when on again."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

from axes.handlers.database import AxesDatabaseHandler
from axes.helpers import get_client_username, get_cool_off
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone


def locked_out(request: HttpRequest, original: Any = None, credentials: Any = None) -> HttpResponse:
    """The answer while nobody may try this name from this address, not with the right password.

    Args:
        original: the view's answer, which is not shown; under ASGI axes gives `credentials` here.
        credentials: the name that was tried.
    """
    if isinstance(original, dict):
        credentials = original
    again_at = _again_at(request, credentials)
    left = (again_at - timezone.now()).total_seconds()
    response = render(
        request,
        "site/locked_out.html",
        {
            "title": "Too many wrong passwords",
            "username": get_client_username(request, credentials) or "",
            "again_at": again_at,
            "minutes": max(math.ceil(left / 60), 1),
        },
        status=429,
    )
    response["Retry-After"] = str(max(math.ceil(left), 1))
    return response


def _again_at(request: HttpRequest, credentials: Any) -> dt.datetime:
    last = [
        attempt.attempt_time
        for attempts in AxesDatabaseHandler().get_user_attempts(request, credentials)
        for attempt in attempts
    ]
    since: dt.datetime = max(last, default=timezone.now())
    return since + (get_cool_off(request) or dt.timedelta())
