"""Runs in Django's admin: evidence, to be read and never edited."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.db import models
from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpRequest

from runs import shown
from runs.models import AuditEvent, Decision, RelayCall, Run, RunEvent

if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin[Any]
else:
    ModelAdmin = admin.ModelAdmin


PRICED = ("exact", "reported")


class Evidence(ModelAdmin):
    """Nobody adds, changes or deletes a record of what happened, superusers included."""

    actions = None

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        return False


@admin.register(Run)
class RunAdmin(Evidence):
    list_display = [
        "uid", "state", "outcome", "agent", "provider", "mode", "spent", "trigger", "created_at",
        "ended_at",
    ]  # fmt: skip
    list_filter = ["state", "outcome", "agent", "provider", "mode", "trigger"]
    search_fields = ["uid", "task", "workspace"]
    date_hierarchy = "created_at"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        calls = RelayCall.objects.filter(run=OuterRef("pk"))
        kinds = {f"has_{kind}": Exists(calls.filter(cost_kind=kind)) for kind in PRICED}
        found: QuerySet[Any] = super().get_queryset(request)
        priced: QuerySet[Any] = found.annotate(**kinds)
        return priced

    @admin.display(ordering="spent_usd")
    def spent(self, run: Run) -> str:
        kinds = {kind for kind in PRICED if getattr(run, f"has_{kind}")}
        return shown.spent(run, shown.kind_of(run, kinds))


@admin.register(RunEvent)
class RunEventAdmin(Evidence):
    list_display = ["run", "sequence", "at", "kind", "text"]
    list_filter = ["kind"]
    list_select_related = ["run"]
    search_fields = ["run__uid"]


@admin.register(RelayCall)
class RelayCallAdmin(Evidence):
    list_display = [
        "run", "sequence", "method", "path", "status", "model_asked", "input_tokens",
        "output_tokens", "cost", "refusal",
    ]  # fmt: skip
    list_filter = ["protocol", "completed", "cost_kind"]
    list_select_related = ["run"]
    search_fields = ["run__uid", "model_asked"]

    @admin.display(ordering="cost_usd")
    def cost(self, call: RelayCall) -> str:
        return shown.money(call.cost_usd or 0.0, call.cost_kind)


@admin.register(Decision)
class DecisionAdmin(Evidence):
    list_display = ["at", "subject", "verdict", "actor", "account", "via"]
    list_filter = ["verdict", "via"]


@admin.register(AuditEvent)
class AuditEventAdmin(Evidence):
    list_display = ["at", "action", "subject", "actor", "account"]
    list_filter = ["action"]
    search_fields = ["subject"]
