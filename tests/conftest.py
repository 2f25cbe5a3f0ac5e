"""What every test may use."""

from __future__ import annotations

import resource
import signal

import pytest
from hypothesis import HealthCheck, settings

# how long an example takes says nothing of what is right: a machine may be busy
settings.register_profile("sanduk", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("sanduk")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session", autouse=True)
def _many_open_files() -> None:
    """Some tests hold thousands of connections; a normal user's soft limit is often 1024."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    enough = hard if hard != resource.RLIM_INFINITY and hard < 65536 else 65536
    resource.setrlimit(resource.RLIMIT_NOFILE, (enough, hard))


@pytest.fixture(scope="session", autouse=True)
def _signals_that_are_heard() -> None:
    """What a shell puts in the background ignores Ctrl-C, and so do its children."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
