"""The gate: what a change is, exactly, and a person's word on it."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_POST, require_safe

from changes import (
    deciding,
    gate,
    handover,
    landing_plan,
    pull_requests,
    reviewing,
    showing,
    skills,
    testing_later,
)
from changes.attempts import kept_store
from changes.git import GitError
from changes.models import Attempt, Change, RiskFlag, Skill, TestRun
from changes.rendering import Look
from runs.pages import attempt as attempted
from runs.pages import for_those_who_may, page
from runs.refusal import HostRefusal, Refusal
from runs.typed import typed_before
from runs.verdicts import Person

FLAGS_SHOWN = 60  # in the list at the top; at their lines all of a shown file are
TESTS_SHOWN = 5
COMMENTS_MAX = 200
COMMENT_MAX = 4000  # characters
FIND_MAX = 200
OPEN = (Change.State.REVIEW, Change.State.LANDING)


@require_safe
@for_those_who_may("changes.view_change")
def change(request: HttpRequest, uid: str) -> HttpResponse:
    """Everything a person should see before they decide, and the form that decides."""
    return _gate(request, found(uid))


@require_POST
@for_those_who_may("changes.view_change")
def decide(request: HttpRequest, uid: str) -> HttpResponse:
    """Accept, reject or have revised exactly what the digest of the form names."""
    verdict = request.POST.get("verdict", "")
    right = "changes.start_change" if verdict == "revise" else "changes.decide_change"
    if not request.user.has_perm(right):
        raise PermissionDenied
    it = found(uid)
    reason = request.POST.get("reason", "").replace("\r\n", "\n").strip()
    if not attempted(request, lambda: _decided(request, it, verdict, reason)):
        # the typed reason comes back with the page
        return _gate(request, found(uid), typed=reason, status=409)
    return redirect("change", uid)


@require_POST
@for_those_who_may("changes.view_change", "changes.start_change")
def test(request: HttpRequest, uid: str) -> HttpResponse:
    """Have the operator's tests run on exactly what the digest of the form names."""
    it = found(uid)

    def ask() -> str:
        _seen(request, it)
        testing_later.ask(it, Person(user=request.user, via="web"))
        return "The tests are asked for; they run as soon as the worker has room."

    attempted(request, ask)
    return redirect("change", uid)


@require_POST
@for_those_who_may("changes.view_change", "changes.start_change")
def stop(request: HttpRequest, uid: str) -> HttpResponse:
    """End an attempt that waits or is being made."""
    it = found(uid)

    def end() -> str:
        said = handover.cancel(it.uid, request.user.get_username())
        if not said:
            raise Refusal("there is nothing to stop")
        return "It was asked to stop." if said == "asked" else "It was cancelled before it began."

    attempted(request, end)
    return redirect("change", uid)


def found(uid: str) -> Change:
    """The change with this id, or a 404."""
    rows = Change.objects.select_related("repository", "attempt__run", "run", "requested_by")
    it = rows.filter(uid=uid).first()
    if it is None:
        raise Http404
    return it


def _seen(request: HttpRequest, it: Change) -> str:
    """The digest of what was read. Raises Refusal when it is not what is there now."""
    digest = request.POST.get("digest", "")
    if it.attempt is None or len(digest) != len(it.attempt.digest):
        raise Refusal("the form did not say what was read; read the change again")
    if digest != it.attempt.digest:
        raise Refusal(f"{it} has another attempt by now; read that one")
    return digest


def _decided(request: HttpRequest, it: Change, verdict: str, reason: str) -> str:
    digest, person = _seen(request, it), Person(user=request.user, via="web")
    try:
        if verdict == "reject":
            if not reason:
                raise Refusal("a rejection needs a reason: who asked for the change will ask")
            gate.reject(it.uid, person, expect=digest, reason=reason)
            return f"Change {it.uid} is rejected."
        if verdict == "revise":
            return _revised(request, it, person, reason)
        if verdict == "accept":
            return _accepted(request, it, person, digest, reason)
        if verdict == "land":
            return _landed(gate.land(it.uid))
        if verdict == "propose":
            if trouble := deciding.proposed(it):
                raise Refusal(trouble)
            return _proposal(it)
    except (GitError, HostRefusal) as exc:
        raise Refusal(f"git could not: {exc}") from None
    raise Refusal("the form holds no decision")


def _revised(request: HttpRequest, it: Change, person: Person, reason: str) -> str:
    comments = [
        text.replace("\r\n", "\n").strip()[:COMMENT_MAX]
        for text in request.POST.getlist("comment")[:COMMENTS_MAX]
    ]
    task = "\n\n".join(filter(None, [reason, *comments]))
    if not task:
        raise Refusal("a revision needs words: what is to be different")
    if "\0" in task or any("\ud800" <= char <= "\udfff" for char in task):
        raise Refusal("it holds what is no text")
    if not handover.give_revision(it.uid, person, task):
        raise Refusal(
            "no worker is up that could make another attempt: sanduk up, or sanduk worker"
        )
    return "Another attempt is asked for; the worker makes it. This one stays until then."


def _accepted(request: HttpRequest, it: Change, person: Person, digest: str, reason: str) -> str:
    no_test = "no_test" in request.POST
    _check_words(it, person, reason, no_test=no_test)
    words = gate.Accepting(
        committer=_committer(request.user), expect=digest, reason=reason, no_test=no_test,
        draft_pr="draft_pr" in request.POST,
    )  # fmt: skip
    standing = gate.accept(it.uid, person, words)
    if standing.change.state == Change.State.LANDING:
        return _landed(gate.land(it.uid))
    more = standing.missing
    return f"Your yes is kept. {more} more {'people are' if more > 1 else 'person is'} needed."


def _check_words(it: Change, person: Person, reason: str, *, no_test: bool) -> None:
    """What the gate would refuse in a terminal's words is refused in the page's."""
    if it.state != Change.State.REVIEW or it.attempt is None:
        return
    said = reviewing.verdicts(it, it.attempt, person)
    if said.needs_no_test and not no_test:
        what = {"missing": "were not run", "running": "still run"}.get(said.tests, "are not green")
        raise Refusal(
            f"the tests {what} on exactly this content; accepting without them is a box to tick, "
            "and needs a reason"
        )
    if said.needs_no_test and not reason:
        raise Refusal("accepting without the tests needs a reason, which is kept")
    flags = list(RiskFlag.objects.filter(attempt=it.attempt, category="secret"))
    if not reason and reviewing.needs_reason(it.attempt, flags):
        raise Refusal(
            "letting a possible secret, or what could not be checked, pass needs a reason"
        )


def _landed(it: Change) -> str:
    branch = landing_plan.restored(it.landing).branch
    said = f"Change {it.uid} is accepted: branch {branch}, commit {it.landed_commit[:12]}."
    # it is accepted whatever GitHub says; the page tells how far it came
    deciding.proposed(it)
    return f"{said} {_proposal(it)}".strip()


def _proposal(it: Change) -> str:
    """How far the pull request came that it was accepted for; "" where none was asked for."""
    row = pull_requests.of(it)
    if row is None:
        return ""
    if row.is_unfinished:
        return f"Its draft pull request is not made: {row.trouble}"
    return f"Its draft pull request is {row.url}"


def _committer(user: Any) -> tuple[str, str]:
    name = user.get_full_name() or user.get_username()
    return name, user.email or f"{user.get_username()}@users.invalid"


def _gate(request: HttpRequest, it: Change, *, typed: str = "", status: int = 200) -> HttpResponse:
    chosen = _chosen(request, it)
    context: dict[str, Any] = {
        "change": it,
        "attempt": chosen,
        "run": chosen.run if chosen is not None else it.run,
        "standing": reviewing.standing(it),
        "plan": landing_plan.restored(it.landing) if it.landing else None,
        "proposal": pull_requests.of(it),
        "attempts": list(it.attempts.order_by("number").only("number", "created_at", "change")),
    }
    if chosen is not None:
        context |= _of_attempt(request, it, chosen)
    context["typed"] = typed or typed_before(request) or _at(request, context)
    return page(
        request, "changes/gate.html", context,
        title=f"Change {it.uid} of {it.repository.name}",
        section="changes",
        crumbs=[(reverse("changes"), "Changes"), ("", it.uid)],
        status=status,
    )  # fmt: skip


def _chosen(request: HttpRequest, it: Change) -> Attempt | None:
    """The attempt that is looked at: the one to decide on, or an earlier one to read."""
    number = request.GET.get("attempt", "")
    if not number:
        return it.attempt
    if not (number.isascii() and number.isdigit() and len(number) < 9):
        raise Http404
    earlier = it.attempts.select_related("run").filter(number=int(number)).first()
    if earlier is None:
        raise Http404
    return earlier


def _of_attempt(request: HttpRequest, it: Change, chosen: Attempt) -> dict[str, Any]:
    flags: list[Any] = list(RiskFlag.objects.filter(attempt=chosen))
    is_current = chosen.pk == it.attempt_id
    is_open = is_current and it.state in OPEN
    person = Person(user=request.user, via="web")
    verdicts = reviewing.verdicts(it, chosen, person) if is_current else reviewing.Verdicts()
    reviews = is_open and it.state == Change.State.REVIEW
    may_revise = reviews and request.user.has_perm("changes.start_change")
    query = query_of(request)
    may_say = may_revise or (reviews and request.user.has_perm("changes.decide_change"))
    look = Look(query.get("view") == "split", _link(query) if may_say else "")
    return {
        "is_open": is_open,
        "is_current": is_current,
        "verdicts": verdicts,
        "may_revise": may_revise,
        "offered": pull_requests.offered(it) if reviews else "",
        "flags": flags[:FLAGS_SHOWN],
        "more_flags": max(len(flags) - FLAGS_SHOWN, 0),
        "is_grave": any(each.severity == "high" for each in flags),
        "needs_reason": reviewing.needs_reason(chosen, flags),
        "conflicts": reviewing.conflicts_of(it) if reviews else None,
        "tests": list(TestRun.objects.filter(attempt=chosen)[:TESTS_SHOWN]),
        "skills": [
            (each, marked_lines(skills.compared(each)))
            for each in Skill.objects.filter(attempt=chosen).select_related("repository")
        ],
        "artifacts": list(chosen.artifacts.all()),
        "is_split": look.split,
        "query": query,
        **_lines(request, it, chosen, flags, look),
    }


def _lines(
    request: HttpRequest, it: Change, chosen: Attempt, flags: list[Any], look: Look
) -> dict[str, Any]:
    query = query_of(request)
    number = query.get("part", "1")
    try:
        part = showing.part(
            kept_store(it.repository), chosen, flags, look,
            number=int(number), find=query.get("find", ""),
        )  # fmt: skip
    except (GitError, HostRefusal) as exc:
        return {"part": None, "trouble": f"What it holds cannot be read: {exc}", "where": {}}
    for flag in flags[:FLAGS_SHOWN]:
        flag.leads = _leads(flag, part, query)
        if flag.commit:
            flag.leads = reverse("change-commit", args=[it.uid, chosen.number, flag.commit])
    return {"part": part, "trouble": "", "pages": _pages(part, query)}


def query_of(request: HttpRequest) -> dict[str, str]:
    """What the address says of how it is shown; nothing else of it is used."""
    found: dict[str, str] = {}
    if request.GET.get("view") == "split":
        found["view"] = "split"
    if (find := request.GET.get("find", "")[:FIND_MAX]) and "\0" not in find:
        found["find"] = find
    number = request.GET.get("part", "")
    if number.isascii() and number.isdigit() and len(number) < 7 and int(number) > 1:
        found["part"] = number
    number = request.GET.get("attempt", "")
    if number.isascii() and number.isdigit():
        found["attempt"] = number
    return found


def _link(query: dict[str, str]) -> str:
    """The beginning of an address that names a line of this page."""
    rest = urlencode(query).replace("&", "&amp;")
    return f"?{rest}&amp;at=" if rest else "?at="


def _leads(flag: RiskFlag, part: showing.Part, query: dict[str, str]) -> str:
    """Where on the page, or on which part of it, the flag's file stands; "" for nowhere."""
    if flag.path not in part.where:
        return ""
    number, at_part = part.where[flag.path]
    here = next((file for file in part.files if file.number == number), None)
    if here is not None:
        stands = flag.line and not any(each.pk == flag.pk for each in here.beside)
        return f"#f{number}-R{flag.line}" if stands else f"#f{number}"
    others = {name: word for name, word in query.items() if name not in ("find", "part")}
    return f"?{urlencode(others | {'part': str(at_part)})}#f{number}"


def _pages(part: showing.Part, query: dict[str, str]) -> dict[str, str]:
    others = {name: word for name, word in query.items() if name != "part"}
    found = {}
    if part.number > 1:
        found["before"] = f"?{urlencode(others | {'part': str(part.number - 1)})}#diff"
    if part.number < part.last:
        found["after"] = f"?{urlencode(others | {'part': str(part.number + 1)})}#diff"
    return found


def _at(request: HttpRequest, context: dict[str, Any]) -> str:
    """The beginning of a comment on the line that the address names, where there is no script."""
    number, _, line = request.GET.get("at", "")[:40].partition("-")
    part = context.get("part")
    if part is None or not number.isdigit() or line[:1] not in ("L", "R"):
        return ""
    if not (line[1:].isascii() and line[1:].isdigit()):
        return ""
    path = next((file.path for file in part.files if str(file.number) == number), "")
    side = " (as it was)" if line[0] == "L" else ""
    return f"{path}, line {line[1:]}{side}: " if path else ""


_MARKS = {"+": "add", "-": "del", "@": "hunk"}


def marked_lines(text: str) -> list[tuple[str, str]]:
    """A unified difference, each line with what it is."""
    return [(_MARKS.get(line[:1], "same"), line) for line in text.split("\n")]
