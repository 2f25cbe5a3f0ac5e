"""What an agent writes down for those that come after it: read, shown, decided one by one.

A skill is an instruction to every later agent on the repository. It is a proposal until a person
who saw its text approves that text; it can be taken back; each change of it is a new version.
"""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from django.db import IntegrityError, transaction
from django.db.models import Max

from changes import gate, own_files, risky_content
from changes.added import Added, added
from changes.models import Attempt, Repository, Skill
from changes.patches import ChangedPath
from changes.secrets_found import Scan
from runs import audit, four_eyes, secret_scan
from runs.approval import ApprovalPolicy
from runs.models import Decision
from runs.refusal import Refusal
from runs.verdicts import Person, check_expected, write_down

DIRECTORY = "skills"
FILE_MAX = 64 << 10  # bytes
COUNT_MAX = 20  # of one attempt
_DESCRIPTION = 500
_TRIES = 20
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_HEAD = re.compile(r"\A---[ \t]*\r?\n(.*?)^---[ \t]*\r?$", re.DOTALL | re.MULTILINE)
_KEY = re.compile(r"([A-Za-z][A-Za-z0-9_-]*)[ \t]*:[ \t]*(.*)")
# said to an agent whose work may leave such files
TOLD = (
    "What later agents on this repository should know may be written to .sanduk/skills/NAME.md, "
    "beginning with a line ---, the lines name: and description:, and a line ---. Pictures, logs "
    "and reports for the person who reviews your work go to .sanduk/artifacts/. Neither becomes "
    "part of the change."
)


@dataclass(frozen=True, slots=True)
class Proposal:
    name: str
    description: str
    text: str


@dataclass(frozen=True, slots=True)
class Taken:
    """What was found; `refused` names files that are no skill, each with why, and only those."""

    proposals: tuple[Proposal, ...]
    refused: tuple[tuple[str, str], ...]


def take(clone: Path) -> Taken:
    """The skills an agent left. Never raises because of them; one bad file spoils no other."""
    proposals: dict[str, Proposal] = {}
    refused: list[tuple[str, str]] = []
    for file in own_files.within(clone, DIRECTORY, limit=FILE_MAX):
        try:
            found = _read(file)
            if found.name.casefold() in proposals:
                raise Refusal(f"there is another skill called {found.name}")
            if len(proposals) >= COUNT_MAX:
                raise Refusal(f"there are more than {COUNT_MAX}")
        except Refusal as exc:
            refused.append((file.name, str(exc)))
        else:
            proposals[found.name.casefold()] = found
    return Taken(tuple(proposals.values()), tuple(refused))


def propose(attempt: Attempt, proposals: Sequence[Proposal]) -> list[Skill]:
    """Keep those that say something new as versions a person has to decide on."""
    repository = attempt.change.repository
    in_force = {each.name: each.sha256 for each in Skill.objects.in_force(repository)}
    new = [each for each in proposals if in_force.get(each.name) != digest_of(each.text)]
    return [_propose(attempt, repository, each) for each in new]


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def compared(skill: Skill) -> str:
    """The difference to the version in force, whole where there is none; hostile text."""
    before = Skill.objects.in_force(skill.repository).filter(name=skill.name).first()
    old = before.body.splitlines() if before is not None else []
    named = f"{skill.name} {before.version}" if before is not None else "(none)"
    lines = difflib.unified_diff(old, skill.body.splitlines(), named, str(skill), lineterm="")
    return "\n".join(lines)


def approve(pk: int, person: Person, *, expect: str | None = None, reason: str = "") -> Skill:
    """Let a version be given to every later run, in place of the one before.

    Args:
        expect: the beginning of the digest of the text the person read.
        reason: why; something found in it needs one.
    Raises:
        Refusal: it was decided already, is not what was read, or they may not approve it.
    """
    with transaction.atomic():
        skill = _locked(pk, Skill.State.PROPOSED)
        _check_read(skill, expect)
        if (skill.found or skill.could_not_check) and not reason.strip():
            first = [*skill.found, *skill.could_not_check][0]
            raise Refusal(f"skill {skill}: {first}; approving it needs a --reason")
        policy = ApprovalPolicy(exclude_author=four_eyes.is_on())
        authors = gate.authors_of(skill.attempt.change)
        if not policy.may_decide(user_id=person.user_id, authors=authors):
            raise Refusal(
                f"{person.name} asked for {skill.attempt.change}: a second person decides"
            )
        _write_down(skill, Decision.Verdict.APPROVE, person, reason)
        before = Skill.objects.in_force(skill.repository).filter(name=skill.name).first()
        if before is not None:
            Skill.objects.step(before.pk, "approved", "replaced")
        _step(skill, "proposed", "approved", person, reason)
    return skill


def reject(pk: int, person: Person, *, reason: str = "") -> Skill:
    """Let a version go no further."""
    with transaction.atomic():
        skill = _locked(pk, Skill.State.PROPOSED)
        _write_down(skill, Decision.Verdict.REJECT, person, reason)
        _step(skill, "proposed", "rejected", person, reason)
    return skill


def revoke(pk: int, person: Person, *, reason: str) -> Skill:
    """Take an approved version back: no later run is given it, nor the one before it."""
    if not reason.strip():
        raise Refusal("revoking a skill needs a --reason")
    with transaction.atomic():
        skill = _locked(pk, Skill.State.APPROVED)
        _step(skill, "approved", "revoked", person, reason)
        who = {"actor": person.user} if person.user is not None else {}
        audit.record("skill.revoke", _subject(skill), **who, sha256=skill.sha256, reason=reason)
    return skill


def write_into(directory: Path, repository: Repository) -> list[str]:
    """Write every skill in force below an empty directory of ours, as agents look for them.

    Returns the names. Raises Refusal when one is not the text that was approved.
    """
    names = []
    for skill in Skill.objects.in_force(repository):
        if digest_of(skill.body) != skill.sha256 or not _NAME.fullmatch(skill.name):
            raise Refusal(f"skill {skill} is not what was approved: revoke it")
        place = directory / skill.name
        place.mkdir(mode=0o755)
        (place / "SKILL.md").write_text(skill.body, newline="")
        names.append(skill.name)
    return names


def _read(file: own_files.OwnFile) -> Proposal:
    if file.data is None:
        raise Refusal(file.reason)
    if not file.name.lower().endswith(".md"):
        raise Refusal("its name does not end in .md")
    try:
        text = file.data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Refusal("it is not UTF-8 text") from None
    if "\0" in text:
        raise Refusal("it is no text")
    head = _HEAD.match(text)
    if head is None:
        raise Refusal("it does not begin with a line ---, its keys and a line ---")
    keys = {found[1]: found[2].strip() for found in map(_KEY.match, head[1].splitlines()) if found}
    name = keys.get("name", "").strip("\"'")
    if not _NAME.fullmatch(name):
        raise Refusal("its name: is missing, or is no word of letters, digits, - and _")
    if not text[head.end() :].strip():
        raise Refusal("it says nothing")
    return Proposal(name, keys.get("description", "").strip("\"'")[:_DESCRIPTION], text)


def _propose(
    attempt: Attempt, repository: Repository, proposal: Proposal, tries: int = _TRIES
) -> Skill:
    found, could_not_check = _looked_at(proposal)
    versions = Skill.objects.filter(repository=repository, name=proposal.name)
    last = versions.aggregate(last=Max("version"))["last"] or 0
    try:
        with transaction.atomic():
            return Skill.objects.create(
                repository=repository, attempt=attempt, name=proposal.name,
                version=last + 1, description=proposal.description, body=proposal.text,
                sha256=digest_of(proposal.text), found=found, could_not_check=could_not_check,
            )  # fmt: skip
    except IntegrityError:
        # another attempt took the number just now; anything else would fail again
        if not (tries and versions.filter(version=last + 1).exists()):
            raise
        return _propose(attempt, repository, proposal, tries - 1)


def _looked_at(proposal: Proposal) -> tuple[list[str], list[str]]:
    """What stands out in a skill's text, and what could not be looked at, in sentences."""
    held, problems = secret_scan.held_secrets()
    scan = Scan(held)
    file = _as_file(proposal)
    scan.add(file)
    scan.finish()
    flags = [*risky_content.of_lines(file), *scan.flags]
    told = [f"line {flag.line}: {flag.reason}" if flag.line else flag.reason for flag in flags]
    return list(dict.fromkeys(told)), [*scan.could_not_check, *(each.name for each in problems)]


def _as_file(proposal: Proposal) -> Added:
    changed = ChangedPath(
        path=f"{proposal.name}.md".encode(), old_path=None, kind="added", old_mode="000000",
        new_mode="100644", old_id="", new_id="", binary=False, added_lines=0, deleted_lines=0,
    )  # fmt: skip
    return added(changed, proposal.text.encode(), b"")


def _subject(skill: Skill) -> str:
    return f"skill:{skill.pk}"


def _locked(pk: int, state: str) -> Skill:
    skill = (
        Skill.objects.select_for_update(of=("self",))
        .select_related("repository", "attempt__change")
        .filter(pk=pk)
        .first()
    )
    if skill is None:
        raise Refusal(f"there is no skill {pk}; sanduk skills list shows them")
    if skill.state != state:
        by = f" by {skill.decided_by}" if skill.decided_by else ""
        raise Refusal(f"skill {skill} is {skill.state}{by}")
    return skill


def _check_read(skill: Skill, expect: str | None) -> None:
    if digest_of(skill.body) != skill.sha256:
        raise Refusal(f"skill {skill} is not what the agent wrote: its digest does not fit")
    check_expected(skill.sha256, expect, what=f"skill {skill}")


def _write_down(skill: Skill, verdict: Decision.Verdict, person: Person, reason: str) -> None:
    write_down(
        _subject(skill), skill.sha256, verdict, person, reason, what=f"skill {skill}",
        name=skill.name, version=skill.version, repository=skill.repository.uid,
    )  # fmt: skip


def _step(skill: Skill, source: str, to: str, person: Person, reason: str) -> None:
    facts = {"decided_by": person.name[:300], "reason": reason}
    if not Skill.objects.step(skill.pk, source, to, **facts):
        raise Refusal(f"skill {skill} was decided by somebody else just now")
    skill.refresh_from_db()
