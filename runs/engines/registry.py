"""Which engines there are: the built-in ones, then what other packages offer.

A package offers one by an entry point of the group `sanduk.engines`, named as the engine is; none
can take a built-in's name. `module:Class` loads one that no package offers: it imports that
module, so it is for people at a terminal only.
"""

from __future__ import annotations

import importlib
import inspect
import shutil
import sys
from typing import TYPE_CHECKING

from runs.engines.base import Engine, EngineError, EngineUnavailable
from runs.engines.process import printable

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "sanduk.engines"
BUILT_IN = {
    "apple": "runs.engines.apple:Apple",
    "docker": "runs.engines.docker:Docker",
    "podman": "runs.engines.podman:Podman",
}


def get_engine(name: str | None = None) -> Engine:
    """The engine of that name, or of `module:Class`; None: the first one installed.

    Whether it answers is not asked here: that is `Engine.ready`.

    Raises:
        EngineUnavailable: there is none of that name, or it cannot be loaded.
    """
    if name is None:
        return _load(BUILT_IN[_first_installed()])
    if name in BUILT_IN:
        return _load(BUILT_IN[name])
    if ":" in name:
        return _load(name)
    for point in _offered():
        if point.name == name:
            return _from_entry_point(point)
    raise EngineUnavailable(
        f"no engine is called {printable(name)}; there are {', '.join(engine_names())}"
    )


def engine_names() -> tuple[str, ...]:
    """Every engine on offer: the built-in ones first, then the others by name."""
    others = dict.fromkeys(point.name for point in _offered() if point.name not in BUILT_IN)
    return (*BUILT_IN, *others)


def plugin_problems() -> tuple[str, ...]:
    """One sentence for each offered engine that cannot be used."""
    problems = []
    for point in _offered():
        if point.name in BUILT_IN:
            problems.append(f"{_source(point)} offers {point.name}, which is built in; left out")
            continue
        try:
            _from_entry_point(point)
        except EngineError as exc:
            problems.append(str(exc))
    return tuple(problems)


def default_order() -> tuple[str, ...]:
    return ("apple", "docker", "podman") if sys.platform == "darwin" else ("docker", "podman")


def _first_installed() -> str:
    order = default_order()
    # With none installed it is the first one, whose `ready` says how to install it.
    return next((n for n in order if shutil.which(_class_at(BUILT_IN[n]).cli)), order[0])


def _offered() -> list[EntryPoint]:
    # Imported here: it takes 20 ms, and most commands name a built-in engine.
    from importlib.metadata import entry_points

    # A path that stands twice on sys.path gives the same offer twice.
    found = set(entry_points(group=GROUP))
    return sorted(found, key=lambda point: (point.name, _source(point), point.value))


def _from_entry_point(point: EntryPoint) -> Engine:
    engine = _load(point.value, source=_source(point))
    if engine.name != point.name:
        raise EngineUnavailable(
            f"{_source(point)} offers {point.name}, but its class calls itself {engine.name}"
        )
    return engine


def _source(point: EntryPoint) -> str:
    return point.dist.name if point.dist else "a package"


def _load(path: str, *, source: str = "") -> Engine:
    by = f" (offered by {source})" if source else ""
    try:
        return _class_at(path)()
    except EngineError as exc:
        raise EngineUnavailable(f"{exc}{by}") from None
    except Exception as exc:  # a stranger's class may fail in any way
        raise EngineUnavailable(
            f"the engine {printable(path)}{by} cannot be made: {printable(repr(exc))}"
        ) from exc


def _class_at(path: str) -> type[Engine]:
    module_name, _, class_name = path.partition(":")
    shown = printable(path)
    try:
        found = getattr(importlib.import_module(module_name), class_name)
    except Exception as exc:  # a stranger's module may fail in any way
        raise EngineUnavailable(
            f"the engine {shown} cannot be loaded: {printable(str(exc))}"
        ) from exc
    if not (isinstance(found, type) and issubclass(found, Engine)):
        raise EngineUnavailable(f"{shown} is no engine: it is not a subclass of Engine")
    if inspect.isabstract(found):
        missing = ", ".join(sorted(found.__abstractmethods__))
        raise EngineUnavailable(f"{shown} is no complete engine: it lacks {missing}")
    return found
