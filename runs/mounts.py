"""Extra directories a person lends to a run: the grammar, and what may not be covered."""

from __future__ import annotations

import os
import posixpath
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path

from runs import trusted
from runs.engines.base import Mount
from runs.paths import expanded, runtime_places
from runs.refusal import Refusal

WORK = "/work"
BOX = "/run/sanduk"  # our own files inside a container
_SYSTEM = ("/proc", "/sys", "/dev", "/etc", "/run", "/bin", "/sbin", "/lib", "/lib64", "/usr")
_SOCKET_NAMES = ("docker.sock", "podman.sock", "containerd.sock", "crio.sock")


def parse(text: str, *, home: str, state: Path) -> Mount:
    """`HOST:DEST[:ro|rw]`, read-only unless it says rw.

    Read from the right, so a host path may hold colons. The destination is normalised before it
    is judged.

    Args:
        home: the agent's home in the image.
        state: our own state directory, which no container may see.

    Raises:
        Refusal: not of that form, no such directory, or a place that may not be covered.
    """
    source, target, read_only = _split(text)
    host = expanded(source, what="--mount")
    try:
        real = host.resolve(strict=True)
    except (OSError, RuntimeError):
        raise Refusal(f"--mount {text}: there is no directory {source}") from None
    if not real.is_dir():
        raise Refusal(f"--mount {text}: {source} is no directory")
    _check_source(text, real, state)
    _check_target(text, target, home)
    if not read_only:
        _check_writable(text, real)
    return Mount(str(real), target, read_only)


def absolute(text: str) -> str:
    """A mount with its source made absolute: its order may be read in another directory.

    Raises Refusal when it is not of the form that `parse` takes.
    """
    source, _, _ = _split(text)
    return f"{source_of(text)}{text[len(source) :]}"


def source_of(text: str) -> Path:
    """What is lent, as it is written. Raises Refusal when it is not of the form."""
    source, _, _ = _split(text)
    return expanded(source, what="--mount").absolute()


def parse_all(texts: Iterable[str], *, home: str, state: Path) -> tuple[Mount, ...]:
    """Every mount, refusing two with one destination or one inside another's."""
    mounts: list[Mount] = []
    for text in texts:
        mount = parse(text, home=home, state=state)
        for other in mounts:
            if _covers(other.target, mount.target) or _covers(mount.target, other.target):
                raise Refusal(f"--mount {text}: {mount.target} collides with {other.target}")
        mounts.append(mount)
    return tuple(mounts)


def _split(text: str) -> tuple[str, str, bool]:
    rest, read_only = text, True
    for ending, value in ((":ro", True), (":rw", False)):
        if text.endswith(ending):
            rest, read_only = text[: -len(ending)], value
    source, colon, target = rest.rpartition(":")
    if (
        target.lower() in ("ro", "rw", "z")
        or not (colon and source and target)
        or "\0" in text
        or "\n" in text
    ):
        raise Refusal(f"--mount {text!r}: write it as HOST:DEST, HOST:DEST:ro or HOST:DEST:rw")
    if not target.startswith("/"):
        raise Refusal(f"--mount {text}: the destination must be an absolute path, not {target!r}")
    # normpath keeps two leading slashes, which Linux reads as one
    return source, "/" + posixpath.normpath(target).lstrip("/"), read_only


def _check_target(text: str, target: str, home: str) -> None:
    if target == "/":
        raise Refusal(f"--mount {text}: a mount over / would hide the whole image")
    for taken, what in ((WORK, "the workspace"), (home, "the agent's home")):
        if _covers(taken, target) or _covers(target, taken):
            raise Refusal(f"--mount {text}: {target} would cover {what} ({taken}); use /data/NAME")
    for system in _SYSTEM:
        if _covers(system, target):
            raise Refusal(f"--mount {text}: {target} lies in {system}; use /data/NAME")


def _check_source(text: str, real: Path, state: Path) -> None:
    if real == Path("/"):
        raise Refusal(f"--mount {text}: the whole host is not lent to an agent")
    check_outside_state(f"--mount {text}", real, state)
    if holds_engine_socket(real):
        raise Refusal(
            f"--mount {text}: {real} holds an engine's socket, which is root on this host"
        )


def _check_writable(text: str, real: Path) -> None:
    if trusted.is_of_the_system(real):
        raise Refusal(
            f"--mount {text}: {real} is no place for an agent to write in; lend it read-only, "
            "or give a directory of its own"
        )
    trusted.check(f"--mount {text}", real)


def check_outside_state(what: str, real: Path, state: Path) -> None:
    """Refuse a directory that is, holds, or lies in one of our own.

    Beside the state directory these are the places of sockets and tokens of other runs.
    """
    for kind, own in _own_places(state):
        if _covers(str(own), str(real)) or _covers(str(real), str(own)):
            raise Refusal(f"{what}: {real} and sanduk's {kind} directory {own} may not overlap")


def check_not_in_state(what: str, real: Path, state: Path) -> None:
    """Refuse a place for results inside one of our own, where they would be lost or mixed up."""
    for kind, own in _own_places(state):
        if _covers(str(own), str(real)):
            raise Refusal(f"{what}: {real} lies in sanduk's own {kind} directory {own}")


def _own_places(state: Path) -> list[tuple[str, Path]]:
    places = [("state", Path(os.path.realpath(state)))]
    return places + [("runtime", place) for place in runtime_places()]


def holds_engine_socket(real: Path) -> bool:
    """Whether an engine's socket lies directly in this directory, or where engines put it."""
    for name in _SOCKET_NAMES:
        for place in (real / name, real / "docker" / name, real / "podman" / name):
            try:
                if stat.S_ISSOCK(place.lstat().st_mode):
                    return True
            except OSError:
                continue
    return False


def _covers(outer: str, inner: str) -> bool:
    """Whether `inner` is `outer` or lies below it."""
    return inner == outer or inner.startswith(outer.rstrip("/") + "/")


def described(mounts: Sequence[Mount]) -> list[str]:
    return [f"{m.source} at {m.target} ({'ro' if m.read_only else 'rw'})" for m in mounts]
