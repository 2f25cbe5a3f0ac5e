"""A pytest plugin: tables are emptied row by row. TRUNCATE makes the files of all of them anew."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture(scope="session", autouse=True)
def _emptied_by_delete() -> None:
    from django.db import connection

    def sql_flush(self: Any, style: Any, tables: list[str], **_: bool) -> list[str]:
        # in one transaction, at whose end what rows refer to is looked at
        return [f"DELETE FROM {self.quote_name(table)}" for table in tables]  # noqa: S608

    type(connection.ops).sql_flush = sql_flush
