"""Docker Engine. Tried with a 20.10 daemon and a 28 client; flags chosen exist since 20.10."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import msgspec

from runs.engines import locality
from runs.engines.api import Answer, SocketApi, Unanswered, local_socket
from runs.engines.arguments import has_no_way_out, label_filters
from runs.engines.base import (
    ContainerRow,
    ContainerSpec,
    ContainerState,
    EngineError,
    EngineFacts,
    EngineUnavailable,
    ImageFacts,
)
from runs.engines.cli import CliEngine, decoded
from runs.engines.failures import (
    bad_docker_context,
    bad_docker_host,
    boot_id,
    docker_down,
    not_installed,
    path_exists,
)
from runs.engines.process import Completed

DEFAULT_ENDPOINT = "unix:///var/run/docker.sock"
INFO_S = 10.0
_LOG = ("--log-driver", "json-file", "--log-opt", "max-size=10m", "--log-opt", "max-file=1")
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "NO_PROXY", "ALL_PROXY")


class DockerInfo(msgspec.Struct, rename="pascal"):
    """The fields of `docker info` we read; Docker's API reference, operation SystemInfo."""

    id: str = msgspec.field(name="ID", default="")
    server_version: str = ""
    operating_system: str = ""
    architecture: str = ""
    kernel_version: str = ""
    security_options: list[str] | None = None
    runtimes: dict[str, msgspec.Raw] | None = None
    memory_limit: bool = False
    swap_limit: bool = False
    cpu_cfs_quota: bool = False
    pids_limit: bool = False
    server_errors: list[str] | None = None


class _Listed(msgspec.Struct, rename="pascal"):
    """One container in a listing; Docker's API reference, operation ContainerList."""

    id: str
    image: str = ""
    state: str = ""
    labels: dict[str, str] | None = None
    names: list[str] | None = None

    def as_row(self) -> ContainerRow:
        name = (self.names or [""])[0].removeprefix("/")
        return ContainerRow(self.id, self.image, self.state, self.labels or {}, name)


class Docker(CliEngine):
    name: ClassVar[str] = "docker"
    cli: ClassVar[str] = "docker"

    # -- the engine itself ------------------------------------------------------------------
    async def ready(self) -> EngineFacts:
        where = shutil.which(self.cli)
        if where is None:
            raise EngineUnavailable(not_installed(self.cli, "Docker"))
        info = await self.info()
        _refuse_unusable(info, where)
        return EngineFacts(
            version=info.server_version,
            identity=f"docker:{info.id}:{boot_id()}",
            rootless=False,
            operating_system=info.operating_system,
            oci_runtimes=tuple(sorted(info.runtimes or {})),
            missing_limits=_missing_limits(info),
            architecture=info.architecture,
        )

    async def require_local(
        self, *, directory: Path | None = None, labels: Mapping[str, str] | None = None
    ) -> None:
        endpoint = await self.endpoint()
        if why := locality.endpoint_is_elsewhere(endpoint):
            raise EngineUnavailable(why)
        info = await self.info()
        if why := locality.kernel_is_another(info.operating_system, info.kernel_version, endpoint):
            raise EngineUnavailable(why)
        await locality.probe_mount(self, endpoint, directory, labels or {})

    async def stop_service(self) -> None:
        systemd = os.access("/run/systemd/system", os.F_OK)
        command = "sudo systemctl stop docker" if systemd else "sudo service docker stop"
        raise EngineError(
            f"Docker serves this whole machine and sanduk did not start it: `{command}`;"
            " one that scripts/engine-up started: scripts/engine-down"
        )

    async def call(self, *words: str, timeout_s: float | None = None) -> Completed:
        if (host := os.environ.get("DOCKER_HOST")) and (why := bad_docker_host(host)):
            raise EngineUnavailable(why)
        return await super().call(*words, timeout_s=timeout_s)

    async def info(self) -> DockerInfo:
        """Ask the daemon. A client exits 0 for some unreachable daemons: no version, no answer."""
        try:
            done = await self.call("info", "--format", "{{json .}}", timeout_s=INFO_S)
        except EngineUnavailable:
            raise
        except EngineError as exc:
            raise EngineUnavailable(f"Docker: {exc}") from None
        info = self._decoded(done, DockerInfo) if done.stdout.strip() else DockerInfo()
        if not info.server_version:
            raise EngineUnavailable(await self._why_down(done, info))
        return info

    async def _why_down(self, done: Completed, info: DockerInfo) -> str:
        if b'"conmon"' in done.stdout or "Emulate Docker CLI" in done.stderr:
            return "the docker command here is Podman's stand-in: use `--runtime podman`"
        told = done.stderr.strip() or "\n".join(info.server_errors or ())
        endpoint = await self.endpoint()
        chosen = [name for name in ("DOCKER_HOST", "DOCKER_CONTEXT") if os.environ.get(name)]
        return docker_down(told, endpoint, exists=path_exists, variable="".join(chosen[:1]))

    async def endpoint(self) -> str:
        """The address the client talks to; asks no daemon. DOCKER_HOST outranks the context."""
        if host := os.environ.get("DOCKER_HOST"):
            if why := bad_docker_host(host):
                raise EngineUnavailable(why)
            return host
        done = await self.call("context", "inspect", "--format", "{{.Endpoints.docker.Host}}")
        if done.code != 0:
            name = os.environ.get("DOCKER_CONTEXT", "")
            raise EngineUnavailable(bad_docker_context(name, done.stderr))
        return done.text or DEFAULT_ENDPOINT

    # -- questions the socket answers sooner than the client ------------------------------------
    async def image(self, tag: str) -> ImageFacts | None:
        found = await self._asked(lambda api: api.image(tag))
        if found is None:
            return await super().image(tag)
        return None if found.status == 404 else self.image_in(b"[" + found.body + b"]", tag)

    async def inspect(self, container: str) -> ContainerState | None:
        found = await self._asked(lambda api: api.container(container))
        if found is None:
            return await super().inspect(container)
        return None if found.status == 404 else self.state_in(found.body)

    async def containers(self, labels: Mapping[str, str]) -> list[ContainerRow]:
        label_filters(labels)  # refuses a search without labels
        found = await self._asked(lambda api: api.containers(labels))
        if found is None or found.status != 200:
            return await super().containers(labels)
        rows = [each.as_row() for each in decoded(found.body, list[_Listed], self.cli)]
        return [row for row in rows if labels.items() <= row.labels.items()]

    async def remove(self, containers: Sequence[str]) -> None:
        socket = local_socket()
        left = list(containers)
        if socket is not None and left:
            with contextlib.suppress(Unanswered):
                answers = await SocketApi(socket).remove(left)
                # 404: gone already; 409: another removal of the same container does the work
                done = {204, 404, 409}
                left = [c for c, a in zip(left, answers, strict=True) if a.status not in done]
        await super().remove(left)

    async def _asked(self, question: Callable[[SocketApi], Awaitable[Answer]]) -> Answer | None:
        """The socket's answer if it is 200 or 404; None sends the caller to the client."""
        socket = local_socket()
        if socket is None:
            return None
        try:
            answer = await question(SocketApi(socket))
        except Unanswered:
            return None
        return answer if answer.status in (200, 404) else None

    # -- what differs from podman -------------------------------------------------------------
    def create_words(self, spec: ContainerSpec) -> list[str]:
        words = ["create", *_LOG]
        words += ["--runtime", spec.oci_runtime] if spec.oci_runtime else []
        if has_no_way_out(spec) and _client_sets_proxies():
            # The client would add its proxies, perhaps with a password, where they cannot work.
            for name in _PROXIES:
                words += ["--env", f"{name}=", "--env", f"{name.lower()}="]
        return words

    def network_words(self) -> list[str]:
        return ["--opt", "com.docker.network.bridge.enable_icc=false"]

    def build_environment(self) -> Mapping[str, str]:
        return {"BUILDKIT_PROGRESS": "plain"}


def _refuse_unusable(info: DockerInfo, where: str) -> None:
    """Engines that answer but on which no run can work."""
    if info.operating_system.startswith("Ubuntu Core") or where.startswith("/snap/"):
        raise EngineUnavailable(
            "this Docker is a snap, which sees its own /tmp and kills programs started with"
            " no-new-privileges: `sudo snap remove docker`, then `sudo apt-get install docker.io`"
        )
    options = " ".join(info.security_options or ())
    if "name=rootless" in options or "name=userns" in options:
        raise EngineUnavailable(
            "this Docker maps users, so that only root in a container could write your files, and"
            " nothing here runs as root: use `--runtime podman`, which can map you to yourself"
        )


def _missing_limits(info: DockerInfo) -> tuple[str, ...]:
    limits = {
        "memory": info.memory_limit,
        "swap": info.swap_limit,
        "cpu": info.cpu_cfs_quota,
        "pids": info.pids_limit,
    }
    return tuple(name for name, enforced in limits.items() if not enforced)


def _client_sets_proxies() -> bool:
    """The client's own configuration names proxies for every container."""
    folder = os.environ.get("DOCKER_CONFIG") or Path.home() / ".docker"
    try:
        return bool(json.loads(Path(folder, "config.json").read_bytes()).get("proxies"))
    except (OSError, ValueError, AttributeError):
        return False
