"""The admin's own lists with the name of its column on each value, for where no head is seen."""

from __future__ import annotations

from typing import Any

from django import template
from django.contrib.admin.templatetags import admin_list
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.text import capfirst

register = template.Library()


@register.inclusion_tag("admin/change_list_results.html")
def labelled_list(changelist: Any) -> dict[str, Any]:
    """What the admin's `result_list` shows."""
    context: dict[str, Any] = admin_list.result_list(changelist)
    names = [capfirst(header["text"]) for header in context["result_headers"]]
    for row in context["results"]:
        row[:] = [_labelled(cell, name) for cell, name in zip(row, names, strict=True)]
    return context


def _labelled(cell: str, name: str) -> SafeString:
    """A cell, which begins with its tag, with an attribute more."""
    tag = cell[:3]
    if tag not in ("<td", "<th"):
        return mark_safe(cell)  # noqa: S308 - as the admin made it
    label = format_html(' data-label="{}"', name)
    return mark_safe(f"{tag}{label}{cell[3:]}")  # noqa: S308 - the admin's, and an escaped name
