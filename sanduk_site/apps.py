from django.apps import AppConfig


class SandukSiteConfig(AppConfig):
    name = "sanduk_site"

    def ready(self) -> None:
        from sanduk_site import checks  # noqa: F401 - registers them
