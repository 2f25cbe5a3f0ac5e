"""`sanduk usage`: what all runs together used, and what the provider says about it."""

from __future__ import annotations

import argparse
import asyncio
import datetime as dt
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandParser

import relay
from relay import Provider
from runs import keys, providers, usage
from runs.management.terminal import SandukCommand, add_json_flag
from runs.refusal import Refusal
from runs.usage import Used
from runs.visible import visible

DAYS_MAX = 3660
HEADINGS = ("DAY (UTC)", "PROVIDER", "CALLS", "INPUT", "OUTPUT", "COST")


def _days(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) <= DAYS_MAX):
        raise argparse.ArgumentTypeError(f"it takes a number of days from 1 to {DAYS_MAX}")
    return int(text)


class Command(SandukCommand):
    help = "Show what all runs used, by day and provider; hold it beside the provider's own figure."
    examples = ("usage", "usage --days 30 --models", "usage --compare --json")

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--days", type=_days, default=7, metavar="N", help="N days back (7)")
        parser.add_argument("--provider", default="", metavar="NAME", help="only this one")
        parser.add_argument("--models", action="store_true", help="a line for each model")
        parser.add_argument(
            "--compare",
            action="store_true",
            help="ask providers that tell it what their key has spent today (openrouter)",
        )
        add_json_flag(parser)

    def act(self, **options: Any) -> int:
        known = providers.known()
        name = options["provider"]
        if name and name not in known:
            raise Refusal(f"no provider {visible(name)!r}; there are {', '.join(known)}")
        first = usage.today() - dt.timedelta(days=options["days"] - 1)
        rows = usage.used_since(first, by_model=options["models"], provider=name)
        compared = _compared(known, name) if options["compare"] else []
        if options["json"]:
            self.print_json({"since": first, "used": [asdict(row) for row in rows],
                             **({"compared": compared} if options["compare"] else {})})  # fmt: skip
            return 0
        if rows:
            headings = (*HEADINGS[:2], "MODEL", *HEADINGS[2:]) if options["models"] else HEADINGS
            self.print_table(headings, [_cells(row, options["models"]) for row in rows])
        else:
            self.say(
                f"no model call went out since {first} (UTC); the rehearsal model, which costs "
                "nothing, is not counted"
            )
        for each in compared:
            self.print(_sentence(each))
        return 0


def _cells(row: Used, by_model: bool) -> tuple[str, ...]:
    models = (visible(row.model, limit=40) or "-",) if by_model else ()
    figures = (f"{row.calls:,}", f"{row.input_tokens:,}", f"{row.output_tokens:,}")
    return (row.day.isoformat(), row.provider, *models, *figures, _cost(row))


def _cost(row: Used) -> str:
    if not row.untold:
        return f"${row.cost_usd:.4f}"
    known = f"≥ ${row.cost_usd:.4f}" if row.cost_usd else "unknown"
    return f"{known} ({row.untold:,} of {row.calls:,} calls untold)"


def _compared(known: dict[str, Provider], chosen: str) -> list[dict[str, Any]]:
    """For each provider that tells: its figure for today, ours, and the gap.

    Raises Refusal when the one that was asked for tells nothing.
    """
    names = [chosen] if chosen else [n for n, p in known.items() if relay.tells_usage(p)]
    return [_against(known[name]) for name in names]


def _against(provider: Provider) -> dict[str, Any]:
    if not relay.tells_usage(provider):
        raise Refusal(f"{provider.name} tells no key what it has spent; openrouter does")
    rows = usage.used_since(usage.today(), provider=provider.name)
    metered, untold = sum(row.cost_usd for row in rows), sum(row.untold for row in rows)
    try:
        credential = relay.Credential(keys.provider_key(provider), provider.key_env)
    except (Refusal, relay.InvalidCredential) as why:
        told = relay.ReportedUsage(None, str(why))
    else:
        told = asyncio.run(relay.usage_today(provider, credential))
    return {
        "provider": provider.name,
        "day": usage.today(),
        "reported_usd": told.usd,
        "metered_usd": metered,
        "metered_is_lower_bound": bool(untold),
        "gap_usd": None if told.usd is None else told.usd - metered,
        "trouble": told.text,
    }


def _sentence(found: dict[str, Any]) -> str:
    least = "≥ " if found["metered_is_lower_bound"] else ""
    ours = f"metered here {least}${found['metered_usd']:.4f}"
    if found["reported_usd"] is None:
        return f"today: {ours}; no figure of the provider's: {visible(found['trouble'])}"
    gap = found["gap_usd"]
    words = (
        "calls of this key that did not go through here, or whose cost is not known here"
        if gap > 0
        else "it may count with a delay"
    )
    told = f"{found['provider']} says ${found['reported_usd']:.4f} for today (UTC)"
    if abs(gap) < 0.00005:
        return f"{told}; {ours}; no gap"
    return f"{told}; {ours}; gap ${abs(gap):.4f} {'more' if gap > 0 else 'less'}: {words}"
