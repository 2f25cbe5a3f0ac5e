"""What a draft pull request says: its title and its text, settled when the change is accepted.

Words of the task, of the agent and of paths are hostile there. They stand in a fenced block, each
line behind a bar, so that no line ends the block or is a command to a robot; and in them nothing
calls a person, names an issue or is an address. That holds as well where the text becomes a commit
message later.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from changes.models import Attempt, Change, RiskFlag, TestRun
from runs import secret_scan
from runs.visible import visible

TITLE_MAX = 120  # characters
BODY_MAX = 40_000  # GitHub takes 65,536
FLAGS_MAX = 50
_LINES, _LINE = 60, 300
# @name, #12, GH-12, owner/repo#12, any address: what GitHub acts on, wherever it stands
_ACTS = re.compile(r"@(?=\w)|#(?=\d)|(?<=://)|(?<=\bwww)\.|(?<=\bgh)-(?=\d)", re.IGNORECASE)
_HTML = str.maketrans({"<": "(", ">": ")"})  # a title is shown as it is; a bot may do otherwise


def title(change: Change) -> str:
    """One line: the first of the task."""
    first = next((line for line in change.task.splitlines() if line.strip()), "")
    text = defused(" ".join(first.split()), limit=TITLE_MAX).translate(_HTML).replace("`", "'")
    is_secret = any(each.kind != "unchecked" for each in secret_scan.scan(text))
    return f"Change {change.uid}" if is_secret or not text else text


def body(change: Change, attempt: Attempt, *, tests: str, trailers: str) -> str:
    """The whole text.

    Args:
        tests: what is known of the tests, in words.
        trailers: those of the commit.
    """
    flags = list(RiskFlag.objects.filter(attempt=attempt)[: FLAGS_MAX + 1])
    lines = f"+{attempt.added_lines:,} -{attempt.deleted_lines:,}"
    what = f"{attempt.files:,} file{'' if attempt.files == 1 else 's'}, {lines}"
    many = len(attempt.series)
    commits = f"{many} commits, the agent's own" if many > 1 else "one commit"
    parts = [
        "An agent made this change in a sandbox; people accepted exactly this content before it "
        f"left. It is {commits}: {what}.",
        *_block("Task", change.task.splitlines()),
        *_block("What to look at", _flags(attempt, flags)),
        *_block("Tests", _tests(attempt, tests)),
        *_block("What the agent says of it, which proves nothing", _summary(attempt)),
        *_block("What was accepted", trailers.splitlines()),
    ]
    return _without_secrets("\n\n".join(parts))[:BODY_MAX]


def defused(text: str, *, limit: int = _LINE) -> str:
    """One line in which nothing acts on GitHub, and nothing hides."""
    return quiet(visible(text, limit=limit))


def quiet(text: str) -> str:
    """`text` with what GitHub acts on cut in two, line by line as it was."""
    return _ACTS.sub(lambda found: f"{found[0]} ", text)


def _block(heading: str, lines: Iterable[str]) -> Sequence[str]:
    found = [line for line in lines if line.strip()]
    if not found:
        return ()
    told = [f"| {defused(line)}" for line in found[:_LINES]]
    if len(found) > _LINES:
        told.append(f"| … {len(found) - _LINES:,} more lines")
    return f"### {heading}", "\n".join(["```text", *told, "```"])


def _flags(attempt: Attempt, flags: Sequence[RiskFlag]) -> Iterable[str]:
    if not flags and not attempt.could_not_check:
        yield "clear: nothing was flagged"
    for each in flags[:FLAGS_MAX]:
        line = f":{each.line}" if each.line else ""
        where = f" {each.path}{line}" if each.path else ""
        yield f"{each.severity} {each.category}{where}: {each.reason}"
    if len(flags) > FLAGS_MAX:
        yield f"… {attempt.flags.count() - FLAGS_MAX:,} more"
    for sentence in attempt.could_not_check[:FLAGS_MAX]:
        yield f"could not check: {sentence}"


def _tests(attempt: Attempt, tests: str) -> Iterable[str]:
    yield tests
    done = TestRun.objects.filter(digest=attempt.digest).exclude(outcome="")
    for each in done[:5]:
        code = "" if each.exit_code is None else f" (exit status {each.exit_code})"
        yield f"{each.outcome.replace('_', ' ')}{code}: {' '.join(each.command.split())}"


def _summary(attempt: Attempt) -> Iterable[str]:
    yield from str(attempt.results.get("summary", "")).splitlines()
    for name in ("risks", "followups"):
        for each in list(attempt.results.get(name) or ())[:10]:
            yield f"{name}: {' '.join(str(each).split())}"


def _without_secrets(text: str) -> str:
    """`text`, with each line that holds a secret of this host, or looks like one, left out."""
    lines = text.split("\n")
    for _ in range(20):
        found = [each for each in secret_scan.scan("\n".join(lines)) if each.kind != "unchecked"]
        if not found:
            return "\n".join(lines)
        for each in found:
            lines[max(each.line, 1) - 1] = "| (a line that looks like a secret was left out)"
    return "(the text held too much that looks like a secret; it stayed on its host)"
