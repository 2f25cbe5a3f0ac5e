"""One run as its page tells it: what it could reach, how it went, what it asked for."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Max, Sum

from relay.destinations import InvalidHost, parse_allowed_host, show_host_port
from runs import shown, terms
from runs.models import Run, RunEvent
from runs.visible import visible

EVENTS_SHOWN = 400
CALLS_SHOWN = 200
PLACES_SHOWN = 50

_KINDS = {"step": "sanduk", "text": "says", "tool": "tool", "problem": "problem", "note": "note"}


def reach(run: Run) -> str:
    """In a sentence or two, what is in this run's reach and where the key is."""
    order: Mapping[str, Any] = run.order
    mounts = len(order.get("mounts") or ())
    place = "its workspace" + (f" and {mounts} more mounted place(s)" if mounts else "")
    provider = run.provider or "its provider"
    beyond, key = "", "the key stays on the host"
    if run.mode == "no-network":
        return f"No network and no model are in reach. It may write to {place}."
    if run.mode == "open":
        beyond, key = "the network as the engine gives it is", f"the key of {provider} is inside"
    elif run.mode == "key-safe":
        beyond = f"the internet, the LAN and the relay to {provider} are"
    else:
        beyond = f"The relay to {provider} {_door(order)}"
    return f"{beyond[0].upper()}{beyond[1:]} in reach; {key}. It may write to {place}."


def _door(order: Mapping[str, Any]) -> str:
    """What a sealed run reaches beside its relay."""
    if order.get("egress") == "warn":
        return "and, through the egress door, every public host are"
    hosts = ", ".join(visible(str(each)) for each in order.get("allow_hosts") or ())
    return f"and, through the egress door, {hosts} are" if hosts else "and nothing else is"


@dataclass(frozen=True, slots=True)
class Moment:
    """A step of a run's life, and how long after the one before."""

    word: str
    at: dt.datetime
    after_s: float | None


def timeline(run: Run) -> list[Moment]:
    """What is known of when it was asked for, claimed, started and ended, in order."""
    end = run.outcome.replace("_", " ") if run.outcome else "ended"
    known = [
        ("asked", run.created_at),
        ("claimed", run.claimed_at),
        ("agent started", run.started_at),
        ("first call", run.first_call_at),
        ("asked to stop", run.stop_requested_at),
        (end, run.ended_at),
    ]
    # a run that is executed where it is asked for is claimed a moment before its row is made
    there = [(max(at, run.created_at), word) for word, at in known if at is not None]
    there.sort(key=lambda one: one[0])
    found: list[Moment] = []
    for at, word in there:
        before = found[-1].at if found else None
        found.append(Moment(word, at, (at - before).total_seconds() if before else None))
    return found


def trace(run: Run, before: int | None = None) -> list[RunEvent]:
    """The last lines, or the last ones before a number, each with its word."""
    rows = run.events.order_by("-sequence")
    if before is not None:
        rows = rows.filter(sequence__lt=before)
    found = list(rows[:EVENTS_SHOWN])[::-1]
    for event in found:
        event.word = _KINDS.get(event.kind, event.kind)  # type: ignore[attr-defined]
    return found


def calls(run: Run) -> dict[str, Any]:
    """The first calls, the totals of all, and whether they are known."""
    rows = list(run.calls.all()[:CALLS_SHOWN])
    totals = run.calls.order_by().aggregate(
        number=Count("pk"),
        input=Sum("input_tokens"),
        output=Sum("output_tokens"),
        cached=Sum("cache_read_tokens"),
    )
    for call in rows:
        ended = call.ended_at
        took = (ended - call.started_at).total_seconds() if ended else None
        call.took_s = took  # type: ignore[attr-defined]
    return {"rows": rows, "totals": totals, "more": max(totals["number"] - CALLS_SHOWN, 0)}


def ways_out(run: Run) -> list[dict[str, Any]]:
    """What it tried to reach through the egress door, one row a place, refused ones first."""
    rows = (
        run.egress_attempts.order_by()
        .values("host", "port", "allowed")
        .annotate(
            times=Count("pk"), flag=Max("flag"), reason=Max("reason"), sequence=Max("sequence")
        )
        .order_by("allowed", "host", "port")
    )
    return [
        {
            **row,
            "place": shown.place(row["host"], row["port"]),
            "may_be_allowed": not row["allowed"] and bool(allowable(row["flag"])),
        }
        for row in rows[:PLACES_SHOWN]
    ]


def allowable(flag: str) -> str:
    """The `HOST:PORT` that an attempt's flag would allow; "" when no flag may.

    The name in it is the agent's: it is read as strictly as one that a person types.
    """
    word, _, place = flag.partition(" ")
    try:
        return show_host_port(*parse_allowed_host(place)) if word == "--allow-host" else ""
    except InvalidHost:
        return ""


_VERDICTS = {"closed": "clear", "open": "failed"}


def checks(run: Run) -> list[tuple[str, str]]:
    """The certificate's checks: a chip's kind and a sentence."""
    found = run.certificate.get("checks", ())
    return [
        (_VERDICTS.get(str(each.get("verdict")), "unknown"), str(each.get("sentence", "")))
        for each in found
        if isinstance(each, dict)
    ]


def options(run: Run) -> list[tuple[str, str]]:
    """The exact options of the container, without values that could be secret."""
    order: Mapping[str, Any] = run.order
    names = sorted({*(order.get("env") or {}), *(order.get("env_names") or ())})
    found = [
        ("image", run.image),
        ("engine", run.engine),
        ("recipe", run.recipe),
        ("kits", " ".join(order.get("kits") or ())),
        ("workspace", run.workspace),
        ("mounts", " ".join(order.get("mounts") or ())),
        ("hidden files", " ".join(order.get("hide") or ())),
        ("processors", f"{order['cpus']:g}" if order.get("cpus") else ""),
        ("memory, with swap", str(order.get("memory") or "")),
        ("time limit", f"{order['timeout_s']} s" if order.get("timeout_s") else ""),
        ("silence limit", f"{order['idle_timeout_s']} s" if order.get("idle_timeout_s") else ""),
        ("variables, by name", " ".join(names)),
        ("rules", terms.as_flags(order)),
        ("always", "no capabilities, no new privileges, never uid 0, limited processes"),
    ]
    return [(name, visible(value)) for name, value in found if value]
