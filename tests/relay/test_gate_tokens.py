"""How the run token is compared, and targets that contradict their Host."""

from __future__ import annotations

import hmac

import pytest

from relay import admission
from tests.relay.stand import OK, TOKEN, request, standing, status_of

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("shown", ["x", TOKEN[:-1] + "x", "x" + TOKEN[1:], TOKEN + "x", ""])
async def test_a_token_is_compared_whole_and_in_constant_time(shown: str, monkeypatch):
    """How far a guess is right must not show in the time it takes to say no."""
    compared = []

    def comparing(one: bytes, other: bytes) -> bool:
        compared.append((one, other))
        return hmac.compare_digest(one, other)

    class Watched:
        compare_digest = staticmethod(comparing)

    async with standing(OK) as stand:
        monkeypatch.setattr(admission, "hmac", Watched)
        asked = request("/v1/messages", b"{}").replace(TOKEN.encode(), shown.encode())
        assert status_of(await stand.raw(asked)) == 401
        assert stand.provider.seen == []
    assert compared == [(shown.encode(), TOKEN.encode())]


@pytest.mark.parametrize("method", ["POST", "GET"])
@pytest.mark.parametrize("scheme", ["http", "https", "HTTP"])
async def test_an_absolute_target_that_contradicts_its_host_reaches_nobody(method, scheme):
    async with standing(OK) as stand:
        for host in ("evil.example", "api.anthropic.com", "localhost"):
            asked = request(f"{scheme}://{host}/v1/messages", b"{}", method=method)
            assert status_of(await stand.prod(asked)) in (400, 403, 404)
        assert stand.provider.seen == []
