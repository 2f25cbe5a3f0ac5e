"""Where something stands in a file, and a section together with the file it copies."""

from __future__ import annotations

import hashlib
import shlex
from pathlib import Path

from msgspec import Struct

from recipes.files import FileContent, read_inside
from recipes.schema import Copy, RecipeError, Section


def mending(command: str, file: str | Path) -> str:
    """A command line without `sanduk`, as a person may copy it."""
    return f"{command} {shlex.quote(str(file))}"


class Place(Struct, frozen=True):
    """A JSON path in a file, for refusals."""

    file: Path
    path: str  # "$.sections[0]"

    def __str__(self) -> str:
        return f"{self.file}: {self.path}"

    def below(self, more: str) -> Place:
        """The place of a part: `below(".from")`, `below("[0]")`."""
        return Place(self.file, self.path + more)

    def read(self, relative: str) -> FileContent:
        """A file beside the one this place is in.

        Raises:
            RecipeError: it is a link, too large, no regular file, or cannot be read.
        """
        try:
            return read_inside(str(self.file.parent), relative)
        except OSError as error:
            raise RecipeError(f"{self}: {relative}: {error.strerror}") from None
        except ValueError as error:
            raise RecipeError(f"{self}: {relative}: {error}") from None

    def check(self, relative: str, content: bytes, sha256: str) -> None:
        """Raise RecipeError, with both hashes, when a file does not hold what was said."""
        found = hashlib.sha256(content).hexdigest()
        if found != sha256:
            mend = "kit pin" if self.file.name == "kit.json" else "recipe fix"
            raise RecipeError(
                f"{self}: {relative} has another content: SHA-256 {sha256} is expected, "
                f"{found} was found; look at what changed, then: sanduk {mending(mend, self.file)}"
            )


class PlacedSection(Struct, frozen=True):
    """A section with the recipe or kit that wrote it, and the file it copies."""

    section: Section
    owner: str
    where: Place
    file: FileContent | None = None


def placed(section: Section, owner: str, where: Place) -> PlacedSection:
    """Read the file of a copy section. Raises RecipeError when it is not the one meant."""
    file = None
    if isinstance(section, Copy):
        file = where.below(".from").read(section.source)
        if isinstance(section.sha256, str):
            where.below(".sha256").check(section.source, file.content, section.sha256)
    return PlacedSection(section, owner, where, file)
