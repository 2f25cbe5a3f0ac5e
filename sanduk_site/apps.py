from typing import Any

from django.apps import AppConfig
from django.contrib.admin.apps import SimpleAdminConfig
from django.db.models.signals import post_migrate


def _make_groups(using: str, **_: Any) -> None:
    from django.db import connections
    from django.db.migrations.executor import MigrationExecutor

    from sanduk_site import roles

    executor = MigrationExecutor(connections[using])
    # on the way to an older version, or from one, rights are not there yet
    if not executor.migration_plan(executor.loader.graph.leaf_nodes()):
        roles.make_groups()


class SandukSiteConfig(AppConfig):
    name = "sanduk_site"
    default = True

    def ready(self) -> None:
        from sanduk_site import checks, login_audit, sessions  # noqa: F401 - registers them

        post_migrate.connect(_make_groups, sender=self)


class AdminConfig(SimpleAdminConfig):
    """The admin with our frame. Its pages are imported where addresses are, and nowhere else."""

    default_site = "sanduk_site.site.SandukSite"
