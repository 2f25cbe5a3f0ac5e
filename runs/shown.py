"""One line about each thing that happened in a run, as `show` and `logs` print it."""

from __future__ import annotations

from collections.abc import Iterable

from runs.console import MARKS
from runs.duration import spoken
from runs.models import EgressAttempt, RelayCall, Run, RunEvent
from runs.visible import visible


def money(usd: float, kind: str) -> str:
    """A cost in words that say how well it is known; "" for what is free or no model call.

    Args:
        kind: one of relay.records.CostKind, "mixed" (some reported, the others exact), or "".
    """
    if kind == "unknown":
        return "cost unknown"
    if kind == "lower_bound":
        return f"≥ ${usd:.4f}"
    is_free = kind == "exact" and not usd  # the rehearsal model
    return f"${usd:.4f} {kind}" if kind and not is_free else ""


def cost_kinds(runs: Iterable[Run]) -> dict[int, str]:
    """How well the cost of each run is known, by primary key, in one question to the database.

    A run with no model call has none (""). `lower_bound` is what its total says; else it is the
    kind of all its calls, and "mixed" where the provider reported some of them only.
    """
    chosen = list(runs)
    kinds: dict[int, set[str]] = {}
    rows = RelayCall.objects.filter(run__in=chosen).exclude(cost_kind="")
    for pk, kind in rows.order_by().values_list("run_id", "cost_kind").distinct():
        kinds.setdefault(pk, set()).add(kind)
    return {run.pk: kind_of(run, kinds.get(run.pk, set())) for run in chosen}


def kind_of(run: Run, kinds: set[str]) -> str:
    """How well a run's cost is known, from its total and the kinds of its calls."""
    if run.spent_is_lower_bound:
        return "lower_bound" if run.spent_usd else "unknown"
    if len(kinds) > 1:
        return "mixed"
    return next(iter(kinds), "exact" if run.spent_usd else "")


def spent(run: Run, kind: str | None = None) -> str:
    """What a run cost, in words; "" when it had no model call. `kind` saves the question."""
    return money(run.spent_usd, cost_kinds([run])[run.pk] if kind is None else kind)


def event_line(event: RunEvent) -> str:
    mark = MARKS.get(event.kind, "=" if event.kind == "step" else "e")
    detail = f"  {visible(event.detail, limit=300)}" if event.detail else ""
    return f"  {event.at:%H:%M:%S} {mark} {visible(event.text.strip(), limit=500)}{detail}"


def call_line(call: RelayCall) -> str:
    """Sequence, what was asked, its status, how long it took, tokens, cost, trouble."""
    took = (call.ended_at - call.started_at).total_seconds() if call.ended_at else None
    ended = f"{took:.2f} s" if took is not None else "not ended"
    known = [
        f"{value:,} {name}"
        for name, value in (("in", call.input_tokens), ("out", call.output_tokens))
        if value is not None
    ]
    tokens = ", ".join(known) or ("usage unknown" if call.protocol and not call.refusal else "")
    cost = money(call.cost_usd or 0.0, call.cost_kind)
    words = (
        f"{call.sequence:>4}",
        visible(call.method),
        visible(call.path, limit=80),
        str(call.status or "-"),
        ended,
        visible(call.model_asked, limit=40),
        tokens,
        cost,
    )
    trouble = call.refusal or call.error
    return "  " + " ".join(filter(None, words)) + (f" | {visible(trouble)}" if trouble else "")


def place(host: str, port: int) -> str:
    """Host and port as one writes them; words for a request that named none."""
    if not host:
        return "(unreadable request)"
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def took(run: Run) -> str:
    """How long a run took; of one whose process was killed, how long it was seen to live."""
    if run.duration_s is None:
        return ""
    least = "≥ " if run.end_is_lower_bound else ""
    return f"{least}{spoken(run.duration_s)}"


def attempt_line(attempt: EgressAttempt) -> str:
    """One use of the egress door, and the flag that would allow a refused one."""
    verdict = "passed" if attempt.allowed else "refused"
    took = (attempt.ended_at - attempt.started_at).total_seconds() if attempt.ended_at else 0.0
    where = visible(place(attempt.host, attempt.port), limit=120)
    why = f" | {visible(attempt.reason)}" if attempt.reason else ""
    flag = f" | {visible(attempt.flag)}" if attempt.flag and not attempt.listed else ""
    return (
        f"  {attempt.sequence:>4} {verdict:<8} {where} {attempt.bytes_out:,} out "
        f"{attempt.bytes_in:,} in {took:.1f} s{why}{flag}"
    )
