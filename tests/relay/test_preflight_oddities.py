"""A provider that answers the key check with what is no HTTP."""

from __future__ import annotations

import pytest

import relay
from relay.endpoints import Endpoint
from relay.preflight import check_key
from tests.relay.stand import Provider, saying_and_closing

pytestmark = pytest.mark.anyio
KEY = "sk-very-secret"
ODD = [
    b"",
    b"garbage\r\n\r\n",
    b"HTTP/1.1 abc OK\r\n\r\n",
    b"HTTP/9.9 200 OK\r\n\r\n",
    b"HTTP/1.1 200\xff\xfe OK\r\ncontent-length: zwei\r\n\r\n",
    b"\xff" * 100_000,
    b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n{}",
    b"\x15\x03\x03\x00\x02\x02\x28",
]


@pytest.mark.parametrize("answer", ODD, ids=range(len(ODD)))
async def test_an_answer_that_is_no_http_is_told_in_words(answer: bytes):
    """The first program ended in a traceback."""
    provider = Provider(saying_and_closing(answer))
    async with provider.running():
        upstream = Endpoint("http", "127.0.0.1", provider.port)
        credential = relay.Credential(KEY, "THE_KEY")
        found = await check_key(relay.get_provider("openai"), credential, upstream=upstream)

    assert (found.kind, found.passes) == ("unreachable", False)
    assert found.text
    assert KEY not in found.text
    assert found.text.isprintable()


@pytest.mark.parametrize("key", ["sk-schlüssel", "sk-a\nb", "sk-\x00", "clé"])
async def test_a_key_that_no_header_takes_is_no_credential(key: str):
    with pytest.raises(relay.InvalidCredential) as refused:
        relay.Credential(key, "THE_KEY")

    assert key not in str(refused.value)
