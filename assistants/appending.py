"""What a destination may append to: never a file that this host runs or obeys.

What an agent wrote would be in it, one approval later. It is looked at when the destination is
added and again before each delivery, as links, assistants and other destinations change meanwhile.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
from django.conf import settings as site

from assistants import reach
from assistants.config import restored
from assistants.delivery.kinds import CommandSettings, FileSettings, Settings, settings_of
from assistants.models import Assistant, Destination
from runs import trusted
from runs.refusal import Refusal

# programs read what is hidden as their settings, or run it; these hold neither
_HIDDEN_AND_PLAIN = ((".local", "state"), (".cache",))
_SPOOLS = tuple(map(Path, ("/var/spool/cron", "/var/spool/at", "/var/spool/anacron")))


def check(name: str, settings: Settings) -> None:
    """Refuse a destination whose file this host runs or obeys. Raises Refusal."""
    if isinstance(settings, FileSettings):
        path = Path(settings.path)
        if what := _what_it_is(path) or next(_holding(path), None):
            raise Refusal(
                f"destination {name}: {path} {what}; what an agent writes is appended to a file "
                "of its own that nothing runs or obeys"
            )
    elif isinstance(settings, CommandSettings):
        for place in reach.places_of(settings):
            for other, theirs in _others(Destination.Kind.FILE):
                if isinstance(theirs, FileSettings) and _is_one(Path(theirs.path), place):
                    raise Refusal(
                        f"destination {name}: what an agent writes is appended to {place} by the "
                        f"destination {other}, so nothing may run it"
                    )


def _what_it_is(path: Path) -> str:
    """Why a path alone tells that a program runs or obeys it, or that of the file there."""
    for way in trusted.ways(path):
        if trusted.is_of_the_system(way) or any(way.is_relative_to(each) for each in _SPOOLS):
            return f"is of this host's system ({way})" if way != path else "is of the system"
        if hidden := _hidden(way):
            return f"is hidden ({hidden}), as settings and start files are"
    return "is a program" if _is_program(path) else ""


def _is_program(path: Path) -> bool:
    """Whether it may be run and holds something else than what a destination appends.

    Some file systems (CIFS, FAT) say of every file that it may be run.
    """
    try:
        if not path.is_file() or not path.stat().st_mode & 0o111:
            return False
        with path.open("rb") as file:
            return file.read(1) not in (b"", b"{")
    except OSError:
        return False


def _hidden(path: Path) -> str:
    parts = path.parts
    for at, part in enumerate(parts):
        if part.startswith("."):
            plain = any(
                parts[at : at + len(each)] == each and len(parts) > at + len(each)
                for each in _HIDDEN_AND_PLAIN
            )
            rest = parts[at + 1 :] if plain else ()
            return "" if plain and not any(each.startswith(".") for each in rest) else part
    return ""


def _holding(path: Path) -> Iterator[str]:
    """Each place that this host trusts and the path lies in, in words."""
    for kind, place in _places():
        if trusted.Reach(Path(os.path.realpath(place))).holds(path):
            yield f"is, or lies in, {kind} ({place})"


def _places() -> Iterator[reach.Place]:
    yield "sanduk's own state", site.SANDUK_HOME
    database = site.DATABASES["default"]
    if database["ENGINE"].endswith("sqlite3"):
        for end in ("", "-wal", "-shm", "-journal"):
            yield "sanduk's database", Path(f"{database['NAME']}{end}")
    for variable, value in os.environ.items():
        if variable.endswith("_FILE") and value.startswith("/"):
            yield f"the file that {variable} names", Path(value)
    yield from trusted.places()
    for one in Assistant.objects.present():
        directory = Path(one.directory)
        yield f"the directory of assistant {one.name}", directory
        try:
            config = restored(one.config)
        except msgspec.ValidationError:
            continue  # it cannot wake, and its page says why
        yield from reach.of_image(directory, config)
    for name, settings in _others(Destination.Kind.COMMAND):
        for place in reach.places_of(settings):
            yield f"a file of the destination {name}", place


def _others(kind: str) -> Iterator[tuple[str, Settings]]:
    for one in Destination.objects.filter(removed_at=None, kind=kind):
        try:
            yield one.name, settings_of(one.kind, one.config)
        except Refusal:
            continue  # nothing is sent there, and whoever looks at it is told why


def _is_one(one: Path, other: Path) -> bool:
    """Whether both are the same file, by whatever name."""
    return trusted.Reach(Path(os.path.realpath(one))).holds(other)
