from collections.abc import Collection
from typing import Any

from django.apps import AppConfig


class ChangesConfig(AppConfig):
    name = "changes"

    def ready(self) -> None:
        from runs import purposes
        from runs.signals import looked

        looked.connect(_look, dispatch_uid="changes")
        purposes.register("changes", _purposes)


def _look(**told: Any) -> None:
    from changes import reconciling  # not before it is needed: pages load this app too

    reconciling.look(**told)


def _purposes(uids: Collection[str]) -> dict[str, str]:
    from changes.purposes import of_runs

    return of_runs(uids)
