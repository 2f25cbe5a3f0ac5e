"""A brief as it is and as it was, and what is different between two of its versions."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from assistants import briefing, briefs, deciding
from assistants.config import restored
from assistants.memory.differences import Texts
from assistants.memory.snapshots import store_of
from assistants.models import Assistant, BriefVersion
from runs.pages import for_those_who_may, page
from runs.sight import seen_by

NOW = "now"


@require_safe
@for_those_who_may("assistants.view_assistant")
def brief(request: HttpRequest, name: str) -> HttpResponse:
    """One version (`?version=`, else the file as it is) and how it differs from another."""
    rows = Assistant.objects.present().filter(seen_by(request.user), name=name)
    assistant = rows.first()
    if assistant is None:
        raise Http404
    versions, trouble = briefs.history(assistant), ""
    chosen, since = request.GET.get("version", NOW), request.GET.get("since", "")
    try:
        text = _text(assistant, chosen)
        since = since or _before(assistant, versions, chosen)
        earlier = _text(assistant, since) if since else ""
    except (briefing.BrokenSettings, ValueError) as exc:
        text, earlier, trouble = "", "", str(exc)
    lines = Texts(store_of(assistant)).between(earlier, text) if since and not trouble else []
    words = [(NOW, "as the file is now"), *((str(each.pk), _word(each)) for each in versions)]
    context: dict[str, Any] = {
        "assistant": assistant,
        "versions": versions,
        "words": words,
        "chosen": chosen,
        "since": since,
        "text": text,
        "trouble": trouble,
        "lines": [deciding.marked(line) for line in lines],
    }
    return page(
        request,
        "assistants/brief.html",
        context,
        title=f"Brief of {name}",
        section="assistants",
        crumbs=[
            (reverse("assistants"), "Assistants"),
            (reverse("assistant", args=[name]), name),
            ("", "Brief"),
        ],
    )


def _word(version: BriefVersion) -> str:
    return f"version {version.pk}, read {version.read_at:%Y-%m-%d %H:%M} UTC"


def _text(assistant: Assistant, which: str) -> str:
    """Raises BrokenSettings or ValueError when the file cannot be read."""
    if which == NOW:
        return briefing.brief(assistant, restored(assistant.config))
    if not (which.isascii() and which.isdigit() and len(which) < 18):
        raise Http404
    found = BriefVersion.objects.filter(assistant=assistant, pk=int(which)).first()
    if found is None:
        raise Http404
    return found.text


def _before(assistant: Assistant, versions: list[BriefVersion], which: str) -> str:
    """The version before one, for the file the newest that says something else."""
    if which == NOW:
        here = briefs.digest_of(_text(assistant, NOW))
        earlier = [each.pk for each in versions if each.sha256 != here]
    else:
        earlier = [each.pk for each in versions if each.pk < int(which)]
    return str(earlier[0]) if earlier else ""
