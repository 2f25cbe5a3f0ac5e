"""Addresses of the pages of runs."""

from __future__ import annotations

from django.urls import path

from runs import image_pages, views

urlpatterns = [
    path("runs/new", views.new, name="run-new"),
    path("runs/start", views.start, name="run-start"),
    path("images/", image_pages.listed, name="images"),
    path("images/<slug:name>/", image_pages.recipe, name="recipe"),
    path("runs/<slug:uid>/", views.run, name="run"),
    path("runs/<slug:uid>/report", views.report, name="run-report"),
    path("runs/<slug:uid>/events", views.events, name="run-events"),
    path("runs/<slug:uid>/stop", views.stop, name="run-stop"),
    path("runs/<slug:uid>/again", views.repeat, name="run-again"),
]
