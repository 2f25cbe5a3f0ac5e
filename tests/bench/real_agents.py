"""Whole sealed runs of real agents beside the same CLI run bare.

`python -m tests.bench agents`

Bare: the same image and arguments, one container, look-ups failing at once, the rehearsal model on
the gateway of an internal network.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import django

import recipes
import relay
from runs.agents import get_agent
from runs.agents.base import Request
from tests.bench.engine_side import HARDENED, internal_network
from tests.bench.rounds import Visit, measure
from tests.bench.setting import Setting

ROUNDS = 5
AGENTS = ("claude", "codex", "pi")
TASK = "look around"
TARGET = 1.3


def measure_agents(setting: Setting) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "sanduk_site.settings")
    django.setup()
    root, rounds = setting.root, min(ROUNDS, setting.effort.run_rounds)
    setting.report.section("whole sealed runs of real agents, beside the same agent bare")
    (root / "resolv.conf").write_text("nameserver 127.0.0.1\n")
    with internal_network() as net, model_at(net[1]) as port:
        for name in AGENTS:
            workspace = root / name
            workspace.mkdir()
            os.chown(workspace, 1000, 1000)
            times = measure(
                {
                    "sealed": sealed(name, root, workspace),
                    "bare": bare(name, net[0], f"http://{net[1]}:{port}", root, workspace),
                },
                rounds,
            )
            setting.report.figure(f"{name}, s (medians of {rounds})", times)
            ratio = times["sealed"] / times["bare"]
            setting.report.target(f"{name}: whole run, sealed / bare", ratio, TARGET)


def sealed(name: str, root: Path, workspace: Path) -> Visit:
    environment = {**os.environ, "SANDUK_HOME": str(root / "home")}
    command = [
        str(Path(sys.executable).with_name("sanduk")), "run", "-q", "--agent", name,
        "--provider", "rehearsal", "-w", str(workspace), TASK,
    ]  # fmt: skip

    def run() -> None:
        subprocess.run(command, env=environment, check=True, capture_output=True)

    return run


def bare(name: str, network: str, address: str, root: Path, workspace: Path) -> Visit:
    agent = get_agent(name)
    recipe = recipes.load(agent.recipe)
    image = recipes.image_tag(recipes.render(recipe), {})
    from runs.report import with_instruction  # needs Django's apps, which main() sets up

    task = with_instruction(TASK)
    provider = relay.get_provider("rehearsal")
    launch = agent.launch(Request(), provider, task=task, root=address, credential="bench")
    variables = [word for pair in launch.env.items() for word in ("-e", "=".join(pair))]
    command = [
        "docker", "run", "--rm", "-i", "--network", network, *HARDENED, "--user", "1000:1000",
        "--group-add", "0", "-e", f"HOME={recipe.home}", *variables,
        "--mount", f"type=bind,src={workspace},dst=/work", "--workdir", "/work",
        "--mount", f"type=bind,src={root / 'resolv.conf'},dst=/etc/resolv.conf,readonly",
        image, *launch.argv,
    ]  # fmt: skip

    def run() -> None:
        subprocess.run(command, input=task.encode(), check=True, capture_output=True)

    return run


@contextlib.contextmanager
def model_at(address: str) -> Iterator[int]:
    """The rehearsal model on a free port of `address`, in a thread of its own."""
    listening = socket.create_server((address, 0))
    listening.setblocking(False)
    loop, stop = asyncio.new_event_loop(), asyncio.Event()

    async def serve() -> None:
        async with relay.serving(relay.create_rehearsal_app(), listening):
            await stop.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    try:
        yield listening.getsockname()[1]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()
