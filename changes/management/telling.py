"""A change in lines for a terminal. What agents wrote goes through `visible`, always."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from changes import gate, pull_requests, rules
from changes.management import as_data
from changes.models import Artifact, Attempt, Change, RiskFlag, Skill, TestRun
from changes.own_paths import spelled
from changes.patches import ChangedPath
from runs.models import Decision
from runs.refusal import Refusal
from runs.verdicts import DIGEST_MIN, approvers
from runs.visible import visible

FILES_TOLD = 200
FLAGS_TOLD = 100
PATHS_TOLD = 10
OUTPUT_LINES = 20
_LINE = 300  # characters
STATES = {
    "queued": "queued",
    "running": "running: an attempt is being made",
    "review": "review: it waits for a person",
    "landing": "landing: it is accepted, and its branch is still to be made",
    "accepted": "accepted",
    "rejected": "rejected",
    "unchanged": "unchanged: the agent changed nothing",
    "failed": "failed",
}

NOT_COMMITTED = "what the agent had not committed, with the task as its message"
PROPOSALS = {
    "wanted": "not pushed yet",
    "pushed": "pushed, and no pull request yet",
    "asked": "pushed and asked for, and whether it was made is not known",
}


def facts(change: Change) -> Iterator[tuple[str, str]]:
    """Name and value of each fact of the head; the values are still to be made visible."""
    attempt = change.attempt
    yield "state", STATES[change.state] + (f"; {change.reason}" if change.reason else "")
    yield "repository", f"{change.repository.path} ({change.repository.uid})"
    base = change.base_commit or (attempt.base_commit if attempt else "")
    if base or change.base_ref:
        yield "base", f"{change.base_ref or 'HEAD'} {base[:12]}".strip()
    yield "agent", change.agent + (f", {change.model}" if change.model else "")
    yield "asked by", f"{as_data.asker(change)}, {change.created_at:%Y-%m-%d %H:%M:%S} UTC"
    if change.batch:
        yield "batch", change.batch
    many = change.attempts.count()
    if attempt is not None:
        run = f", run {attempt.run.uid}" if attempt.run else ""
        yield "attempt", f"{attempt.number} of {many}{run}"
        if attempt.number > 1:
            yield "revision", " ".join(attempt.task.split())
        yield "digest", attempt.digest
    usd, least = as_data.spent([change])
    if usd or least:
        yield "cost", as_data.cost(usd, least)
    if branch := as_data.branch(change):
        yield "branch", f"{branch} {change.landed_commit[:12]}".strip()
    for line in proposal(change):
        yield "draft", line


def decisions(change: Change) -> Iterator[str]:
    """Who decided what, and who is still missing."""
    found = decided(change)
    for each in found:
        who = each.actor.get_username() if each.actor else each.account
        verb = "accepted" if each.verdict == Decision.Verdict.APPROVE else "rejected"
        why = f": {visible(each.reason, limit=_LINE)}" if each.reason else ""
        old = (
            "" if change.attempt and each.digest == change.attempt.digest else " (another attempt)"
        )
        yield f"{verb} by {visible(who)} {each.at:%Y-%m-%d %H:%M:%S} UTC ({each.via}){old}{why}"
    if change.state != Change.State.REVIEW or change.attempt is None:
        return
    try:
        policy = gate.policy_of(change.attempt, rules.of(change.repository.uid))
    except Refusal as exc:
        yield f"! it cannot be accepted: {visible(str(exc))}"
        return
    given = len(approvers(found, change.attempt.digest))
    if policy.approvals > 1 or policy.exclude_author:
        people = "1 person" if policy.approvals == 1 else f"{policy.approvals} people"
        other = ", not by whoever asked for it" if policy.exclude_author else ""
        yield f"it needs to be accepted by {people}{other}; {given} did so far"


def decided(change: Change) -> list[Decision]:
    """Every decision of the present round."""
    found = Decision.objects.filter(subject=gate.subject_of(change))
    return list(found.select_related("actor"))


def flags(attempt: Attempt) -> Iterator[str]:
    """The answer first, then every flag, then what could not be checked."""
    found = list(attempt.flags.all()[: FLAGS_TOLD + 1])
    total = len(found) if len(found) <= FLAGS_TOLD else attempt.flags.count()
    scanned = attempt.lines_scanned
    many = "1 added line was" if scanned == 1 else f"{scanned:,} added lines were"
    lines = f"{many} looked at for secrets"
    if not found and not attempt.could_not_check:
        yield f"clear; {lines}"
        return
    yield f"{_flagged(total) if total else 'no flag, but not all could be checked'}; {lines}"
    for each in found[:FLAGS_TOLD]:
        yield flag(each)
    if total > FLAGS_TOLD:
        yield f"… {total - FLAGS_TOLD:,} more: --json names them all"
    for sentence in attempt.could_not_check[:FLAGS_TOLD]:
        yield f"? could not check: {visible(sentence, limit=_LINE)}"


def _flagged(many: int) -> str:
    return "1 flag" if many == 1 else f"{many:,} flags"


def flag(each: RiskFlag) -> str:
    line = f":{each.line}" if each.line else ""
    where = f" {visible(each.path, limit=_LINE)}{line}" if each.path else ""
    where += f" in commit {each.commit}" if each.commit else ""
    second = " (a second person has to accept it)" if each.needs_second_person else ""
    reason = visible(each.reason, limit=_LINE)
    return f"! {each.severity:<6} {visible(each.category)}{where}: {reason}{second}"


def paths(found: Sequence[bytes]) -> str:
    """A few of them, and how many more."""
    told = ", ".join(visible(spelled(path), limit=_LINE) for path in found[:PATHS_TOLD])
    more = len(found) - PATHS_TOLD
    return f"{told} and {more:,} more" if more > 0 else told


def file(each: ChangedPath) -> str:
    """`modified  lib/a.py  +3 -1`, with a mode or a kind that is unusual."""
    path = visible(spelled(each.path), limit=_LINE)
    if each.old_path is not None:
        path = f"{visible(spelled(each.old_path), limit=_LINE)} -> {path}"
    words = ["binary"] if each.binary else []
    if not each.binary and each.kind != "mode":
        words.append(f"+{each.added_lines:,} -{each.deleted_lines:,}")
    kinds = {"120000": "symbolic link", "160000": "submodule"}
    words += [kinds[each.new_mode]] if each.new_mode in kinds else []
    if each.old_mode != each.new_mode and "000000" not in (each.old_mode, each.new_mode):
        words.append(f"mode {each.old_mode} -> {each.new_mode}")
    elif each.old_mode == "000000" and each.new_mode == "100755":
        words.append("executable")
    return f"{each.kind:<8}  {path}  {', '.join(words)}".rstrip()


def commits(attempt: Attempt) -> Iterator[str]:
    """Each commit of a series with its words, and what is to be known of them."""
    for number, each in enumerate(attempt.commits, 1):
        first, *more = str(each["message"]).splitlines() or [NOT_COMMITTED]
        files = "1 file" if each["files"] == 1 else f"{each['files']:,} files"
        counts = f"{files}, +{each['added_lines']:,} -{each['deleted_lines']:,}"
        yield f"{number:>3}  {visible(first, limit=_LINE)}  ({counts})"
        for line in more[:OUTPUT_LINES]:
            yield f"     | {visible(line, limit=_LINE)}".rstrip()
        if len(more) > OUTPUT_LINES:
            yield f"     … {len(more) - OUTPUT_LINES:,} more lines; --json has all of them"
    if attempt.commits_note:
        yield f"note: {visible(attempt.commits_note, limit=2 * _LINE)}"


def left_out(attempt: Attempt) -> Iterator[str]:
    """What the agent left that is no part of the change."""
    for each in attempt.ignored_created[:PATHS_TOLD]:
        files = each.get("files", 0)
        many = f" ({files:,} files)" if files > 1 else ""
        yield f"ignored: {visible(str(each.get('path')), limit=_LINE)}{many}"
    for each in attempt.refused[:PATHS_TOLD]:
        reason = visible(str(each.get("reason")), limit=_LINE)
        yield f"refused: {visible(str(each.get('path')), limit=_LINE)}: {reason}"
    for what, entries in (("ignored", attempt.ignored_created), ("refused", attempt.refused)):
        if len(entries) > PATHS_TOLD:
            yield f"{what}: {len(entries) - PATHS_TOLD:,} more; --json names them"


def tests(run: TestRun, *, whole: bool) -> Iterator[str]:
    """How it ended, and the end of what it printed."""
    outcome = (run.outcome or "running").replace("_", " ")
    code = f", exit code {run.exit_code}" if run.exit_code else ""
    why = f": {visible(run.reason, limit=_LINE)}" if run.reason else ""
    box = f", run {run.run.uid}" if run.run else ""
    yield f"{outcome}{code}{box}: {visible(run.command, limit=_LINE)}{why}"
    if run.outcome == TestRun.Outcome.PASSED and not whole:
        return
    lines = run.output.rstrip().splitlines()
    kept = lines if whole else lines[-OUTPUT_LINES:]
    if len(kept) < len(lines) or run.output_bytes > len(run.output.encode(errors="replace")):
        yield f"  (the end of {run.output_bytes:,} bytes)"
    yield from (f"  | {visible(line, limit=_LINE)}" for line in kept)


def skill(each: Skill) -> Iterator[str]:
    """One version, with what stands out in it and its whole text."""
    by = f" by {visible(each.decided_by)}" if each.decided_by else ""
    yield f"{each.name} version {each.version}, {each.state}{by}, sha256 {each.sha256}"
    if each.description:
        yield f"  {visible(each.description, limit=_LINE)}"
    yield from (f"  ! {visible(sentence, limit=_LINE)}" for sentence in each.found)
    for sentence in each.could_not_check:
        yield f"  ? could not check: {visible(sentence, limit=_LINE)}"
    if each.reason:
        yield f"  reason: {visible(each.reason, limit=_LINE)}"
    yield from (f"  | {visible(line)}" for line in each.body.splitlines())


def artifact(each: Artifact) -> str:
    kept = f"not kept: {visible(each.refused)}" if each.refused else f"{each.size:,} bytes"
    return f"{each.uid}  {visible(each.name, limit=_LINE)}  {kept}"


def results(attempt: Attempt) -> Iterator[str]:
    """The agent's own account of its work, cut."""
    found = attempt.results
    for line in str(found.get("summary", "")).splitlines()[:OUTPUT_LINES]:
        yield f"| {visible(line, limit=_LINE)}"
    if found.get("tests_run"):
        yield f"| it says that {found.get('tests_passed', 0)} of {found['tests_run']} tests passed"
    for name in ("risks", "followups"):
        for line in list(found.get(name) or ())[:PATHS_TOLD]:
            yield f"| {name}: {visible(str(line), limit=_LINE)}"


def next_steps(change: Change) -> Iterator[str]:
    """The commands that make sense now."""
    if change.state == Change.State.REVIEW and change.attempt is not None:
        short = change.attempt.digest[:DIGEST_MIN]
        yield f"sanduk change diff {change.uid}"
        if (number := change.attempt.number) > 1:
            since = f"sanduk change diff {change.uid} --against {number - 1}"
            yield f"{since}    # what is new since attempt {number - 1}"
        if change.attempt.commits:
            yield f"sanduk change diff {change.uid} --commit 1    # one commit by itself"
        yield f"sanduk change accept {change.uid} --expect {short}"
        yield f'sanduk change reject {change.uid} --reason "…"'
        yield f'sanduk change revise {change.uid} --task "…"'
    elif change.state == Change.State.LANDING:
        yield f"sanduk change accept {change.uid}    # makes the branch"
    elif change.state == Change.State.ACCEPTED:
        yield from after_landing(change)


def proposal(change: Change) -> Iterator[str]:
    """How far the pull request of an accepted change came."""
    if (row := pull_requests.of(change)) is None:
        return
    if not row.is_unfinished:
        yield visible(row.url)
        return
    why = f": {visible(row.trouble, limit=_LINE)}" if row.trouble else ""
    yield f"{PROPOSALS[row.state]} in {visible(row.where)}{why}"


def after_landing(change: Change) -> Iterator[str]:
    """What a person does with a branch, in their own shell."""
    if (row := pull_requests.of(change)) is not None and row.is_unfinished:
        yield f"sanduk change accept {change.uid} --as draft-pr    # goes on with the pull request"
    where = visible(shlex.quote(change.repository.path))
    branch = visible(shlex.quote(as_data.branch(change)))
    yield f"git -C {where} show {branch}"
    yield f"git -C {where} merge {branch}"
    yield f"git -C {where} branch -D {branch}    # to forget it"


def waiting(many: int) -> str:
    return "1 change waits for a person" if many == 1 else f"{many} changes wait for a person"
