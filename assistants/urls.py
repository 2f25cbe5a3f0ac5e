"""Addresses of the pages of assistants and their outbox."""

from __future__ import annotations

from django.urls import path

from assistants.views import assistants, briefs, gate, memory, outbox

urlpatterns = [
    path("outbox/", outbox.listed, name="outbox"),
    path("outbox/filters", outbox.filters, name="outbox-filters"),
    path("outbox/reject", outbox.reject, name="outbox-reject"),
    path("outbox/<int:pk>/", gate.item, name="outbox-item"),
    path("outbox/<int:pk>/body", gate.body, name="outbox-body"),
    path("outbox/<int:pk>/decide", gate.decide, name="outbox-decide"),
    path("outbox/<int:pk>/deliver", gate.deliver, name="outbox-deliver"),
    path("assistants/", assistants.listed, name="assistants"),
    path("assistants/<slug:name>/", assistants.one, name="assistant"),
    path("assistants/<slug:name>/brief", briefs.brief, name="assistant-brief"),
    path("assistants/<slug:name>/tell", assistants.tell, name="assistant-tell"),
    path("assistants/<slug:name>/untell/<int:pk>", assistants.untell, name="assistant-untell"),
    path("assistants/<slug:name>/wake", assistants.wake, name="assistant-wake"),
    path("assistants/<slug:name>/switch", assistants.switch, name="assistant-switch"),
    path("memory/<int:pk>/", memory.snapshot, name="memory"),
    path("memory/<int:pk>/review", memory.review, name="memory-review"),
]
