"""Changes, and what belongs to them, as plain data for `--json`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.db.models import Count, QuerySet

from changes import pull_requests
from changes.landing_plan import branch_of
from changes.models import Artifact, Attempt, Change, RiskFlag, Skill, TestRun
from changes.own_paths import spelled
from changes.patches import ChangedPath
from changes.pending import Conflict
from runs import shown
from runs.models import Decision, Run

SEVERITIES = ("high", "medium", "low")


def flag_counts(changes: Iterable[Change]) -> dict[int, dict[str, int]]:
    """How many flags of each severity the reviewed attempt of each change has, by attempt."""
    attempts = [each.attempt_id for each in changes if each.attempt_id is not None]
    rows = RiskFlag.objects.filter(attempt__in=attempts).order_by()
    counts: dict[int, dict[str, int]] = {pk: dict.fromkeys(SEVERITIES, 0) for pk in attempts}
    for pk, severity, many in rows.values_list("attempt", "severity").annotate(Count("pk")):
        counts[pk][severity] = many
    return counts


def answer(attempt: Attempt, counts: dict[str, int]) -> str:
    """`clear`, `flagged` or `could not check`, as `changes.flag.Findings` has it."""
    if any(counts.values()):
        return "flagged"
    return "could not check" if attempt.could_not_check else "clear"


def change(one: Change, counts: dict[int, dict[str, int]] | None = None) -> dict[str, Any]:
    """What a list says of a change. `counts` saves the question, as `flag_counts` gives them."""
    attempt = one.attempt
    flags = (flag_counts([one]) if counts is None else counts).get(one.attempt_id or 0, {})
    return {
        "id": one.uid,
        "repository": one.repository.path,
        "repository_id": one.repository.uid,
        "kind": one.kind,
        "task": one.task,
        "batch": one.batch,
        "state": one.state,
        "reason": one.reason,
        "agent": one.agent,
        "model": one.model,
        "base_ref": one.base_ref,
        "base_commit": one.base_commit or (attempt.base_commit if attempt else ""),
        "requested_by": asker(one),
        "created_at": one.created_at,
        "state_at": one.state_at,
        "attempt": attempt.number if attempt else None,
        "digest": attempt.digest if attempt else "",
        "files": attempt.files if attempt else None,
        "added_lines": attempt.added_lines if attempt else None,
        "deleted_lines": attempt.deleted_lines if attempt else None,
        "answer": answer(attempt, flags) if attempt else "",
        "flags": flags or dict.fromkeys(SEVERITIES, 0),
        "decided_at": one.decided_at,
        "decided_by": one.decided_by,
        "branch": branch(one),
        "commit": one.landed_commit,
        "pull_request": proposal(one),
    }


def asker(one: Change) -> str:
    if one.requested_by is not None:
        return str(one.requested_by.get_username())
    return one.requested_as


def branch(one: Change) -> str:
    """The branch it became, or is to become; "" before anybody accepted it."""
    if one.state in (Change.State.LANDING, Change.State.ACCEPTED):
        return str(one.landing.get("branch") or branch_of(one))
    return ""


def proposal(one: Change) -> dict[str, Any] | None:
    """The draft pull request it was accepted for; None where that was not asked for."""
    if (row := pull_requests.of(one)) is None:
        return None
    return {
        "state": row.state,
        "repository": row.where,
        "into": row.into,
        "branch": row.head,
        "number": row.number or None,
        "url": row.url,
        "trouble": row.trouble,
    }


def attempt(one: Attempt) -> dict[str, Any]:
    return {
        "number": one.number,
        "task": one.task,
        "run": one.run.uid if one.run else None,
        "agent": one.agent,
        "model": one.model,
        "created_at": one.created_at,
        "base_commit": one.base_commit,
        "tree": one.tree,
        "digest": one.digest,
        "patch_bytes": one.patch_bytes,
        "files": one.files,
        "added_lines": one.added_lines,
        "deleted_lines": one.deleted_lines,
        "commits": one.commits,
        "commits_note": one.commits_note,
    }


def flag(one: RiskFlag) -> dict[str, Any]:
    return {
        "category": one.category,
        "severity": one.severity,
        "path": one.path,
        "line": one.line,
        "commit": one.commit or None,
        "reason": one.reason,
        "needs_second_person": one.needs_second_person,
    }


def file(one: ChangedPath) -> dict[str, Any]:
    """A path is spelled as everywhere: what is no printable UTF-8 as `\\xNN`."""
    return {
        "path": spelled(one.path),
        "old_path": spelled(one.old_path) if one.old_path is not None else None,
        "kind": one.kind,
        "old_mode": one.old_mode,
        "new_mode": one.new_mode,
        "binary": one.binary,
        "added_lines": one.added_lines,
        "deleted_lines": one.deleted_lines,
    }


def conflict(one: Conflict) -> dict[str, Any]:
    return {"change": one.change.uid, "paths": [spelled(path) for path in one.paths]}


def tested(one: TestRun) -> dict[str, Any]:
    return {
        "command": one.command,
        "digest": one.digest,
        "outcome": one.outcome or "running",
        "exit_code": one.exit_code,
        "reason": one.reason,
        "run": one.run.uid if one.run else None,
        "started_at": one.started_at,
        "ended_at": one.ended_at,
        "output": one.output,
        "output_bytes": one.output_bytes,
    }


def skill(one: Skill, *, body: bool = True) -> dict[str, Any]:
    told = {
        "name": one.name,
        "version": one.version,
        "state": one.state,
        "repository": one.repository.path,
        "change": one.attempt.change.uid,
        "description": one.description,
        "sha256": one.sha256,
        "found": one.found,
        "could_not_check": one.could_not_check,
        "created_at": one.created_at,
        "state_at": one.state_at,
        "decided_by": one.decided_by,
        "reason": one.reason,
    }
    return {**told, "body": one.body} if body else told


def artifact(one: Artifact) -> dict[str, Any]:
    return {
        "id": one.uid,
        "name": one.name,
        "size": one.size,
        "sha256": one.sha256,
        "refused": one.refused,
    }


def decision(one: Decision) -> dict[str, Any]:
    return {
        "verdict": one.verdict,
        "by": one.actor.get_username() if one.actor else one.account,
        "at": one.at,
        "via": one.via,
        "digest": one.digest,
        "reason": one.reason,
    }


def spent(changes: Sequence[Change] | QuerySet[Change]) -> tuple[float, bool]:
    """What all attempts and tests of these cost, and whether it is only a lower bound."""
    of = Run.objects.filter(attempts__change__in=changes) | Run.objects.filter(
        test_runs__attempt__change__in=changes
    )
    rows = list(of.distinct().values_list("pk", "spent_usd", "spent_is_lower_bound"))
    return sum(usd for _, usd, _ in rows), any(least for _, _, least in rows)


def cost(usd: float, is_lower_bound: bool) -> str:
    """What `spent` found, in words."""
    if is_lower_bound:
        return shown.money(usd, "lower_bound" if usd else "unknown")
    return f"${usd:.4f}"
