"""The probes, as they are tried in a box: this package runs there, with the image's own Python.

It imports nothing of ours, is given its order as a JSON file, and prints one line of JSON:
{probe: {"reached": [what got through, in words], "untried": why or "", ...}}. An empty `reached`
is what is hoped for. Nothing it does can harm a host whose boundary does not hold: it reads,
connects to what was set up for it, and writes marks into what was made for it.
"""

from __future__ import annotations

import json
from typing import Any

from .box import Box, Untried
from .files import clone, host_secrets, push, repository
from .hostile import hostile
from .kernel import devices, limits, privileges, seccomp
from .model import agent, allowed_call, base_url, browser, browser_reach, key, streaming
from .network import (
    door_allows,
    door_refuses,
    engine_socket,
    exfiltration,
    gateway,
    names,
    neighbour,
)

PROBES = {
    function.__name__: function
    for function in (
        host_secrets, repository, push, exfiltration, names, engine_socket, privileges, seccomp,
        devices, limits, clone, agent, key, base_url, allowed_call, streaming, gateway, neighbour,
        browser, browser_reach, door_refuses, door_allows, hostile,
    )
}  # fmt: skip


def main(order_file: str) -> None:
    order = json.load(open(order_file))
    box = Box(order)
    found: dict[str, Any] = {}
    for name in order["probes"]:
        reached, untried = [], ""
        try:
            reached = PROBES[name](box)
        except Untried as exc:
            untried = str(exc)
        except Exception as exc:  # a probe that fails by itself proves nothing
            untried = f"the probe itself failed: {type(exc).__name__}: {exc}"
        found[name] = {"reached": reached, "untried": untried, **box.extra.get(name, {})}
    found["box"] = {"whole": box.whole}
    print("\n" + order["nonce"] + json.dumps(found), flush=True)
