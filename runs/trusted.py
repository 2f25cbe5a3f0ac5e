"""What this host runs or obeys by itself: no agent may write where any of it lies.

What is compared are paths without links and the directories themselves, so that a link or a bind
mount to such a place is that place. A hard link to a single file cannot be told from another file.
"""

from __future__ import annotations

import os
import shutil
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path

from recipes import catalog
from runs.refusal import Refusal

_CODE = ("assistants", "changes", "manage.py", "recipes", "relay", "runs", "sanduk_site",
         "templates")  # fmt: skip
_PROGRAMS = ("docker", "podman", "container", "git")
_LINKS_MAX = 40  # as many as Linux follows
# giving one of these away, or to an agent, would break or hand over the host
_SYSTEM = tuple(
    Path(name)
    for name in (
        "/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/run", "/sbin", "/sys", "/usr",
    )
)  # fmt: skip
_TOPS = frozenset(map(Path, ("/home", "/mnt", "/opt", "/root", "/srv", "/tmp", "/var")))  # noqa: S108


class Reach:
    """A directory that an agent can write in.

    Args:
        path: without a link in it; it need not be there yet.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._itself = _identity(path)
        self._above = {_identity(each) for each in path.parents} - {None}

    def holds(self, path: Path) -> bool:
        """Whether `path`, or a link on the way to it, is this directory or lies in it."""
        return any(self._has(way) for way in ways(path))

    def overlaps(self, path: Path) -> bool:
        """The same; or this directory lies in `path`, which is one, too."""
        real = Path(os.path.realpath(path))
        inside = self.path.is_relative_to(real) or _identity(real) in self._above
        return inside or self.holds(path)

    def _has(self, path: Path) -> bool:
        if path.is_relative_to(self.path):
            return True
        return self._itself is not None and any(
            _identity(each) == self._itself for each in (path, *path.parents)
        )


def ways(path: Path) -> set[Path]:
    """Where a path leads, and each link on the way: whoever writes at one of them turns it."""
    found: set[Path] = set()
    place = path.absolute()
    for _ in range(_LINKS_MAX):
        link = next(filter(os.path.islink, (*reversed(place.parents), place)), None)
        if link is None:
            break
        found.add(Path(os.path.realpath(link.parent)) / link.name)
        try:
            target = link.readlink()
        except OSError:  # it was taken away meanwhile
            break
        place = link.parent / target / place.relative_to(link)
    return found | {Path(os.path.realpath(place))}


def places() -> Iterator[tuple[str, Path]]:
    """What every run of this account relies on, each with what it is."""
    yield "the recipes and kits of this account", catalog.configuration()
    root = Path(__file__).parent.parent
    for name in _CODE:
        yield "sanduk's own code", root / name
    paths = sysconfig.get_paths()
    for name in ("stdlib", "platstdlib", "purelib", "platlib", "scripts"):
        yield "the Python that runs sanduk", Path(paths[name])
    for name in _PROGRAMS:
        if found := shutil.which(name):
            yield f"the program {name}", Path(found)


def is_of_the_system(path: Path) -> bool:
    """Whether it is no place for an agent to write in: the system's, or all of a home."""
    if path in _TOPS or any(path.is_relative_to(place) for place in _SYSTEM):
        return True
    return Path(os.path.realpath(Path.home())).is_relative_to(path)


def check(what: str, path: Path, more: Iterable[tuple[str, Path]] = ()) -> None:
    """Refuse a directory to write in that reaches what the host trusts.

    Args:
        path: without a link in it.
        more: further places, each with what it is.
    """
    reach = Reach(path)
    for kind, place in (*places(), *more):
        if reach.overlaps(place):
            raise Refusal(
                f"{what}: an agent that writes in {path} could change {kind} ({place}), which this "
                "host trusts; give it a directory of its own"
            )


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        facts = path.stat()
    except OSError:
        return None
    return facts.st_dev, facts.st_ino
