"""Calls that cost something, and providers that answer when a test lets them."""

from __future__ import annotations

import asyncio
import json

from relay.prices import load_prices
from tests.relay.stand import plain, request, saying, sse

# One dollar for a million tokens, one for each output token: bodies weigh next to nothing.
PRICES = load_prices(
    "\n".join(
        f"[{provider}]\nm = {{ input = 1, output = 1_000_000, context = 1000 }}"
        for provider in ("anthropic", "openai", "openrouter", "openai-compat")
    )
)
PATHS = {
    "anthropic": "/v1/messages",
    "openai": "/v1/responses",
    "openrouter": "/api/v1/chat/completions",
    "openai-compat": "/v1/chat/completions",
}
STREAM = ("content-type: text/event-stream",)


def used(provider: str, output: int | None, **more) -> dict:
    """An answer of one million tokens in (a dollar) and so many out."""
    counts = {"input_tokens": 1_000_000, "output_tokens": output}
    if provider in ("openrouter", "openai-compat"):
        counts = {"prompt_tokens": 1_000_000, "completion_tokens": output}
    return {"model": "m", "usage": {**counts, **more}}


def replying(body: dict | bytes, status: str = "200 OK"):
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return saying(plain(content, "content-type: application/json", status=status))


def asking(output: int | None = 1, **more) -> dict:
    return {"model": "m", "max_tokens": output, "max_output_tokens": output, **more}


START = {"type": "message_start", "message": used("anthropic", 1)}
DELTA = {"type": "message_delta", "usage": {"output_tokens": 2}}


class Held:
    """A provider that answers each call when it is told to."""

    def __init__(self, body: bytes) -> None:
        self.body = body
        self.arrived = 0
        self.changed = asyncio.Event()
        self.go_on = asyncio.Semaphore(0)

    async def __call__(self, seen, writer) -> None:
        self.arrived += 1
        self.changed.set()
        await self.go_on.acquire()
        writer.write(self.body)

    async def until(self, number: int) -> None:
        async with asyncio.timeout(5):
            while self.arrived < number:
                self.changed.clear()
                await self.changed.wait()


def held(output: int = 2) -> Held:
    content = json.dumps({"model": "m", "usage": {"input_tokens": 0, "output_tokens": output}})
    return Held(plain(content.encode(), "content-type: application/json"))


async def settled() -> None:
    """Long enough for a call that may go to reach the provider."""
    await asyncio.sleep(0.1)


async def at_once(
    stand, provider: Held, calls: int, *, going: int, path: str = "/v1/messages", **request
) -> list[int]:
    """Make calls together, of which exactly so many reach the provider before it answers one.

    Then the provider answers them all. Returns every status, in order of size.
    """
    tasks = [asyncio.create_task(stand.post(path, **request)) for _ in range(calls)]
    await provider.until(going)
    await settled()
    assert provider.arrived == going
    for _ in tasks:
        provider.go_on.release()
    return sorted([answer.status_code for answer in await asyncio.gather(*tasks)])


def slowly(go_on: asyncio.Event):
    """A stream whose end comes when it is allowed to."""

    async def answer(seen, writer):
        first, last = sse(START), sse({"type": "message_delta", "usage": {"output_tokens": 5}})
        length = f"content-length: {len(first) + len(last)}"
        head = f"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n{length}\r\n\r\n"
        writer.write(head.encode() + first)
        await writer.drain()
        await go_on.wait()
        writer.write(last)

    return answer


async def left_in_the_middle(stand, output: int) -> None:
    reader, writer = await stand.connect()
    writer.write(request(body=json.dumps(asking(output)).encode()))
    await reader.readuntil(b"message_start")
    writer.transport.abort()
    await asyncio.sleep(0.05)
