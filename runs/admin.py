"""Runs in Django's admin: evidence, to be read and never edited."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.admin import AllValuesFieldListFilter
from django.contrib.admin.options import IncorrectLookupParameters
from django.core.exceptions import PermissionDenied
from django.db import models
from django.db.models import Exists, OuterRef, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.template.loader import render_to_string
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.views.decorators.http import require_safe

from runs import audit, audit_export, shown
from runs.models import AuditEvent, Decision, RelayCall, Run, RunEvent
from runs.sight import seen_by
from runs.templatetags import evidence
from runs.visible import visible

if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin[Any]
else:
    ModelAdmin = admin.ModelAdmin


PRICED = ("exact", "reported")


class Evidence(ModelAdmin):
    """Nobody adds, changes or deletes a record of what happened, superusers included."""

    actions = None
    way = ""  # the lookup that leads to the assistant it is of

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        found: QuerySet[Any] = super().get_queryset(request)
        return found.filter(seen_by(request.user, self.way)) if self.way else found

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> Any:
        """The record with what is hostile in it made visible; it is shown and never saved."""
        found = super().get_object(request, object_id, from_field)
        for field in found._meta.concrete_fields if found is not None else ():
            setattr(found, field.attname, _visible(getattr(found, field.attname)))
        return found

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        return False


class VisibleValues(AllValuesFieldListFilter):
    """Filters by what there is; a third party's name may be anything, and some have none."""

    def choices(self, changelist: Any) -> Iterator[Any]:
        for each in super().choices(changelist):
            yield {**each, "display": visible(str(each["display"]), limit=60) or "(none)"}


def _without(request: HttpRequest, *names: str) -> None:
    """Take from the address what no filter of the list is."""
    left = request.GET.copy()
    for name in names:
        left.pop(name, None)
    request.GET = left  # type: ignore[assignment]


def _visible(value: Any) -> Any:
    """Every text in a value, also within what JSON holds, without a character that hides."""
    if isinstance(value, str):
        return visible(value, lines=True)
    if isinstance(value, dict):
        return {_visible(key): _visible(each) for key, each in value.items()}
    return [_visible(each) for each in value] if isinstance(value, list) else value


@admin.register(Run)
class RunAdmin(Evidence):
    way = "wakeup__assistant"
    list_display = [
        "page", "standing", "whose", "provider", "mode", "spent", "trigger", "created_at",
        "ended_at",
    ]  # fmt: skip
    list_display_links = None
    list_select_related = ["wakeup__assistant"]
    list_filter = [
        "state", "outcome", ("agent", VisibleValues), ("provider", VisibleValues), "mode",
        "trigger", "created_at",
    ]  # fmt: skip
    search_fields = ["uid", "task", "workspace"]
    show_full_result_count = False

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        calls = RelayCall.objects.filter(run=OuterRef("pk"))
        kinds = {f"has_{kind}": Exists(calls.filter(cost_kind=kind)) for kind in PRICED}
        found = super().get_queryset(request)
        priced: QuerySet[Any] = found.annotate(**kinds)
        return priced

    @admin.display(description="run", ordering="uid")
    def page(self, run: Run) -> str:
        return format_html('<a href="{}">{}</a>', reverse("run", args=[run.uid]), run.uid)

    @admin.display(description="state", ordering="state")
    def standing(self, run: Run) -> str:
        return render_to_string("site/_chip.html", evidence.chip(run.outcome or run.state))

    @admin.display(description="assistant or agent", ordering="agent")
    def whose(self, run: Run) -> str:
        wakeup = getattr(run, "wakeup", None)
        return wakeup.assistant.name if wakeup else visible(run.agent, limit=60)

    @admin.display(ordering="spent_usd")
    def spent(self, run: Run) -> str:
        kinds = {kind for kind in PRICED if getattr(run, f"has_{kind}")}
        return shown.spent(run, shown.kind_of(run, kinds))


@admin.register(RunEvent)
class RunEventAdmin(Evidence):
    way = "run__wakeup__assistant"
    list_display = ["run", "sequence", "at", "kind", "said"]
    list_filter = ["kind"]
    list_select_related = ["run"]
    search_fields = ["run__uid"]

    @admin.display(description="text")
    def said(self, event: RunEvent) -> str:
        return visible(event.text, limit=300)


@admin.register(RelayCall)
class RelayCallAdmin(Evidence):
    way = "run__wakeup__assistant"
    list_display = [
        "run", "sequence", "what", "status", "asked", "input_tokens", "output_tokens", "cost",
        "refused",
    ]  # fmt: skip
    list_filter = [("protocol", VisibleValues), "completed", ("cost_kind", VisibleValues)]
    list_select_related = ["run"]
    search_fields = ["run__uid", "model_asked"]

    @admin.display(description="request")
    def what(self, call: RelayCall) -> str:
        return visible(f"{call.method} {call.path}", limit=120)

    @admin.display(description="model", ordering="model_asked")
    def asked(self, call: RelayCall) -> str:
        return visible(call.model_asked, limit=60)

    @admin.display(description="refusal")
    def refused(self, call: RelayCall) -> str:
        return visible(call.refusal, limit=200)

    @admin.display(ordering="cost_usd")
    def cost(self, call: RelayCall) -> str:
        return shown.money(call.cost_usd or 0.0, call.cost_kind)


@admin.register(Decision)
class DecisionAdmin(Evidence):
    list_display = ["at", "subject", "verdict", "actor", "account", "via"]
    list_filter = ["verdict", "via"]


@admin.register(AuditEvent)
class AuditEventAdmin(Evidence):
    list_display = ["number", "at", "action", "subject", "actor", "account", "why"]
    list_display_links = ["number"]
    list_filter = ["action"]
    list_select_related = ["actor"]
    search_fields = ["subject", "action", "actor__username", "account"]
    date_hierarchy = "at"

    @admin.display(description="reason")
    def why(self, event: AuditEvent) -> str:
        detail = event.detail if isinstance(event.detail, dict) else {}
        return visible(str(detail.get("reason", "")), limit=200)

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The list, and whether the chain still stands when that is asked for: it reads all."""
        verified = audit.verify() if request.GET.get("chain") == "verify" else None
        _without(request, "chain")
        asked = request.GET.copy()
        exports = []
        for kind, word in (("jsonl", "JSON lines"), ("csv", "CSV")):
            asked["format"] = kind
            exports.append((f"export/?{asked.urlencode()}", word))
        told = {"verified": verified, "exports": exports, "is_part": bool(request.GET)}
        return super().changelist_view(request, {**(extra_context or {}), **told})

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(require_safe(self.export))
        return [path("export/", view, name="runs_auditevent_export"), *super().get_urls()]

    def export(self, request: HttpRequest) -> HttpResponseBase:
        """The events of the list, all pages of it, each with its place in the chain."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        kind = request.GET.get("format", "jsonl")
        if kind not in audit_export.FORMATS:
            raise Http404
        _without(request, "format", "p", "o", "all")
        try:
            found = self.get_changelist_instance(request).get_queryset(request)
        except IncorrectLookupParameters:
            raise Http404 from None
        filters = {visible(name): visible(str(value)) for name, value in request.GET.items()}
        return StreamingHttpResponse(
            audit_export.written(found, kind, filters),
            content_type=audit_export.FORMATS[kind],
            headers={"Content-Disposition": f'attachment; filename="audit.{kind}"'},
        )
