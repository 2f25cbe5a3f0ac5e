"""Changes in Django's admin: evidence, to be read and never edited."""

from __future__ import annotations

from django.contrib import admin
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.html import format_html

from changes.models import Change, RiskFlag, Skill, TestRun
from runs.admin import Evidence, VisibleValues
from runs.templatetags import evidence
from runs.visible import visible

BEGINS = 120  # characters of a text in a list


@admin.register(Change)
class ChangeAdmin(Evidence):
    list_display = ["page", "standing", "repository", "asked", "agent_name", "created_at"]
    list_display_links = None
    list_select_related = ["repository"]
    list_filter = ["state", "kind", ("agent", VisibleValues), "created_at"]
    search_fields = ["uid", "task", "batch", "landed_commit"]
    show_full_result_count = False

    @admin.display(description="change", ordering="uid")
    def page(self, change: Change) -> str:
        return format_html('<a href="{}">{}</a>', reverse("change", args=[change.uid]), change.uid)

    @admin.display(description="state", ordering="state")
    def standing(self, change: Change) -> str:
        return render_to_string("site/_chip.html", evidence.chip(change.state))

    @admin.display(description="task")
    def asked(self, change: Change) -> str:
        return visible(change.task, limit=BEGINS)

    @admin.display(description="agent", ordering="agent")
    def agent_name(self, change: Change) -> str:
        return visible(change.agent, limit=60)


@admin.register(RiskFlag)
class RiskFlagAdmin(Evidence):
    list_display = ["of", "category", "severity", "where", "why"]
    list_select_related = ["attempt__change"]
    list_filter = ["severity", "category"]
    search_fields = ["attempt__change__uid", "path"]
    show_full_result_count = False

    @admin.display(description="change")
    def of(self, flag: RiskFlag) -> str:
        return f"{flag.attempt.change.uid}, attempt {flag.attempt.number}"

    @admin.display(description="path")
    def where(self, flag: RiskFlag) -> str:
        return visible(flag.path, limit=BEGINS) + (f":{flag.line}" if flag.line else "")

    @admin.display(description="reason")
    def why(self, flag: RiskFlag) -> str:
        return visible(flag.reason, limit=BEGINS)


@admin.register(TestRun)
class TestRunAdmin(Evidence):
    list_display = ["of", "standing", "ran", "exit_code", "started_at", "ended_at"]
    list_select_related = ["attempt__change"]
    list_filter = ["outcome", "started_at"]
    search_fields = ["attempt__change__uid", "digest"]
    show_full_result_count = False

    @admin.display(description="change")
    def of(self, test: TestRun) -> str:
        return f"{test.attempt.change.uid}, attempt {test.attempt.number}"

    @admin.display(description="outcome", ordering="outcome")
    def standing(self, test: TestRun) -> str:
        return (test.outcome or "running").replace("_", " ")

    @admin.display(description="command")
    def ran(self, test: TestRun) -> str:
        return visible(test.command, limit=BEGINS)


@admin.register(Skill)
class SkillAdmin(Evidence):
    list_display = ["name", "version", "repository", "state", "says", "decided", "state_at"]
    list_select_related = ["repository"]
    list_filter = ["state"]
    search_fields = ["name", "sha256"]
    show_full_result_count = False

    @admin.display(description="description")
    def says(self, skill: Skill) -> str:
        return visible(skill.description, limit=BEGINS)

    @admin.display(description="by", ordering="decided_by")
    def decided(self, skill: Skill) -> str:
        return visible(skill.decided_by, limit=60)
