"""Addresses of the pages of changes."""

from __future__ import annotations

from django.urls import path

from changes.views import commits, files, gate, listing, since, skills, start

urlpatterns = [
    path("changes/", listing.listed, name="changes"),
    path("changes/new", start.new, name="change-new"),
    path("changes/start", start.start, name="change-start"),
    path("changes/skills/", skills.listed, name="skills"),
    path("changes/skills/<int:pk>/decide", skills.decide, name="skill-decide"),
    path("changes/batch/<slug:uid>/", listing.batch, name="change-batch"),
    path("changes/<slug:uid>/", gate.change, name="change"),
    path("changes/<slug:uid>/decide", gate.decide, name="change-decide"),
    path("changes/<slug:uid>/test", gate.test, name="change-test"),
    path("changes/<slug:uid>/stop", gate.stop, name="change-stop"),
    path("changes/<slug:uid>/<int:attempt>/patch", files.patch, name="change-patch"),
    path("changes/<slug:uid>/<int:attempt>/file/<int:number>", files.one, name="change-file"),
    path(
        "changes/<slug:uid>/<int:attempt>/since/<int:earlier>/", since.listed, name="change-since"
    ),
    path(
        "changes/<slug:uid>/<int:attempt>/since/<int:earlier>/file/<int:number>",
        since.one,
        name="change-since-file",
    ),
    path(
        "changes/<slug:uid>/<int:attempt>/commit/<int:commit>/", commits.one, name="change-commit"
    ),
    path(
        "changes/<slug:uid>/<int:attempt>/commit/<int:commit>/patch",
        commits.patch,
        name="change-commit-patch",
    ),
    path("changes/<slug:uid>/artifacts/<slug:artifact>", files.artifact, name="change-artifact"),
]
