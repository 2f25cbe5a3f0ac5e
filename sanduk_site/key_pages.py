"""A person's own keys: which are kept, never what they are."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST, require_safe

from assistants.models import Assistant
from runs import own_keys
from runs.pages import attempt, for_those_who_may, page
from runs.refusal import Refusal
from sanduk_site.sudo import fresh_login_required


@require_safe
@for_those_who_may()
def listed(request: HttpRequest) -> HttpResponse:
    """Every provider with whether this person keeps a key for it, and what uses theirs."""
    trouble, kept = "", []
    try:
        kept = own_keys.kept(request.user)
    except Refusal as exc:
        trouble = str(exc)
    context = {
        "rows": [(name, name in kept) for name in sorted(own_keys.keyed())],
        "lent": list(Assistant.objects.present().filter(key_of_id=request.user.pk)),
        "trouble": trouble,
    }
    return page(request, "site/keys.html", context, title="My keys", section="")


@require_POST
@for_those_who_may()
@sensitive_post_parameters("key")
@fresh_login_required
def keep(request: HttpRequest) -> HttpResponse:
    """Keep one, or forget it."""
    attempt(request, lambda: _done(request))
    return redirect("own-keys")


def _done(request: HttpRequest) -> str:
    form = request.POST
    provider = form.get("provider", "")
    if form.get("what") == "forget":
        if not own_keys.forget(request.user, provider):
            raise Refusal("there was none to forget")
        return f"Your key for {provider} is forgotten."
    own_keys.keep(request.user, provider, form.get("key", ""))
    return f"Your key for {provider} is kept. It is never shown again."
