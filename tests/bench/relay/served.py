"""The relay as a run serves it, in a process of its own.

    python -m tests.bench.relay.served --upstream URL
    python -m tests.bench.relay.served --upstream URL --time-starts N

The first prints its port as JSON and stays. The second prints how long it took to start one more
relay, N times over, and to end it, in seconds.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import socket
import time
from collections import deque

import uvloop

import relay
from relay.app import Relay
from relay.providers import with_upstream

CAP = 4096


def build(upstream: str, token: str) -> Relay:
    """A relay that has something to do: it caps each answer, meters it and files its record."""
    provider = with_upstream(relay.get_provider("openai-compat"), upstream)
    records: deque[relay.CallRecord] = deque(maxlen=1000)
    return relay.create_app(
        relay.Policy(provider, max_tokens_cap=CAP),
        relay.Credential("key"),
        token,
        relay.Ledger(on_call=records.append),
    )


async def serve(upstream: str, token: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as bound:
        bound.setblocking(False)
        async with relay.serving(build(upstream, token), bound):
            print(json.dumps({"port": bound.getsockname()[1]}), flush=True)
            await asyncio.Event().wait()


async def time_starts(upstream: str, token: str, count: int) -> dict[str, list[float]]:
    starts, ends = [], []
    for _ in range(count):
        began = time.perf_counter()
        bound = socket.create_server(("127.0.0.1", 0))
        bound.setblocking(False)
        async with relay.serving(build(upstream, token), bound):
            starts.append(time.perf_counter() - began)
            leaving = time.perf_counter()
        ends.append(time.perf_counter() - leaving)
    return {"start": starts, "end": ends}


def main() -> None:
    parser = argparse.ArgumentParser(description="The relay as a run serves it.")
    parser.add_argument("--upstream", required=True, metavar="URL")
    parser.add_argument("--time-starts", type=int, metavar="N")
    given = parser.parse_args()
    token = os.environ["BENCH_TOKEN"]
    if given.time_starts:
        print(json.dumps(uvloop.run(time_starts(given.upstream, token, given.time_starts))))
        return
    with contextlib.suppress(KeyboardInterrupt):
        uvloop.run(serve(given.upstream, token))


if __name__ == "__main__":
    main()
