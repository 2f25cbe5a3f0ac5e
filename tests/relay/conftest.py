from __future__ import annotations

from pathlib import Path

import pytest

from tests.relay.certificates import make_certificate


@pytest.fixture(
    scope="session",
    params=[
        pytest.param(("asyncio", {"use_uvloop": False}), id="asyncio"),
        pytest.param(("asyncio", {"use_uvloop": True}), id="uvloop"),
    ],
)
def anyio_backend(request):
    return request.param


@pytest.fixture(scope="session")
def certificate(tmp_path_factory) -> Path:
    """A certificate of this machine and of two hosts that resolve nowhere."""
    directory = tmp_path_factory.mktemp("tls")
    return make_certificate(directory, "localhost", "files.vendor.test", "api.vendor.test")
