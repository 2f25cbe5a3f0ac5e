"""A Chromium for a module's tests, and sites for it to look at."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser.going import GoingSite, going_site, going_site_with_engine
from tests.engine.running import docker_ready

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from tests.browser.visitor import Visits

__all__ = ["docker_ready"]


class WithoutPlaywright(pytest.Module):
    """A module that cannot be imported here."""

    def collect(self) -> list[pytest.Item]:
        pytest.skip("no Playwright here: scripts/browser-up installs it", allow_module_level=True)


def pytest_pycollect_makemodule(
    module_path: Path, parent: pytest.Collector
) -> pytest.Module | None:
    if find_spec("playwright") is not None:
        return None
    return WithoutPlaywright.from_parent(parent, path=module_path)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """Ended with its module: it keeps an event loop in this thread, where others need theirs."""
    from tests.browser.visitor import chromium_that_starts

    with chromium_that_starts() as browser:
        yield browser


@pytest.fixture(scope="session")
def site() -> Iterator[GoingSite]:
    """A site that starts no container, with an administrator; shared, so rows only come to it."""
    with tempfile.TemporaryDirectory(prefix="sk-") as folder, going_site(Path(folder)) as going:
        yield going


@pytest.fixture(scope="session")
def site_with_engine(docker_ready: Path) -> Iterator[GoingSite]:
    """A site with its worker on Docker, as new: nobody has opened its link yet."""
    with going_site_with_engine(docker_ready) as going:
        yield going


@pytest.fixture
def visits(chromium: Browser) -> Iterator[Visits]:
    """visits(site, …) opens a browser of its own; what its pages did wrong fails the test."""
    from tests.browser.visitor import Visits

    made = Visits(chromium)
    try:
        yield made
        made.check()
    finally:
        made.close()
