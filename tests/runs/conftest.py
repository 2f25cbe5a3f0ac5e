"""A state directory of its own for each test, and none of the tester's keys."""

from __future__ import annotations

from pathlib import Path

import pytest

from relay import get_provider, provider_names


@pytest.fixture(autouse=True)
def state(tmp_path: Path, settings, monkeypatch: pytest.MonkeyPatch) -> Path:
    settings.SANDUK_HOME = tmp_path / "state"
    for name in provider_names():
        if variable := get_provider(name).key_env:
            monkeypatch.delenv(variable, raising=False)
            monkeypatch.delenv(f"{variable}_FILE", raising=False)
    return settings.SANDUK_HOME
