"""A run in words and in figures, for a terminal, a stats file and `--json`."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from typing import Any

from runs import shown, terms
from runs.duration import spoken
from runs.models import Run
from runs.models.run import Outcome
from runs.plan import Plan
from runs.visible import visible

# how agents and their tools say that they miss a network
_NETWORK_SIGNS = (
    "could not resolve host",
    "temporary failure in name resolution",
    "name or service not known",
    "network is unreachable",
    "getaddrinfo eai_again",
    "getaddrinfo enotfound",
    "failed to establish a new connection",
)


def opening(run: Run, plan: Plan) -> str:
    """What is about to happen."""
    provider = f" on {run.provider}" if run.provider else ""
    model = f" ({run.model})" if run.model and run.model != run.provider else ""
    return f"run {run.uid}: {run.agent}{provider}{model}, {run.mode}, in {run.workspace}"


def closing(run: Run, *, followed: bool = False) -> list[str]:
    """What a person should know now, one line each; empty when all is well.

    Args:
        followed: the run's steps were shown while it went on, so that the reason of an end that
            we made ourselves has been read.
    """
    told = followed and run.events.filter(kind="step", text=f"ending: {run.reason}").exists()
    if run.outcome == Outcome.SUCCEEDED or told:
        return notes(run)
    end = f"{spoken_outcome(run)}: {run.reason}" if run.reason else spoken_outcome(run)
    return [end, *notes(run)]


def notes(run: Run) -> list[str]:
    """The same without how it ended, and why."""
    lines = []
    if run.outcome == Outcome.FAILED and missed_network(run):
        lines.append(
            f"it seems to have needed the network, which {run.mode} mode does not give; "
            "--mode key-safe gives network and keeps the key outside, --mode open gives both"
        )
    if run.report_state == Run.Report.MISSING:
        lines.append("report: missing")
    elif run.report_state == Run.Report.REFUSED:
        lines.append("report: REPORT.md is no regular file, or may not be read; it was left alone")
    elif run.report_state == Run.Report.CUT:
        lines.append(f"report: cut, it has {run.report_bytes:,} bytes")
    if run.displaced_report:
        lines.append(f"the REPORT.md that was there before is now {run.displaced_report}")
    if run.calls_clamped:
        lines.append(f"{run.calls_clamped} call(s) were allowed less output than they asked for")
    if refused := _refused_ways_out(run):
        lines.append(refused)
    if slow := slow_start(run):
        lines.append(slow)
    if run.kept_container:
        lines.append(
            f"container {run.kept_container[:12]} is kept, stopped; sanduk clean removes it"
        )
    return lines


FLAGS_TOLD = 5


def _refused_ways_out(run: Run) -> str:
    """How many attempts were refused, and how many of them which flags would allow; "" for none."""
    refused = run.egress_attempts.filter(allowed=False)
    count = refused.count()
    if not count:
        return ""
    said = f"{count} attempt(s) to reach a host were refused"
    flags = list(dict.fromkeys(refused.exclude(flag="").values_list("flag", flat=True)))
    told = flags[:FLAGS_TOLD]
    allowed = refused.filter(flag__in=told).count()
    if allowed:
        many = "them" if allowed == count else f"{allowed} of them"
        said += f"; {visible(' '.join(told))} would allow {many}"
    if never := refused.filter(flag="").count():
        said += f"; no flag allows {'them' if never == count else f'the other {never}'}"
    if len(flags) > len(told):
        said += f"; sanduk show {run.uid} --egress names the rest"
    return said


SLOW_FACTOR, SLOW_S, COMPARED = 3, 5.0, 10


def slow_start(run: Run) -> str:
    """A sentence when this image's first model call came far later than it used to, else ""."""
    took = run.first_call_s
    if took is None or took < SLOW_S:
        return ""
    before = Run.objects.filter(image=run.image, state=Run.State.ENDED, first_call_at__isnull=False)
    times = [each.first_call_s or 0.0 for each in before.exclude(pk=run.pk)[:COMPARED]]
    if len(times) < 3 or took < SLOW_FACTOR * median(times):
        return ""
    return (
        f"the first model call came after {spoken(took)}; the last {len(times)} runs of this image "
        f"took {spoken(median(times))}"
    )


def missed_network(run: Run) -> bool:
    """Whether what it printed looks like an agent that wanted a network it was not given."""
    if run.mode not in ("sealed", "no-network"):
        return False
    texts = run.events.exclude(kind="step").values_list("text", "detail")[:5000]
    said = "\n".join(f"{text}\n{detail}" for text, detail in texts).lower()
    return any(sign in f"{said}\n{run.reason.lower()}" for sign in _NETWORK_SIGNS)


def spoken_outcome(run: Run) -> str:
    return str(run.outcome or run.state).replace("_", " ")


def last_word(run: Run) -> str:
    """The ending in one line: outcome, time, tokens, calls."""
    parts = [f"run {run.uid} {spoken_outcome(run)}"]
    parts += [shown.took(run)] if run.duration_s is not None else []
    parts += figures(run)
    return ", ".join(parts)


def figures(run: Run, cost_kind: str | None = None) -> list[str]:
    """What the agent says it used, and what the relay counted."""
    parts = []
    tally = run.tally
    if (tokens := tally.get("input_tokens")) is not None:
        cached = tally.get("cached_tokens")
        inside = f" ({cached:,} cached)" if cached else ""
        parts.append(f"{tokens:,} tokens in{inside}")
    if (tokens := tally.get("output_tokens")) is not None:
        parts.append(f"{tokens:,} out")
    if cost := shown.spent(run, cost_kind):
        parts.append(cost)
    if run.calls_relayed or run.calls_refused:
        refused = f", {run.calls_refused} refused" if run.calls_refused else ""
        parts.append(f"{run.calls_relayed} calls relayed{refused}")
    return parts


def as_json(run: Run, cost_kind: str | None = None) -> dict[str, Any]:
    """Everything a script may want of a run; hostile texts as they are, JSON escapes them.

    Args:
        cost_kind: of `shown.cost_kinds`, where many runs are told at once.
    """
    if cost_kind is None:
        cost_kind = shown.cost_kinds([run])[run.pk]
    return {
        "run": run.uid,
        "state": run.state,
        "outcome": run.outcome,
        "exit_code": run.exit_code,
        "reason": run.reason,
        "agent": run.agent,
        "provider": run.provider,
        "model": run.model,
        "mode": run.mode,
        "engine": run.engine,
        "image": run.image,
        "workdir": run.workspace,
        "created_at": _iso(run.created_at),
        "started_at": _iso(run.started_at),
        "ended_at": _iso(run.ended_at),
        "duration_s": run.duration_s,
        "duration_is_lower_bound": run.end_is_lower_bound,
        "first_call_s": run.first_call_s,
        "agent_exit_code": run.agent_exit_code,
        "tally": run.tally,
        "calls": {
            "relayed": run.calls_relayed,
            "refused": run.calls_refused,
            "completed": run.calls_completed,
            "clamped": run.calls_clamped,
        },
        "spent": {
            "usd": run.spent_usd,
            "is_lower_bound": run.spent_is_lower_bound,
            "cost_kind": cost_kind or None,
            "tokens": run.spent_tokens,
        },
        "rules": terms.as_json(run.order),
        "seal": run.certificate.get("headline", ""),
        "report": {
            "state": run.report_state,
            "bytes": run.report_bytes,
            "sha256": run.report_sha256,
            "text": run.report,
        },
        "final_text": run.final_text,
        "kept_container": run.kept_container,
        "displaced_report": run.displaced_report,
    }


def _iso(moment: Any) -> str | None:
    return moment.isoformat() if moment else None


def stats(run: Run, report: str) -> bytes:
    """`{exit, ok, stats, error, report}` and the run as a whole, as JSON.

    Args:
        report: where its copy was written; "" when it was not copied.
    """
    found = {
        "exit": run.exit_code,
        "ok": run.outcome == Outcome.SUCCEEDED,
        "stats": ", ".join(figures(run)),
        "error": run.reason or None,
        "report": (report or str(Path(run.workspace) / "REPORT.md")) if run.report else None,
        "run": as_json(run),
    }
    return f"{json.dumps(found, indent=2)}\n".encode()
