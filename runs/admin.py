"""Runs in Django's admin: evidence, to be read and never edited."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.db import models
from django.http import HttpRequest

from runs.models import AuditEvent, Decision, RelayCall, Run, RunEvent

if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin[Any]
else:
    ModelAdmin = admin.ModelAdmin


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
        "uid", "state", "outcome", "agent", "provider", "mode", "trigger", "created_at", "ended_at",
    ]  # fmt: skip
    list_filter = ["state", "outcome", "agent", "provider", "mode", "trigger"]
    search_fields = ["uid", "task", "workspace"]
    date_hierarchy = "created_at"


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
        "output_tokens", "refusal",
    ]  # fmt: skip
    list_filter = ["protocol", "completed"]
    list_select_related = ["run"]
    search_fields = ["run__uid", "model_asked"]


@admin.register(Decision)
class DecisionAdmin(Evidence):
    list_display = ["at", "subject", "verdict", "actor", "account", "via"]
    list_filter = ["verdict", "via"]


@admin.register(AuditEvent)
class AuditEventAdmin(Evidence):
    list_display = ["at", "action", "subject", "actor", "account"]
    list_filter = ["action"]
    search_fields = ["subject"]
