"""Where recipes and kits are found: shipped, in the user's configuration, or in a package.

Never in the working directory: a repository must not decide what image its agent runs in. A path
is a path only when it says so, by a slash or the ending `.json`. A package offers a recipe or a kit
by an entry point of the group `sanduk.recipes` or `sanduk.kits` that loads to its path.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from recipes.schema import RecipeError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

SHIPPED = Path(__file__).parent / "shipped"
SHIPPED_KITS = SHIPPED / "kits"
Kind = Literal["recipe", "kit"]
GROUPS: dict[Kind, str] = {"recipe": "sanduk.recipes", "kit": "sanduk.kits"}
NAMES_SHOWN = 40  # by the error that a name is not known
_NAME = re.compile(r"[a-z0-9]+(?:-+[a-z0-9]+)*")
_T = TypeVar("_T")
_Seen = dict[tuple[Any, ...], Any]
_SEEN: ContextVar[_Seen | None] = ContextVar("seen", default=None)


@contextlib.contextmanager
def seen_once() -> Iterator[None]:
    """For the length of the block directories and packages are looked at once, not per name."""
    token = _SEEN.set({})
    try:
        yield
    finally:
        _SEEN.reset(token)


def _once(look: Callable[..., _T], *what: Any) -> _T:
    seen = _SEEN.get()
    if seen is None:
        return look(*what)
    key = (look.__name__, *what)
    if key not in seen:
        seen[key] = look(*what)
    found: _T = seen[key]
    return found


def configuration() -> Path:
    """`$XDG_CONFIG_HOME/sanduk`, else `~/.config/sanduk`."""
    configured = os.environ.get("XDG_CONFIG_HOME", "")
    # The XDG rule: a value that is not absolute counts as unset.
    base = Path(configured) if configured.startswith("/") else Path("~/.config").expanduser()
    return base / "sanduk"


def user_directory(kind: Kind = "recipe") -> Path:
    """Where the user's own are: `recipes` or `kits` below `configuration`."""
    return configuration() / f"{kind}s"


def recipe_names() -> tuple[str, ...]:
    """The names `find` accepts, sorted. Raises RecipeError: a directory cannot be read."""
    return _names("recipe")


def kit_names() -> tuple[str, ...]:
    """The names `find_kit` accepts, sorted. Raises RecipeError: a directory cannot be read."""
    return _names("kit")


def is_name(word: str) -> bool:
    """Whether a recipe or a kit may be called so."""
    return _NAME.fullmatch(word) is not None


def is_path(spec: str) -> bool:
    """Whether a word means a file, not a name."""
    return "/" in spec or spec.endswith(".json")


def find(spec: str, relative_to: Path | None = None) -> Path:
    """The recipe file a name or a path means.

    Args:
        spec: a path (it has a slash or ends in `.json`; `~` is expanded) or a name.
        relative_to: where a relative path starts; the current directory when None.

    Raises:
        RecipeError: there is none, or a name is taken twice.
    """
    return _find("recipe", spec, relative_to)


def find_kit(spec: str, relative_to: Path | None = None) -> Path:
    """The kit.json a name or a path means, as for `find`; a directory means its kit.json."""
    return _find("kit", spec, relative_to)


def _find(kind: Kind, spec: str, relative_to: Path | None) -> Path:
    if is_path(spec):
        return _at_path(kind, spec, relative_to)
    if not is_name(spec):
        raise RecipeError(
            f"{kind} {spec!r}: a name has lower-case letters, digits and hyphens; "
            "a path has a slash or ends in .json"
        )
    shipped, own = _shipped(kind, spec), _own(kind, spec)
    if shipped.is_file():
        if own.is_file():
            raise RecipeError(
                f"{kind} {spec}: {own} has the name of a shipped {kind}, which cannot be replaced; "
                "give it another name"
            )
        return shipped  # no package is asked: it could not replace it
    offered = _offered(kind, spec)
    hits = [(str(own), own)] if own.is_file() else []
    hits += [(f"package {_source(point)}", _path_of(kind, point)) for point in offered]
    if len(hits) > 1:
        raise RecipeError(
            f"{kind} {spec}: both {hits[0][0]} and {hits[1][0]} have it; name one by its path: "
            f"{' or '.join(str(path) for _, path in hits)}"
        )
    if hits:
        return hits[0][1]
    if os.path.lexists(own):
        raise RecipeError(f"{kind} {spec}: {own} is no regular file")
    raise RecipeError(
        f"{kind} {spec}: there is none; known are {_once(_spoken_names, kind)}. "
        "A path needs a slash or the ending .json"
    )


def _at_path(kind: Kind, spec: str, relative_to: Path | None) -> Path:
    try:
        path = (relative_to or Path.cwd()) / Path(spec).expanduser()
    except (OSError, RuntimeError) as error:
        raise RecipeError(f"{kind} {spec}: {error}") from None
    if "\0" not in spec and path.is_dir():
        if kind == "recipe":
            raise RecipeError(f"recipe {spec}: this is a directory; name the recipe's .json file")
        path /= "kit.json"
    if "\0" in spec or not path.is_file():
        there = "\0" not in spec and os.path.lexists(path)
        raise RecipeError(
            f"{kind} {spec}: {'this is no regular file' if there else 'no such file'}"
        )
    if kind == "kit" and path.name != "kit.json":
        raise RecipeError(
            f"kit {spec}: a kit's file is called kit.json, in a directory of its name"
        )
    return _resolved(kind, path)


def _resolved(kind: Kind, path: Path) -> Path:
    """Absolute; a link keeps the name it is called by, which for a kit is its directory's."""
    if kind == "recipe" or path.parent.name in ("", ".."):
        return path.parent.resolve() / path.name
    return path.parent.parent.resolve() / path.parent.name / path.name


def _shipped(kind: Kind, name: str) -> Path:
    return SHIPPED / f"{name}.json" if kind == "recipe" else SHIPPED_KITS / name / "kit.json"


def _own(kind: Kind, name: str) -> Path:
    directory = user_directory(kind)
    return directory / f"{name}.json" if kind == "recipe" else directory / name / "kit.json"


def _names(kind: Kind) -> tuple[str, ...]:
    found = {point.name for point in _offered(kind)}
    for directory in (SHIPPED if kind == "recipe" else SHIPPED_KITS, user_directory(kind)):
        found.update(name for name, _ in _once(_held, kind, directory))
    return tuple(sorted(name for name in found if is_name(name)))


def _spoken_names(kind: Kind) -> str:
    names = _names(kind)
    more = len(names) - NAMES_SHOWN
    return ", ".join(names[:NAMES_SHOWN]) + (f" and {more:,} more" if more > 0 else "") or "none"


def _held(kind: Kind, directory: Path) -> list[tuple[str, Path]]:
    """What a directory holds, whether it can be used or not: the name and the file of each."""
    try:
        entries = list(directory.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise RecipeError(f"{directory}: {error.strerror}") from None
    if kind == "recipe":
        return [(entry.stem, entry) for entry in entries if entry.suffix == ".json"]
    files = [(entry.name, entry / "kit.json") for entry in entries]
    return [(name, file) for name, file in files if os.path.lexists(file)]


def misnamed(kind: Kind) -> tuple[str, ...]:
    """One sentence for each of the user's own files that has no name to be asked for by.

    Raises:
        RecipeError: their directory cannot be read.
    """
    return tuple(
        f"{file}: {name!r} is no name: lower-case letters, digits and hyphens; rename it"
        for name, file in sorted(_once(_held, kind, user_directory(kind)))
        if not is_name(name)
    )


def package_problems(kind: Kind) -> tuple[str, ...]:
    """One sentence for each recipe or kit offered by a package that is left out."""
    problems = []
    for point in _offered(kind):
        offers = f"package {_source(point)} offers {kind} {point.name}"
        if not is_name(point.name):
            problems.append(f"{offers}, which is no name; left out")
        elif _shipped(kind, point.name).is_file():
            problems.append(f"{offers}, whose name is shipped with sanduk; left out")
    return tuple(problems)


def _offered(kind: Kind, name: str | None = None) -> list[EntryPoint]:
    points = _once(_entry_points, kind)
    return points if name is None else [point for point in points if point.name == name]


def _entry_points(kind: Kind) -> list[EntryPoint]:
    from importlib.metadata import entry_points  # costs more than reading a recipe

    # A path that stands twice on sys.path gives the same offer twice.
    points = set(entry_points(group=GROUPS[kind]))
    return sorted(points, key=lambda point: (point.name, _source(point), point.value))


def _source(point: EntryPoint) -> str:
    return point.dist.name if point.dist else "(unnamed)"


def _path_of(kind: Kind, point: EntryPoint) -> Path:
    where = f"{kind} {point.name} of package {_source(point)}"
    try:
        given = point.load()
    except (Exception, SystemExit) as error:  # somebody else's module may raise anything
        raise RecipeError(f"{where} cannot be loaded: {type(error).__name__}: {error}") from error
    if not isinstance(given, str | os.PathLike):
        raise RecipeError(f"{where}: {point.value} is {type(given).__name__}, not a path")
    path = Path(os.fsdecode(given))
    if kind == "kit" and path.is_dir():
        path /= "kit.json"
    if not (path.is_absolute() and path.is_file()):
        raise RecipeError(f"{where}: {path} is no file with an absolute path")
    return _resolved(kind, path)
