"""What an assistant's agent can write to may hold nothing that this host runs or obeys.

That is its brief, its gate, its recipe and its file, those of every other assistant, and what the
destinations of this host run or write. It is looked at when an assistant or a destination is added
and again before each run, as links and destinations change meanwhile.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from assistants.config import Config, restored
from assistants.delivery.kinds import CommandSettings, FileSettings, Settings, settings_of
from assistants.models import Assistant, Destination
from recipes.catalog import is_path
from runs import mounts
from runs.refusal import Refusal
from runs.trusted import Reach

WORKSPACE = "workspace"
_WORDS = re.compile(r"[\s;|&<>()\"'`=$]+")

Place = tuple[str, Path]  # what it is, and where


def check(name: str, directory: Path, config: Config) -> None:
    """Refuse an assistant whose agent could write where something of the host's lies.

    Raises Refusal, which begins with the key that lends it, and names the place and what is there.
    """
    for key, path in _writable(directory, config):
        reach = Reach(path)
        # a workspace that is a link may lead out of the directory, and never into it
        if not path.is_relative_to(directory.resolve() / WORKSPACE) and reach.overlaps(directory):
            raise _refused(key, path, f"the directory of {name} itself", directory)
        others = Assistant.objects.present().exclude(directory=str(directory))
        for other, home in others.values_list("name", "directory"):
            if reach.overlaps(Path(home)):
                raise _refused(key, path, f"the directory of assistant {other}", Path(home))
        for kind, place in (*of_image(directory, config), *_of_destinations()):
            if reach.holds(place):
                raise _refused(key, path, kind, place)


def check_out_of_reach(what: str, places: Iterable[Path], *, but: str = "") -> None:
    """Refuse a place that the agent of an assistant can write to.

    Args:
        but: the directory of an assistant that is left out.

    Raises Refusal.
    """
    places = list(places)
    for one in Assistant.objects.present().exclude(directory=but):
        try:
            reaches = [Reach(path) for _, path in _writable(Path(one.directory), _settings(one))]
        except Refusal:
            continue  # it cannot wake, and its page says why
        for place in places:
            if reach := next((each for each in reaches if each.holds(place)), None):
                raise Refusal(
                    f"{what}: {place} lies in {reach.path}, where the agent of assistant "
                    f"{one.name} could change it"
                )


def places_of(settings: Settings) -> list[Path]:
    """The files that a destination runs, hands to what it runs, or writes to."""
    if isinstance(settings, FileSettings):
        return [Path(settings.path)]
    if not isinstance(settings, CommandSettings):
        return []
    program = shutil.which(settings.argv[0]) if settings.argv else None
    named = {word for each in settings.argv for word in (each, *_WORDS.split(each))}
    # it runs in /
    found = [Path("/", word) for word in sorted(named) if "/" in word and len(word) < 4096]
    return [*([Path(program)] if program else []), *(each for each in found if _is_file(each))]


def _refused(key: str, path: Path, kind: str, place: Path) -> Refusal:
    way_out = "move one of them" if key == WORKSPACE else "lend it read-only (:ro), or another one"
    return Refusal(
        f"{key}: its agent could write in {path}, and so change {kind} ({place}), which this host "
        f"trusts; {way_out}"
    )


def _writable(directory: Path, config: Config) -> Iterator[tuple[str, Path]]:
    """Where its agent writes, without links, and the key that says so."""
    yield WORKSPACE, Path(os.path.realpath(directory / WORKSPACE))
    lent = [("mounts", text) for text in config.mounts]
    lent += [("args", text) for text in _values("--mount", config.args)]
    for key, text in lent:
        if text.endswith(":rw"):
            yield key, Path(os.path.realpath(mounts.source_of(text)))


def of_image(directory: Path, config: Config) -> Iterator[Place]:
    """The files that say what an assistant's image is made of."""
    files = [each for each in (config.recipe, *_values("--kit", config.args)) if is_path(each)]
    for text in (*files, *_values("--containerfile", config.args)):
        yield "what its image is made of", directory / text


def _of_destinations() -> Iterator[Place]:
    for one in Destination.objects.filter(removed_at=None):
        try:
            settings = settings_of(one.kind, one.config)
        except Refusal:
            continue  # nothing is sent there, and whoever looks at it is told why
        for place in places_of(settings):
            yield f"a file of the destination {one.name}", place


def _values(flag: str, words: Sequence[str]) -> Iterator[str]:
    for word, following in zip(words, (*words[1:], ""), strict=False):
        name, equals, value = word.partition("=")
        if name == flag:
            yield value if equals else following


def _settings(assistant: Assistant) -> Config:
    try:
        return restored(assistant.config)
    except msgspec.ValidationError as exc:
        raise Refusal(f"the settings of {assistant.name} were stored by another version") from exc


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False
