"""Where each page lives."""

from __future__ import annotations

from django.apps import apps
from django.contrib import admin
from django.urls import path

from sanduk_site import home

admin.autodiscover()
# whoever may add a schedule of the queue's there may have any function called with any argument
for model in apps.get_app_config("django_q").get_models():
    if admin.site.is_registered(model):
        admin.site.unregister(model)

urlpatterns = [
    path("", home.home, name="home"),
    path("waiting", home.waiting, name="waiting"),
    path("admin/", admin.site.urls),
]
