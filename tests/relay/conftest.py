from __future__ import annotations

from pathlib import Path

import pytest

import relay.upstream
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


@pytest.fixture
def fresh_tls_context(monkeypatch):
    """The authorities of the environment are read anew, and there are none but the system's."""
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    relay.upstream.tls_context.cache_clear()
    yield
    relay.upstream.tls_context.cache_clear()


@pytest.fixture
def trusting(certificate, fresh_tls_context, monkeypatch) -> Path:
    """`certificate`, which the relay's client trusts."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate / "cert.pem"))
    return certificate
