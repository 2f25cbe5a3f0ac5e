"""Where each page lives."""

from __future__ import annotations

from django.apps import apps
from django.contrib import admin
from django.urls import include, path

from sanduk_site import (
    doctor_pages,
    first_run_pages,
    health,
    home,
    key_pages,
    notice_pages,
    pages,
    security_pages,
    session_pages,
    setup,
    sharing_pages,
)
from sanduk_site.api_access import VERSION

admin.autodiscover()
# whoever may add a schedule of the queue's there may have any function called with any argument
for model in apps.get_app_config("django_q").get_models():
    if admin.site.is_registered(model):
        admin.site.unregister(model)

handler400 = "sanduk_site.refusing.bad_request"
urlpatterns = [
    path("", home.home, name="home"),
    path("waiting", home.waiting, name="waiting"),
    path("spend/", pages.spend, name="spend"),
    path("system/", pages.system, name="system"),
    path("system/doctor", doctor_pages.look, name="system-doctor"),
    path("runs/<slug:uid>/allow/<int:sequence>", security_pages.allow, name="run-allow"),
    path(
        "runs/<slug:uid>/allow/<int:sequence>/now", security_pages.allow_now, name="run-allow-now"
    ),
    path("assistants/<slug:name>/security", security_pages.security, name="assistant-security"),
    path(
        "assistants/<slug:name>/security/say",
        security_pages.say,
        name="assistant-security-say",
    ),
    path("assistants/<slug:name>/share", sharing_pages.share, name="assistant-share"),
    path("", include("runs.urls")),
    path("", include("assistants.urls")),
    path("", include("changes.urls")),
    path("admin/", admin.site.urls),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("setup/<str:token>", setup.setup, name="setup"),
    path("first-run", first_run_pages.start, name="first-run"),
    path("first-run/<str:name>", first_run_pages.step, name="first-run-step"),
    path("keys", key_pages.listed, name="own-keys"),
    path("keys/keep", key_pages.keep, name="own-key"),
    path("notices", notice_pages.notices, name="notices"),
    path(f"api/{VERSION}/", include("sanduk_site.api")),
    path("sessions/terminals", session_pages.new_terminal, name="terminal-new"),
    path("sessions/terminals/<int:pk>/end", session_pages.end_terminal, name="terminal-end"),
    path("sessions", session_pages.sessions, name="sessions"),
    path("sessions/end-others", session_pages.end_others, name="session-end-others"),
    path("sessions/<int:pk>/end", session_pages.end, name="session-end"),
]
