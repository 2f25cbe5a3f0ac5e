"""Where recipes are found: shipped with sanduk, or in the user's configuration directory.

Never in the working directory: a repository must not decide what image its agent runs in. A path
is a path only when it says so, by a slash or the ending `.json`.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from recipes.schema import RecipeError

SHIPPED = Path(__file__).parent / "shipped"
_NAME = re.compile(r"[a-z0-9]+(?:-+[a-z0-9]+)*")


def user_directory() -> Path:
    """`$XDG_CONFIG_HOME/sanduk/recipes`, else `~/.config/sanduk/recipes`."""
    configured = os.environ.get("XDG_CONFIG_HOME", "")
    # The XDG rule: a value that is not absolute counts as unset.
    base = Path(configured) if configured.startswith("/") else Path("~/.config").expanduser()
    return base / "sanduk" / "recipes"


def recipe_names() -> tuple[str, ...]:
    """The names `find` accepts, shipped ones and the user's, sorted."""
    found: set[str] = set()
    for directory in (SHIPPED, user_directory()):
        try:
            entries = [entry.name for entry in directory.iterdir()]
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise RecipeError(f"{directory}: {error.strerror}") from None
        stems = [entry.removesuffix(".json") for entry in entries if entry.endswith(".json")]
        found.update(stem for stem in stems if _NAME.fullmatch(stem))
    return tuple(sorted(found))


def find(spec: str, relative_to: Path | None = None) -> Path:
    """The file a name or a path means.

    Args:
        spec: a path (it has a slash or ends in `.json`; `~` is expanded) or a name.
        relative_to: where a relative path starts; the current directory when None.

    Raises:
        RecipeError: there is none, or a name is taken twice.
    """
    if "/" in spec or spec.endswith(".json"):
        try:
            path = (relative_to or Path.cwd()) / Path(spec).expanduser()
        except (OSError, RuntimeError) as error:
            raise RecipeError(f"recipe {spec}: {error}") from None
        if "\0" not in spec and path.is_dir():
            raise RecipeError(f"recipe {spec}: this is a directory; name the recipe's .json file")
        if "\0" in spec or not path.is_file():
            raise RecipeError(f"recipe {spec}: no such file")
        return path.parent.resolve() / path.name  # a link keeps the name it is called by
    if not _NAME.fullmatch(spec):
        raise RecipeError(
            f"recipe {spec!r}: a name has lower-case letters, digits and hyphens; "
            "a path has a slash or ends in .json"
        )
    shipped, own = (directory / f"{spec}.json" for directory in (SHIPPED, user_directory()))
    if shipped.is_file() and own.is_file():
        raise RecipeError(
            f"recipe {spec}: {own} has the name of a shipped recipe, which cannot be replaced; "
            "give it another name"
        )
    for path in (shipped, own):
        if path.is_file():
            return path
    raise RecipeError(
        f"recipe {spec}: there is none; known are {', '.join(recipe_names())}. "
        "A path needs a slash or the ending .json"
    )
