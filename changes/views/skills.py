"""What agents wrote for those that come after them: read, approved one by one, taken back."""

from __future__ import annotations

from typing import Any

from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from changes import skills
from changes.models import Skill
from changes.views.gate import marked_lines
from runs.pages import attempt as attempted
from runs.pages import for_those_who_may, page
from runs.refusal import Refusal
from runs.typed import typed_before
from runs.verdicts import Person

PER_PAGE = 20
SHOWS = {
    "proposed": ("Waiting", ["proposed"]),
    "approved": ("In force", ["approved"]),
    "done": ("Past", ["rejected", "revoked", "replaced"]),
}


@require_safe
@for_those_who_may("changes.view_skill")
def listed(request: HttpRequest) -> HttpResponse:
    return _listed(request)


@require_POST
@for_those_who_may("changes.view_skill", "changes.decide_skill")
def decide(request: HttpRequest, pk: int) -> HttpResponse:
    """Approve, reject or revoke exactly the text whose digest the form names."""
    skill = Skill.objects.select_related("attempt__change").filter(pk=pk).first()
    if skill is None:
        raise Http404
    reason = request.POST.get("reason", "").replace("\r\n", "\n").strip()
    if not attempted(request, lambda: _decided(request, skill, reason)):
        return _listed(request, chosen=_tab_of(pk), typed={pk: reason}, status=409)
    if request.POST.get("back") == "change":
        return redirect(f"{reverse('change', args=[skill.attempt.change.uid])}#skills")
    return redirect("skills")


def _decided(request: HttpRequest, skill: Skill, reason: str) -> str:
    person, verdict = Person(user=request.user, via="web"), request.POST.get("verdict", "")
    digest = request.POST.get("digest", "")
    if digest != skill.sha256:
        raise Refusal("the form did not say what was read; read the skill again")
    if verdict == "approve":
        skills.approve(skill.pk, person, expect=digest, reason=reason)
        return f"Skill {skill} is approved: every later run on the repository is given it."
    if verdict == "reject":
        skills.reject(skill.pk, person, reason=reason)
        return f"Skill {skill} is rejected."
    if verdict == "revoke":
        skills.revoke(skill.pk, person, reason=reason)
        return f"Skill {skill} is revoked: no later run is given it."
    raise Refusal("the form holds no decision")


def _tab_of(pk: int) -> str:
    state = Skill.objects.values_list("state", flat=True).get(pk=pk)
    return next(name for name, (_, states) in SHOWS.items() if state in states)


def _listed(
    request: HttpRequest, *, chosen: str = "", typed: dict[int, str] | None = None,
    status: int = 200,
) -> HttpResponse:  # fmt: skip
    chosen = chosen or request.GET.get("show", "proposed")
    if chosen not in SHOWS:
        raise Http404
    rows: Any = Skill.objects.filter(state__in=SHOWS[chosen][1])
    rows = rows.select_related("repository", "attempt__change").order_by("-state_at", "-pk")
    part = Paginator(rows, PER_PAGE).get_page(request.GET.get("page"))
    before = typed_before(request)
    skill: Any
    for skill in part:
        skill.lines = marked_lines(skills.compared(skill)) if chosen == "proposed" else []
        skill.typed = (typed or {}).get(skill.pk, before if len(part) == 1 else "")
    tabs = [(name, word, name == chosen) for name, (word, _) in SHOWS.items()]
    context = {"part": part, "tabs": tabs, "chosen": chosen}
    return page(
        request, "changes/skills.html", context, title="Skills", section="changes",
        crumbs=[(reverse("changes"), "Changes"), ("", "Skills")], status=status,
    )  # fmt: skip
