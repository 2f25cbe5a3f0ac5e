"""What killed processes left outside of containers: a probe's things, directories of dead runs."""

from __future__ import annotations

import re
import shutil
import socket
import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from runs import box, locality, locks
from runs.engines.base import LABEL_INSTALL, LABEL_ROLE, LABEL_RUN, ContainerRow, Engine
from runs.installation import install_id
from runs.models import Run

SETTLED_S = 300.0  # a younger directory may belong to a run that is just starting
FORGOTTEN_S = 24 * 3600.0
_UID = re.compile(r"[0-9a-f]{12}")


@dataclass(slots=True)
class Removed:
    """How many things of each kind were removed."""

    containers: int = 0
    networks: int = 0
    images: int = 0
    directories: int = 0

    def add(self, other: Removed) -> None:
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    @property
    def total(self) -> int:
        return sum(self.as_json().values())

    def as_json(self) -> dict[str, int]:
        return {name: getattr(self, name) for name in self.__slots__}

    def spoken(self) -> str:
        """`2 containers, 1 network`; "" when nothing was removed."""
        ones = {"directories": "directory"}
        told = [
            f"{count} {name if count > 1 else ones.get(name, name[:-1])}"
            for name, count in self.as_json().items()
            if count
        ]
        return ", ".join(told)


def is_probe(row: ContainerRow) -> bool:
    """Whether a container of ours was made to ask about an engine; a run's own never is."""
    return LABEL_RUN not in row.labels and row.labels.get(LABEL_ROLE) == "probe"


async def remove_probes(engine: Engine) -> Removed:
    """Remove containers, images and files of broken off probes, unless one is under way.

    Raises EngineError.
    """
    with locks.held_if_free(locality.PROBE_LOCK) as free:
        if not free:
            return Removed()
        labels = {LABEL_INSTALL: install_id(), LABEL_ROLE: "probe"}
        containers = [row.id for row in await engine.containers(labels) if is_probe(row)]
        await engine.remove(containers)
        images = await engine.remove_images(labels)
        shutil.rmtree(locality.probe_directory(), ignore_errors=True)
        return Removed(containers=len(containers), images=images)


def remove_boxes() -> int:
    """Remove private directories that belong to no live run; returns how many there were.

    Installations of one account share their place: of a run that is not recorded here, the
    directory goes when nobody listens at its relay's socket; without one, after a day.
    """
    found = [each for each in box.runtime_directory().iterdir() if _is_box(each)]
    # listed before the records are read: a run is written down before its directory is made
    runs = Run.objects.filter(uid__in=[each.name for each in found])
    known = set(runs.values_list("uid", flat=True))
    live = set(runs.live().values_list("uid", flat=True))
    going = [each for each in found if each.name not in live and _is_dead(each, known)]
    for each in going:
        shutil.rmtree(each, ignore_errors=True)
    return len(going)


def _is_box(path: Path) -> bool:
    return bool(_UID.fullmatch(path.name)) and path.is_dir() and not path.is_symlink()


def _is_dead(path: Path, known: Collection[str]) -> bool:
    try:
        age_s = time.time() - path.stat().st_mtime
    except FileNotFoundError:
        return False
    if age_s < SETTLED_S:
        return False
    if path.name in known:
        return True
    try:
        return _nobody_listens(path / "relay.sock")
    except FileNotFoundError:  # a run without a relay
        return age_s > FORGOTTEN_S


def _nobody_listens(path: Path) -> bool:
    """Whether a socket was left by a dead process. Raises FileNotFoundError if there is none."""
    with socket.socket(socket.AF_UNIX) as asking:
        asking.settimeout(1)
        try:
            asking.connect(str(path))
        except ConnectionRefusedError:
            return True
        except FileNotFoundError:
            raise
        except OSError:  # it may not be asked, or is too busy to answer: it may be alive
            return False
    return False
