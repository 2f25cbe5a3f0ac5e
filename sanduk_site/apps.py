from django.apps import AppConfig
from django.contrib.admin.apps import SimpleAdminConfig


class SandukSiteConfig(AppConfig):
    name = "sanduk_site"
    default = True

    def ready(self) -> None:
        from sanduk_site import checks  # noqa: F401 - registers them


class AdminConfig(SimpleAdminConfig):
    """The admin with our frame. Its pages are imported where addresses are, and nowhere else."""

    default_site = "sanduk_site.site.SandukSite"
