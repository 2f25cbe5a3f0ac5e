"""What an engine's complaints mean, each as one line with the one command that helps."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from runs.engines.base import BuildFailed, EngineError
from runs.engines.process import Completed, cause, crash, last_line, printable

_MISSING = (
    "no such container",
    "no such image",
    "no such object",
    "no such network",
    "network not found",
    "unable to find network",
    "image not known",
    "no container with",
    "container not known",
)
_POOL = (
    "non-overlapping ipv4 address pool",
    "predefined address pools have been fully subnetted",
    "could not find free subnet",
    "no free subnet",
)
_NO_IMAGE = ("no such image", "image not known", "unable to find image")
_NO_CAUSE = (
    "DEPRECATED: The legacy builder",
    "BuildKit is currently disabled",
    "Install the buildx component",
    "environment-variable.",
)
_SCHEMES = ("unix", "tcp", "ssh", "npipe", "fd", "http", "https")
_LIMIT_FILES = {
    r"cpu\.cfs_|cpu\.max|cpu\.shares|cpu\.weight": "cpu",
    r"memory\.(limit_in_bytes|memsw|max|swap)": "memory",
    r"pids\.max": "process",
}
_DENIED = ("permission denied while trying to connect", "dial unix", "connect: permission denied")


def is_missing(stderr: str) -> bool:
    """Every complaint is that something does not exist (any more)."""
    lines = [line.lower() for line in stderr.splitlines() if line.strip()]
    return bool(lines) and all(_says_missing(line) for line in lines)


def without_missing(stderr: str) -> str:
    """The complaints that are about something else."""
    return "\n".join(line for line in stderr.splitlines() if not _says_missing(line.lower()))


def _says_missing(line: str) -> bool:
    if any(words in line for words in _MISSING):
        return True
    # "network <name> not found", and docker network inspect's own last line after it
    return ("network " in line and " not found" in line) or line.strip() == "exit status 1"


def failure(what: str, done: Completed, *, image: str = "") -> EngineError:
    """The error for a command that failed; `what` says what was tried."""
    lower = done.stderr.lower()
    if image and any(words in lower for words in _NO_IMAGE):
        return EngineError(f"the image {printable(image)} is not there: run `sanduk build`")
    if any(words in lower for words in _POOL):
        return EngineError(
            f"{what}: the engine has no free network addresses; `sanduk clean` removes networks"
            " that old runs left"
        )
    return EngineError(f"{what}: {cause(done.stderr)}")


def build_failure(tag: str, lines: Sequence[str]) -> BuildFailed:
    """The error for a build whose last lines these are; the daemon's advertisements left out."""
    told = [line for line in lines if not any(words in line for words in _NO_CAUSE)]
    return BuildFailed(f"building {printable(tag)} failed: {last_line(chr(10).join(told))}", told)


def why_not_started(error: str) -> str:
    """A container runtime's reason for not starting a container, short and with its cause."""
    for files, limit in _LIMIT_FILES.items():
        if re.search(files, error):
            return f"the engine could not set its {limit} limit"
    causes = [part.strip() for part in error.removesuffix(": unknown").split(": ")]
    told = ": ".join(causes[-2:]).strip()
    return printable(told, 160) or "the engine did not say why"


def bad_docker_host(host: str) -> str:
    """Why `host` can be no address of a daemon; empty if it may be one.

    The client takes a word without a scheme for a host's name, and looks it up.
    """
    scheme, separator, rest = host.partition("://")
    if separator and scheme in _SCHEMES and (rest.startswith("/") or scheme != "unix") and rest:
        return ""
    return (
        f"DOCKER_HOST={printable(host, 80)!r} is no address of a Docker daemon, as"
        " unix:///var/run/docker.sock is: `unset DOCKER_HOST` to use this machine's"
    )


def bad_docker_context(name: str, stderr: str) -> str:
    """Docker's context cannot be read; `name` is DOCKER_CONTEXT's value, empty if it has none."""
    if crashed := crash(stderr):
        return _client_crashed("docker", crashed)
    if name:
        return (
            f"DOCKER_CONTEXT={printable(name, 80)!r} names no Docker context that can be read:"
            " `unset DOCKER_CONTEXT` to use this machine's daemon"
        )
    return (
        f"Docker's context cannot be read ({cause(stderr)}): `docker context use default`"
        " to use this machine's daemon"
    )


def docker_down(
    stderr: str, endpoint: str, *, exists: Callable[[str], bool], variable: str = ""
) -> str:
    """Why the docker command cannot reach its daemon at `endpoint`, and what to do.

    Args:
        exists: tells whether a path exists on this host.
        variable: the one of the environment that chose the endpoint; empty: none did.
    """
    if crashed := crash(stderr):
        return _client_crashed("docker", crashed)
    lower = stderr.lower()
    if "permission denied" in lower and any(words in lower for words in _DENIED):
        return (
            f"you may not use Docker's socket ({_path(endpoint)}): run"
            " `sudo usermod -aG docker $USER`, then log in again"
        )
    if endpoint.startswith("unix:") and "/run/user/" in endpoint:
        return "your Docker daemon does not run: start it with `systemctl --user start docker`"
    if not endpoint.startswith("unix:") or variable:
        way = f"`unset {variable}`" if variable else "`docker context use default`"
        by = f", which {variable} names," if variable else ""
        return (
            f"Docker at {printable(endpoint)}{by} does not answer ({cause(stderr)}): {way}"
            " to use this machine's"
        )
    return f"the Docker daemon does not run: {_start_docker(exists)}"


def _start_docker(exists: Callable[[str], bool]) -> str:
    if exists("/run/systemd/system"):
        return "start it with `sudo systemctl start docker`"
    return "start it with `sudo service docker start`, or from a checkout with `scripts/engine-up`"


def podman_down(stderr: str) -> str:
    """Why podman, which needs no daemon, does not work here, and what to do."""
    if crashed := crash(stderr):
        return _client_crashed("podman", crashed)
    lower = stderr.lower()
    if "newuidmap" in lower and "not found" in lower:
        return "rootless Podman needs newuidmap: `sudo apt-get install uidmap`"
    if "subuid" in lower or "subgid" in lower or "insufficient uids" in lower:
        return (
            "rootless Podman needs a range of user ids for you: `sudo usermod --add-subuids"
            " 100000-165535 --add-subgids 100000-165535 $USER`, then `podman system migrate`"
        )
    if "permission denied" in lower and "/run/" in lower:
        return f"Podman may not use its runtime directory ({cause(stderr)}): log in again"
    return (
        f"Podman does not work here ({cause(stderr)}): see `podman info`, or from a checkout"
        " `scripts/engine-up --podman`"
    )


def _client_crashed(cli: str, crashed: str) -> str:
    return f"{cli}: {crashed}; it may have too little memory here (`ulimit -v`, `free -m`)"


def not_installed(cli: str, title: str) -> str:
    """The engine's command is not on PATH; perhaps another engine's is."""
    others = [each for each in _PACKAGES if each != cli and shutil.which(each)]
    if others:
        way = f"use `--runtime {others[0]}`, or install it"
    else:
        all_of_them = " nor ".join(f"`{each}`" for each in dict.fromkeys((cli, *_PACKAGES)))
        return (
            f"no container engine is installed (neither {all_of_them} is on PATH): on Debian and"
            f" Ubuntu `sudo apt-get install {_PACKAGES.get(cli, 'docker.io')}`, or from a checkout"
            f" `scripts/engine-up{' --podman' if cli == 'podman' else ''}`"
        )
    how = f" with `sudo apt-get install {_PACKAGES[cli]}`" if cli in _PACKAGES else ""
    return f"{title} is not installed (no `{cli}` on PATH): {way}{how}"


_PACKAGES = {"docker": "docker.io", "podman": "podman"}


def _path(endpoint: str) -> str:
    return printable(endpoint.removeprefix("unix://"))


def path_exists(path: str) -> bool:
    return os.access(path, os.F_OK)


def boot_id() -> str:
    """Identifies this boot of this kernel; empty where the kernel does not tell."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
