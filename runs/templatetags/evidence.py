"""What pages need to show evidence: hostile text made visible, times, money, chips.

Whatever an agent wrote goes through `visible` (one line) or `visible_lines` (a block). Both give
plain text, which the template escapes as usual.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from runs import clock, duration, own_words
from runs.visible import visible as made_visible

register = template.Library()

LINE_MAX = 300  # characters of hostile text in one line of a page

# tone picks the colour and shape the silhouette; the word is always there
_TONES: dict[str, tuple[str, str]] = {
    "succeeded": ("ok", "check"),
    "failed": ("bad", "cross"),
    "refused": ("warn", "bar"),
    "needs_input": ("ask", "question"),
    "budget_exhausted": ("warn", "gauge"),
    "rate_limited": ("warn", "glass"),
    "timed_out": ("bad", "clock"),
    "stalled": ("bad", "dots"),
    "cancelled": ("mute", "square"),
    "out_of_memory": ("bad", "full"),
    "interrupted": ("mute", "bolt"),
    "queued": ("mute", "ring"),
    "waiting": ("mute", "ring"),
    "starting": ("live", "turn"),
    "running": ("live", "turn"),
    "sending": ("live", "turn"),
    "ending": ("live", "turn"),
    "ended": ("mute", "square"),
    "pending": ("ask", "question"),
    "approved": ("ok", "check"),
    "accepted": ("ok", "check"),
    "delivered": ("ok", "check"),
    "sent": ("ok", "check"),
    "rejected": ("bad", "cross"),
    "given_up": ("bad", "cross"),
    "broken": ("bad", "cross"),
    "expired": ("mute", "glass"),
    "secret": ("bad", "alert"),
    "flagged": ("warn", "flag"),
    "clear": ("ok", "check"),
    "unknown": ("unsure", "unsure"),
    "missing": ("unsure", "unsure"),
    "missed": ("mute", "clock"),
    "overlap": ("mute", "dots"),
    "quiet": ("mute", "moon"),
    "gate": ("mute", "bar"),
    "nothing": ("mute", "ring"),
    "backing_off": ("warn", "glass"),
    "budget": ("warn", "gauge"),
    "enabled": ("ok", "check"),
    "disabled": ("bad", "square"),
    "sealed": ("ok", "box"),
    "key-safe": ("mute", "ring"),
    "no-network": ("ok", "box"),
    "open": ("warn", "alert"),
}
_WORDS = {"pending": "waits for a decision", "secret": "may hold a secret"}


@register.inclusion_tag("site/_chip.html")
def chip(kind: str, word: str = "") -> dict[str, str]:
    """A word and a shape; `kind` is a state or an outcome."""
    tone, shape = _TONES.get(kind.replace(" ", "_"), _TONES.get(kind, ("unsure", "unsure")))
    spoken = word or _WORDS.get(kind, kind.replace("_", " "))
    return {"tone": tone, "shape": shape, "word": spoken}


@register.inclusion_tag("site/_mark.html")
def mark(kind: str, label: str = "") -> dict[str, str]:
    """The shape alone, with `label` for those who do not see it."""
    tone, shape = _TONES.get(kind, ("unsure", "unsure"))
    return {"tone": tone, "shape": shape, "label": label or kind.replace("_", " ")}


@register.inclusion_tag("site/_why.html")
def why(said: Any, run: Any = None) -> dict[str, Any]:
    """A reason, with what is an agent's in it on the ground that agents' words have.

    Args:
        said: `own_words.Words`, or a text that is sanduk's but for what it repeats of `run`.
    """
    return {"words": said if isinstance(said, own_words.Words) else own_words.of_change(said, run)}


@register.filter
def visible(text: Any) -> str:
    """Hostile text in one line."""
    return made_visible(str(text), limit=LINE_MAX)


@register.filter
def visible_lines(text: Any) -> str:
    """Hostile text with its line breaks, whole."""
    return made_visible(str(text), lines=True)


@register.filter
def span(seconds: float | None) -> str:
    """A length of time in words."""
    return "unknown" if seconds is None else duration.spoken(seconds)


@register.simple_tag
def when(moment: dt.datetime | None) -> SafeString | str:
    """How long ago, or in how long, with the moment itself on hover."""
    if moment is None:
        return "-"
    return _time(moment, relative(moment, clock.now()))


@register.simple_tag
def at(moment: dt.datetime | None, form: str = "%H:%M:%S") -> SafeString | str:
    """The time of day in UTC, with the moment itself on hover."""
    return "-" if moment is None else _time(moment, moment.astimezone(dt.UTC).strftime(form))


@register.filter
def utc(moment: dt.datetime, form: str = "%Y-%m-%d %H:%M") -> str:
    """A moment as text in UTC, whatever zone the site is in; for attributes."""
    return moment.astimezone(dt.UTC).strftime(form)


def relative(moment: dt.datetime, now: dt.datetime) -> str:
    seconds = (now - moment).total_seconds()
    size = abs(seconds)
    if size < 60:
        return "just now" if seconds >= 0 else "in a moment"
    for limit, unit, name in ((5400, 60, "min"), (129_600, 3600, "h"), (None, 86400, "days")):
        if limit is None or size < limit:
            words = f"{round(size / unit)} {name}"
            break
    return f"{words} ago" if seconds > 0 else f"in {words}"


def _time(moment: dt.datetime, words: str) -> SafeString:
    utc = moment.astimezone(dt.UTC)
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        utc.isoformat(timespec="seconds"),
        utc.strftime("%Y-%m-%d %H:%M:%S UTC"),
        words,
    )


@register.simple_tag
def money(amount: float | None, kind: str = "exact", places: int = 2) -> SafeString:
    """$0.41; at least that much where not every call told its cost; never $0 for "not known".

    Args:
        kind: as `runs.shown.kind_of` gives it; "" where there was no model call.
    """
    if amount is None or kind == "unknown":
        return format_html('<span class="sk-unknown">{}</span>', "unknown")
    figure = f"${amount:,.{places}f}"
    if kind == "lower_bound":
        return format_html(
            '<span class="sk-num"><span class="sk-least" title="{}">≥</span> {}</span>',
            "at least: not every call told its cost",
            figure,
        )
    return format_html('<span class="sk-num">{}</span>', figure)


@register.filter
def count(number: int | None) -> SafeString | str:
    """A number with its thousands apart."""
    if number is None:
        return format_html('<span class="sk-unknown">{}</span>', "unknown")
    return f"{number:,}"


@register.filter
def short(digest: str) -> str:
    return f"{digest[:12]}…{digest[-6:]}" if len(digest) > 20 else digest
