"""What somebody sees whose request cannot be taken at all."""

from __future__ import annotations

from django.conf import settings
from django.contrib import admin
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse
from django.views.defaults import bad_request as plain

from runs.pages import page


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Of a form that is too large, how much fits; everything else is the visitor's mistake."""
    if not isinstance(exception, RequestDataTooBig) or not admin.site.has_permission(request):
        return plain(request, exception)
    context = {"most": settings.DATA_UPLOAD_MAX_MEMORY_SIZE}
    title = "That was too much"
    return page(request, "site/too_big.html", context, title=title, section="", status=413)
