"""What every test may use."""

from __future__ import annotations

import resource

import pytest


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session", autouse=True)
def _many_open_files() -> None:
    """Some tests hold thousands of connections; a normal user's soft limit is often 1024."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    enough = hard if hard != resource.RLIM_INFINITY and hard < 65536 else 65536
    resource.setrlimit(resource.RLIMIT_NOFILE, (enough, hard))
