from django.apps import AppConfig


class SandukSiteConfig(AppConfig):
    name = "sanduk_site"
