"""What `sanduk doctor` looks at: one sentence for each thing, and what mends it."""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import django
from django.conf import settings
from django.core.checks import ERROR, run_checks
from django.db import DatabaseError, connection

from changes import git as git_command
from relay import Provider
from runs import clock, condition, credentials, keys, locality, providers, pulse, stock
from runs.condition import EngineCondition
from runs.engines import get_engine
from runs.engines.base import Engine, EngineError
from runs.models import Run
from runs.plan import LINK_RECIPE
from runs.refusal import Refusal
from sanduk_site import __version__, health

State = Literal["ok", "note", "wrong"]
AHEAD_S = 60.0


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that was looked at. `note`: runs work all the same. `fix`: what to do, or ""."""

    name: str
    state: State
    sentence: str
    fix: str = ""

    def as_data(self) -> dict[str, Any]:
        return asdict(self)


def examined(chosen: str) -> Iterator[Line]:
    """Everything, each line as soon as it is known.

    Args:
        chosen: an engine's name or `module:Class`; "" for the one that runs use.
    """
    yield _python()
    yield from _database()
    yield from _home()
    yield _clock()
    yield from _engines(chosen)
    yield _worker()
    yield from _keys()
    yield _git()
    yield from _settings()


def _python() -> Line:
    told = f"sanduk {__version__}, Python {platform.python_version()}, Django {django.__version__}"
    return Line("python", "ok", told)


def _database() -> Iterator[Line]:
    name = connection.vendor
    try:
        version = ".".join(map(str, connection.get_database_version()))
    except DatabaseError as exc:
        fix = "see DATABASE_URL and SANDUK_HOME in docs/operations.md"
        yield Line("database", "wrong", f"{name} does not answer: {exc}", fix)
        return
    word = health.migrations()
    if word == health.OK:
        count = Run.objects.count()
        yield Line("database", "ok", f"{name} {version}, up to date, {count:,} run(s) recorded")
    else:
        fix = "any sanduk command brings it up to date; it says why where it cannot"
        yield Line("database", "wrong", f"{name} {version}: its migrations are {word}", fix)


def _home() -> Iterator[Line]:
    here = condition.of_installation()
    home: Path = settings.SANDUK_HOME
    mode = home.stat().st_mode & 0o777
    if mode & 0o077:
        sentence = f"{home} can be read by other accounts ({mode:04o})"
        yield Line("home", "wrong", sentence, f"chmod 700 {home}")
    else:
        yield Line("home", "ok", f"{home}, for this account alone")
    free, needed = here["free_mb"], here["needed_mb"]
    if free < needed:
        fix = "make room; `sanduk images prune` and `sanduk clean` help"
        yield Line("disk", "wrong", f"{free:,} MB free there, runs need {needed:,}", fix)
    else:
        yield Line("disk", "ok", f"{free:,} MB free there, runs need {needed:,}")
    yield _backup(here["backup"])


def _backup(backup: dict[str, Any]) -> Line:
    made = backup["made_at"]
    if backup["trouble"]:
        return Line("backup", "note", backup["trouble"], "sanduk backup DIR")
    told = f"the last one is of {made:%F %T} UTC" if made else "none has been made yet"
    return Line("backup", "ok" if made else "note", told, "" if made else "sanduk backup DIR")


def _clock() -> Line:
    """Nothing here asks a time server: only what was written earlier can show a clock set back."""
    fix = "set the clock right (timedatectl), so that schedules and leases can be believed"
    newest = Run.objects.order_by("-created_at").values_list("created_at", flat=True).first()
    now = clock.now()
    if newest is not None and (newest - now).total_seconds() > AHEAD_S:
        return Line("clock", "wrong", f"a run was recorded at {newest:%F %T}, after now", fix)
    if any(pulse.is_behind(name) for name in ("worker", "tick")):
        return Line("clock", "wrong", "the worker has been seen at a time after now", fix)
    return Line("clock", "ok", f"{now:%F %T} UTC, and nothing on record is later")


def _engines(chosen: str) -> Iterator[Line]:
    try:
        found = condition.of_engines(chosen)
    except EngineError as exc:
        yield Line("engine", "wrong", str(exc), "install docker or podman: scripts/engine-up")
        return
    for each in found:
        yield _engine(each)
    if not found[0].trouble:
        yield from _asked(get_engine(found[0].name))


def _engine(each: EngineCondition) -> Line:
    name = f"engine {each.name}"
    if each.trouble:
        # the sentence names the command that helps
        return Line(name, "wrong" if each.is_default else "note", f"cannot be used: {each.trouble}")
    parts = [f"{each.version} on {each.operating_system}"]
    parts += ["the one runs use"] if each.is_default else []
    parts.append("rootless" if each.rootless else "not rootless: its daemon, or it, is root")
    if each.missing_limits:
        parts.append(f"cannot limit {', '.join(each.missing_limits)}")
        fix = "see docs/engines.md: a run can then use up what is not limited"
        return Line(name, "note", "; ".join(parts), fix)
    return Line(name, "ok", "; ".join(parts))


def _asked(engine: Engine) -> Iterator[Line]:
    """What only an engine that answers can tell: sealed runs, images."""
    try:
        asyncio.run(locality.require_usable(engine, relayed=True))
        rows = stock.stocked(asyncio.run(stock.listed(engine)))
    except EngineError as exc:
        yield Line("link", "wrong", f"sealed runs cannot work on {engine.name}: {exc}")
        return
    current = sorted(each.recipe for each in rows if each.standing == "current")
    if LINK_RECIPE in current:
        yield Line("link", "ok", "sealed runs work on this engine; the link's image is built")
    else:
        told = "sealed runs work on this engine; the link's image is built with the first of them"
        yield Line("link", "ok", told)
    agents = [name for name in current if name != LINK_RECIPE]
    stale = sum(1 for each in rows if each.standing in stock.STALE)
    told = f"built here: {', '.join(agents)}" if agents else "none is built here yet"
    if stale:
        fix = "sanduk images prune"
        yield Line("images", "note", f"{told}; {stale} that no run will ask for", fix)
    elif agents:
        yield Line("images", "ok", told)
    else:
        fix = "sanduk build --agent NAME; the first run of an agent builds its image too"
        yield Line("images", "note", told, fix)


def _worker() -> Line:
    age_s = pulse.age_s("worker")
    if age_s is not None and age_s <= health.WORKER_MAX_S:
        return Line("worker", "ok", f"seen {age_s:.0f} s ago")
    told = "never seen" if age_s is None else f"last seen {age_s:,.0f} s ago"
    fix = "sanduk up, or sanduk worker: without it assistants sleep; runs at a terminal need none"
    return Line("worker", "note", told, fix)


def _keys() -> Iterator[Line]:
    known, problem = providers.usable()
    if problem:
        yield Line("providers", "wrong", problem, "mend that file, or remove it")
    held = [line for provider in known.values() if (line := _key(provider)) is not None]
    yield from held
    if not held:
        fix = "sanduk auth set PROVIDER; --provider rehearsal needs none"
        yield Line("keys", "note", "no provider's key is here", fix)


def _key(provider: Provider) -> Line | None:
    """A key that is here, masked, or what is wrong with it; None when there is none."""
    name = provider.key_env
    source = keys.source_of(name) if name else ""
    if not source:
        return None
    where = f"key {provider.name}"
    fix = f"sanduk auth set {provider.name}"
    try:
        value = keys.value_of(name)
    except Refusal as exc:
        return Line(where, "wrong", str(exc), fix)
    fault = "is empty" if not value else keys.fault_of(value)
    if fault:
        return Line(where, "wrong", f"{name} ({source}) {fault}", fix)
    return Line(where, "ok", f"{credentials.masked(value)} ({source})")


def _git() -> Line:
    """What changes need: a git that merges trees without a checkout. Runs need none."""
    fix = "install git {}.{} or newer (apt install git): changes need it, runs do not"
    try:
        found = ".".join(map(str, git_command.version()))
    except (Refusal, git_command.GitError) as exc:
        return Line("git", "wrong", str(exc), fix.format(*git_command.REQUIRED))
    return Line("git", "ok", f"{found}: it has what changes need (bundle, merge-tree, update-ref)")


def _settings() -> Iterator[Line]:
    """`manage.py check`, by its ids; what has a line of its own above is not said twice."""
    for each in run_checks(tags=["sanduk"]):
        if each.id == "sanduk.W001":
            continue
        state: State = "wrong" if each.level >= ERROR else "note"
        yield Line(f"setting {each.id}", state, each.msg, each.hint or "")


def progress_of(lines: Iterator[Line], tell: Callable[[Line], None]) -> list[Line]:
    """All of them, each told as it comes."""
    found = []
    for line in lines:
        tell(line)
        found.append(line)
    return found
