"""Whose an assistant is and who may use it, said on its page, with the password first."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from assistants.models import Assistant
from assistants.views import sharing
from runs.pages import attempt, for_those_who_may
from runs.sight import seen_by
from sanduk_site.sudo import fresh_login_required


@require_POST
@for_those_who_may("assistants.view_assistant")
def share(request: HttpRequest, name: str) -> HttpResponse:
    """Give it to somebody, let somebody do something with it, or no more."""
    found = Assistant.objects.present().filter(seen_by(request.user), name=name).first()
    if found is None:
        raise Http404
    is_harmless = request.POST.get("what") in sharing.HARMLESS
    return _shared(request, found) if is_harmless else _shared_once_sure(request, found)


def _shared(request: HttpRequest, found: Assistant) -> HttpResponse:
    attempt(request, lambda: sharing.shared(request.POST, found, request.user))
    is_seen = Assistant.objects.filter(seen_by(request.user), pk=found.pk).exists()
    return redirect("assistant", found.name) if is_seen else redirect("assistants")


_shared_once_sure = fresh_login_required(_shared)
