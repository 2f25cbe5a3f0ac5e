"""Docker, and what is around it, with one protection taken away: engines for the boundary suite.

`sanduk doctor --boundary --engine tests.engine.weakened:NAME` uses one in the suite's process and
in those of its boxes. What is no engine's matter is taken away while the class is made.
"""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import relay
from changes import artifacts, tree
from runs import rules, seal, starting
from runs.engines import cli
from runs.engines.base import LABEL_ROLE, ContainerSpec, EngineFacts, Mount
from runs.engines.docker import Docker
from runs.supervise import Supervision
from sanduk_site.boundary import ground
from sanduk_site.boundary.prober import Prober

KEY = "BOUNDARY_KEY"


class _Weakened(Docker):
    """Finds itself usable without asking: the door it goes by is docker's."""

    async def create(self, spec: ContainerSpec) -> str:
        role = spec.labels.get(LABEL_ROLE)
        changed = self.of_agent(spec) if role in ("agent", "shell") else self.of_link(spec)
        before = cli.create_arguments
        cli.create_arguments = lambda *given, **named: self.words(  # type: ignore[assignment]
            before(*given, **named), role in ("agent", "shell")
        )
        try:
            return await super().create(changed)
        finally:
            cli.create_arguments = before

    def of_agent(self, spec: ContainerSpec) -> ContainerSpec:
        return spec

    def of_link(self, spec: ContainerSpec) -> ContainerSpec:
        return spec

    def words(self, words: list[str], of_agent: bool) -> list[str]:
        return words


def place_of(spec: ContainerSpec) -> Path:
    """The directory in which the suite has all it made."""
    (work,) = [mount.source for mount in spec.mounts if mount.target == "/work"]
    return Path(work).parent


def without(words: list[str], *taken: str) -> list[str]:
    """The words without these options and their values."""
    kept, skip = [], False
    for word, value in zip(words, [*words[1:], ""], strict=True):
        if skip:
            skip = False
        elif word in taken or f"{word} {value}" in taken:
            skip = True
        else:
            kept.append(word)
    return kept


def unmounted(spec: ContainerSpec, *targets: str) -> tuple[Mount, ...]:
    return tuple(mount for mount in spec.mounts if mount.target not in targets)


class HostFiles(_Weakened):
    """The box gets the directory with the repository and the secret, where it lies on the host."""

    def of_agent(self, spec: ContainerSpec) -> ContainerSpec:
        place = place_of(spec)
        return replace(spec, mounts=(*spec.mounts, Mount(str(place), str(place), read_only=False)))


class Bridged(_Weakened):
    """The link has the engine's usual network, and the seal's judge sees no hole in it."""

    def __init__(self) -> None:
        super().__init__()
        judge = seal.judge
        seal.judge = lambda found, *, mode: replace(judge(found, mode=mode), holes=())

    def of_link(self, spec: ContainerSpec) -> ContainerSpec:
        return replace(spec, network="default")


class Loose(_Weakened):
    """Names, an engine's socket, rights, filter, devices, limits, agent and key: all let go."""

    def of_agent(self, spec: ContainerSpec) -> ContainerSpec:
        place = place_of(spec) / f"loose-{os.getpid()}"
        place.mkdir(exist_ok=True)
        decoy = place / "decoy.sock"
        if not decoy.exists():
            socket.socket(socket.AF_UNIX).bind(str(decoy))
        (place / "resolv.conf").write_text("nameserver 192.0.2.53\noptions timeout:1 attempts:1\n")
        (place / "hosts").write_text("127.0.0.1 localhost host.docker.internal\n")
        (place / "empty").write_text("")
        mounts = (
            *unmounted(spec, "/etc/resolv.conf", "/etc/hosts"),
            Mount(str(decoy), "/var/run/docker.sock"),
            Mount(str(place / "resolv.conf"), "/etc/resolv.conf"),
            Mount(str(place / "hosts"), "/etc/hosts"),
            Mount(str(place / "empty"), "/usr/local/bin/sanduk-pi"),
        )
        key = os.environ.get(KEY, "")
        return replace(spec, mounts=mounts, env={**spec.env, "LEAKED": key})

    def words(self, words: list[str], of_agent: bool) -> list[str]:
        if not of_agent:
            return words
        seccomp = next(word for word in words if word.startswith("seccomp="))
        loose = without(
            words, "--cap-drop", "--pids-limit", "--memory", "--memory-swap",
            "--security-opt no-new-privileges", f"--security-opt {seccomp}",
        )  # fmt: skip
        return [*loose, "--security-opt", "seccomp=unconfined", "--device", "/dev/null:/dev/odd"]


class Direct(_Weakened):
    """The model's address is a provider's, not the relay's."""

    def __init__(self) -> None:
        super().__init__()
        launch = Prober.launch

        def direct(self: Prober, *given: Any, **named: Any) -> Any:
            found = launch(self, *given, **named)
            return replace(found, env={**found.env, "RELAY_URL": "http://192.0.2.1:80/v1"})

        Prober.launch = direct  # type: ignore[method-assign]


class _Collected:
    """A relay that says nothing before it has all of an answer."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body: list[bytes] = []

        async def collect(message: Any) -> None:
            if message["type"] != "http.response.body":
                await send(message)
                return
            body.append(message.get("body", b""))
            if not message.get("more_body"):
                await send({**message, "body": b"".join(body)})

        await self._app(scope, receive, collect)


class Collecting(_Weakened):
    """The relay does not stream; and the clone knows where it came from."""

    def __init__(self) -> None:
        super().__init__()
        serving, make = relay.serving, ground.make_clone
        starting.relay.serving = lambda app, *given: serving(_Collected(app), *given)

        def linked(here: ground.Ground, directory: Path) -> None:
            make(here, directory)
            config = directory / ".git" / "config"
            config.write_text(f'{config.read_text()}[remote "origin"]\n\turl = {here.repository}\n')

        ground.make_clone = linked


def _rules(change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    before = relay.egress_rules
    rules.relay.egress_rules = lambda hosts, **named: before(hosts, **change(named))


class OpenDoor(_Weakened):
    """The egress door lets through what is not on its list."""

    def __init__(self) -> None:
        super().__init__()
        _rules(lambda named: {**named, "mode": "warn"})


class ShutDoor(_Weakened):
    """The egress door connects nothing."""

    def __init__(self) -> None:
        super().__init__()
        _rules(lambda named: {**named, "admit": ()})


class Undying(_Weakened):
    """Nothing is ever removed or stopped."""

    async def remove(self, containers: Sequence[str]) -> None:
        """Leave them."""

    async def stop(self, container: str, *, grace_s: int) -> None:
        """Leave it."""

    def removal_script(self, labels: Mapping[str, str]) -> str:
        return "true"


class Trusting(_Weakened):
    """git runs in the clone, artifacts are read as they come, no certificate is kept."""

    def __init__(self) -> None:
        super().__init__()
        read = tree.read

        def naive(clone: Path, *given: Any, **named: Any) -> tree.Result:
            command = ["git", "-c", "safe.directory=*", "-C", str(clone), "status"]
            subprocess.run(command, check=False, capture_output=True, timeout=60)
            return read(clone, *given, **named)

        def take(clone: Path) -> tuple[artifacts.Taken, ...]:
            files = sorted((clone / ".sanduk" / "artifacts").iterdir())
            return tuple(
                artifacts.Taken(file.name, file.read_bytes()) for file in files if file.is_file()
            )

        tree.read, artifacts.take = naive, take
        Supervision._certificate = lambda self: {}  # type: ignore[method-assign]


BROWSER = """#!/bin/sh
for word; do case $word in --remote-debugging-port=*) port=${word#*=} ;; esac; last=$word; done
case $last in http*) exec curl -s --noproxy '*' -m 3 "$last" ;; esac
mkdir -p /tmp/b/json && echo '{"Browser": "Stand-in/1"}' >/tmp/b/json/version
cd /tmp/b && exec python3 -m http.server --bind 127.0.0.1 "$port"
"""


class WithBrowser(_Weakened):
    """Nothing is weaker: the image holds something that answers as a browser does."""

    script = BROWSER

    def of_agent(self, spec: ContainerSpec) -> ContainerSpec:
        file = place_of(spec) / f"chromium-{os.getpid()}"
        file.write_text(self.script)
        file.chmod(0o755)
        return replace(spec, mounts=(*spec.mounts, Mount(str(file), "/usr/local/bin/chromium")))


class WithLooseBrowser(WithBrowser, Bridged):
    """The browser has a network, does not answer in the box; beside it one outlives the box."""

    script = BROWSER.replace("cd /tmp/b &&", "exit 1;")

    def of_agent(self, spec: ContainerSpec) -> ContainerSpec:
        if found := list(place_of(spec).glob("private/canary-*")):
            word = f"boundary-browser-{found[0].name.partition('-')[2]}"
            subprocess.Popen(
                ["sh", "-c", f": {word}; sleep 300; exit"], start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
        return super().of_agent(spec)


class WithKernel(_Weakened):
    """An engine that says it is rootless and cannot limit: for the words of the posture."""

    async def ready(self) -> EngineFacts:
        return replace(await super().ready(), rootless=True, missing_limits=("swap",))
