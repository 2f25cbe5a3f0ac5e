"""Who may ask the site from a terminal elsewhere, how often, and how refusals are told: as JSON."""

from __future__ import annotations

import functools
import json
import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.http import Http404, HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt

from runs import clock
from runs.refusal import Refusal
from sanduk_site import terminal_tokens
from sanduk_site.models import TerminalToken

BODY_MAX = 256 * 1024  # bytes of what is asked
VERSION = 1
_REMEMBERED = 10_000  # addresses and tokens whose rate is known


class Rate:
    """At most `most` in any `seconds`, each by its name. Of this process, which is the only one."""

    def __init__(self, most: int, seconds: float) -> None:
        self._most, self._seconds = most, seconds
        self._seen: OrderedDict[str, deque[float]] = OrderedDict()
        self._lock = threading.Lock()

    def is_over(self, name: str) -> bool:
        with self._lock:
            return len(self._recent(name)) >= self._most

    def count(self, name: str) -> None:
        with self._lock:
            self._recent(name).append(clock.monotonic())
            self._seen.move_to_end(name)
            while len(self._seen) > _REMEMBERED:
                self._seen.popitem(last=False)

    def forget(self) -> None:
        with self._lock:
            self._seen.clear()

    def _recent(self, name: str) -> deque[float]:
        times = self._seen.setdefault(name, deque())
        while times and clock.monotonic() - times[0] > self._seconds:
            times.popleft()
        return times


GUESSES = Rate(20, 300.0)  # tokens that are none, from one address
ASKED = Rate(240, 60.0)  # whatever is asked with one token


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: a person, through a token that may let them do less than their roles do."""

    user: Any
    token: TerminalToken


Answer = Callable[..., Any]
View = Callable[..., JsonResponse]


def for_terminals(
    *rights: str, method: str = "GET", decides: bool = False
) -> Callable[[Answer], View]:
    """Answer whoever has an open token and holds every one of `rights`; cookies count for nothing.

    The view gets the Caller in the request's place, and for POST what was sent; it returns what
    JSON can hold.

    Args:
        decides: the token itself must have been made to decide, too.
    """

    def decorate(answer: Answer) -> View:
        @functools.wraps(answer)
        def checked(request: HttpRequest, *args: Any, **kwargs: Any) -> JsonResponse:
            if request.method != method:
                return _refused(405, f"this takes {method} alone", Allow=method)
            caller = _caller(request)
            if isinstance(caller, JsonResponse):
                return caller
            if not caller.user.has_perms(rights):
                return _refused(403, f"{caller.user.get_username()} has no right to that")
            if decides and not caller.token.may_decide:
                return _refused(403, "this token was made without the right to decide")
            try:
                sent = (_sent(request),) if method == "POST" else (request.GET,)
                return JsonResponse(answer(caller, *sent, *args, **kwargs), safe=False)
            except Refusal as exc:
                return _refused(409, str(exc))
            except Http404:
                return _refused(404, "there is no such thing, or you may not see it")

        # no cookie is looked at, so no other page can have a browser ask
        return csrf_exempt(never_cache(checked))

    return decorate


def _caller(request: HttpRequest) -> Caller | JsonResponse:
    address = request.META.get("REMOTE_ADDR") or ""
    if GUESSES.is_over(address):
        return _refused(
            429, "too many tokens that are none came from there", **{"Retry-After": "300"}
        )
    kind, _, given = request.headers.get("Authorization", "").partition(" ")
    token = terminal_tokens.found(given.strip(), address or None) if kind == "Bearer" else None
    if token is None:
        GUESSES.count(address)
        return _refused(401, "the token is none, has ended or has expired: sanduk login URL")
    if ASKED.is_over(str(token.pk)):
        return _refused(429, "too much was asked in the last minute", **{"Retry-After": "60"})
    ASKED.count(str(token.pk))
    return Caller(token.user, token)


def _sent(request: HttpRequest) -> dict[str, Any]:
    if request.content_type != "application/json" or len(request.body) > BODY_MAX:
        raise Refusal(f"what is sent must be JSON, and at most {BODY_MAX:,} bytes")
    try:
        found = json.loads(request.body)
    except (ValueError, RecursionError):
        raise Refusal("what was sent is no JSON") from None
    if not isinstance(found, dict):
        raise Refusal("what was sent is no JSON object")
    return found


def _refused(status: int, why: str, **headers: str) -> JsonResponse:
    return JsonResponse({"error": why}, status=status, headers=headers)
