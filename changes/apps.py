from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any

from django.apps import AppConfig

if TYPE_CHECKING:
    from runs.news import Asked, News


class ChangesConfig(AppConfig):
    name = "changes"

    def ready(self) -> None:
        from runs import news, purposes
        from runs.signals import looked

        looked.connect(_look, dispatch_uid="changes")
        purposes.register("changes", _purposes)
        news.register("changes", _news)


def _look(**told: Any) -> None:
    from changes import reconciling  # not before it is needed: pages load this app too

    reconciling.look(**told)


def _purposes(uids: Collection[str]) -> dict[str, str]:
    from changes.purposes import of_runs

    return of_runs(uids)


def _news(asked: Asked) -> Iterable[News]:
    from changes import news

    return news.of(asked)
