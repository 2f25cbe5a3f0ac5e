"""What parses but is not built: an image must be what its recipe says, today and next year.

sanduk 0.3 accepted version ranges, other registries by flag and the user root. Such recipes still
load, so that they can be listed and mended; building them is refused here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import get_args

from msgspec import UNSET, Struct

from recipes.image_names import EXAMPLES, is_image_name
from recipes.kits import Kit
from recipes.placed import Place, PlacedSection, mending
from recipes.resolve import Recipe
from recipes.schema import Architecture, Archive, Binary, Copy, Npm, Pip, RecipeError, Section
from recipes.spans import line_of

# https://semver.org: three numbers, then optionally a pre-release and build metadata.
_SEMVER = re.compile(r"\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?")
# PEP 440 without wildcards and local versions of several clauses.
_PEP440 = re.compile(
    r"(?:\d+!)?\d+(?:\.\d+)*(?:(?:a|b|rc)\d+)?(?:\.post\d+)?(?:\.dev\d+)?(?:\+[a-z0-9.]+)?"
)
# An allow-list: both programs take any unique abbreviation of a flag, so no deny-list holds.
_NPM_FLAGS = frozenset({
    "--ignore-scripts", "--include=optional", "--legacy-peer-deps", "--no-audit", "--no-fund",
    "--no-optional", "--omit=dev", "--omit=optional", "--omit=peer", "--strict-peer-deps",
})  # fmt: skip
_PIP_FLAGS = frozenset({
    "--break-system-packages", "--ignore-installed", "--ignore-requires-python",
    "--no-build-isolation", "--no-compile", "--no-deps", "--no-warn-script-location",
    "--only-binary=:all:", "--prefer-binary", "--root-user-action=ignore",
})  # fmt: skip
# HOME becomes writable for the group 0: none of these may.
_SYSTEM = frozenset({
    "bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "libx32", "proc", "run", "sbin", "sys",
    "tmp", "usr", "work",
})  # fmt: skip


def refuse_unbuildable(recipe: Recipe) -> None:
    """Raise RecipeError, naming the place and what would do, when it is not to be built."""
    for problem in problems(recipe):
        raise RecipeError(problem.sentence)


def lacking(recipe: Recipe) -> dict[Architecture, str]:
    """A sentence for each architecture that something is not to be had for."""
    return lacking_of(every_section(recipe))


def lacking_of(sections: Iterable[PlacedSection]) -> dict[Architecture, str]:
    """As `lacking`, of some sections."""
    found: dict[Architecture, str] = {}
    for placed in sections:
        section = placed.section
        if not isinstance(section, Binary | Archive):
            continue
        there = ", ".join(sorted(section.artifacts))
        for architecture in get_args(Architecture):
            if architecture not in section.artifacts:
                text = f"{placed.where}.artifacts: nothing for {architecture}; there is {there}"
                found.setdefault(architecture, text)
    return found


class Problem(Struct, frozen=True):
    """Something that parses but is not built, and the command that mends it."""

    where: Place
    text: str
    mend: str  # the rest of a command line: "recipe fix x.json"; "" where none can

    @property
    def sentence(self) -> str:
        mend = f"; mend it with: sanduk {self.mend}" if self.mend else ""
        return f"{self.where}{_line(self.where)}: {self.text}{mend}"


def problems(recipe: Recipe) -> Iterator[Problem]:
    """Everything about a recipe and its kits that is not built, in the order it is written."""
    if not is_image_name(recipe.base):
        text = f"{recipe.base} is no name of an image; write it like {EXAMPLES}"
        yield Problem(recipe.place("base"), text, "")
    yield from _account(recipe)
    for placed in recipe.sections:
        yield from section_problems(
            placed.section, placed.where, mending("recipe fix", placed.where.file)
        )
    for kit in recipe.kits:
        yield from kit_problems(kit, kit.asked.file if kit.pinned and kit.asked else None)


def kit_problems(kit: Kit, pinned_by: Path | None) -> Iterator[Problem]:
    """Everything about a kit that is not built.

    Args:
        pinned_by: the file whose pins are to be renewed when a copied file has none, which only a
            pinned kit must; None for one that nothing pins.
    """
    fix = mending("recipe fix", kit.path)
    if "HOME" in kit.env:
        place = Place(Path(kit.path), "$.env.HOME")
        yield Problem(place, "it follows from the recipe's home; leave it out", fix)
    for placed in kit.tools:
        section = placed.section
        yield from section_problems(section, placed.where, fix)
        if pinned_by and isinstance(section, Copy) and section.sha256 is UNSET:
            yield Problem(
                placed.where,
                f"a pinned kit gives the sha256 of the file it copies ({section.source})",
                mending("kit pin", pinned_by),
            )


def every_section(recipe: Recipe) -> Iterator[PlacedSection]:
    """The recipe's sections and its kits' tools."""
    yield from recipe.sections
    for kit in recipe.kits:
        yield from kit.tools


def _account(recipe: Recipe) -> Iterator[Problem]:
    if recipe.user == "root":
        where = recipe.place("user")
        yield Problem(
            where,
            "an agent never runs as root; name another user",
            mending("recipe fix", where.file),
        )
    if is_system_directory(recipe.home):
        where = recipe.place("home")
        yield Problem(
            where,
            f"{recipe.home} belongs to the system; use /home/{recipe.user}",
            mending("recipe fix", where.file),
        )
    if "HOME" in recipe.env:
        where = recipe.place("env.HOME")
        yield Problem(
            where, "it follows from $.home; leave it out", mending("recipe fix", where.file)
        )


def is_system_directory(home: str) -> bool:
    """Whether a home there would open a part of the system to the agent."""
    first, *rest = home.strip("/").split("/")
    return first in _SYSTEM or (first == "var" and not rest)


def exact_version(section: Npm | Pip, version: str) -> bool:
    """Whether a version, in the words of the section's kind, is one and no other."""
    return (_SEMVER if isinstance(section, Npm) else _PEP440).fullmatch(version) is not None


def section_problems(section: Section, where: Place, mend: str) -> Iterator[Problem]:
    """What is not built of one section: versions that may be several, and flags not allowed."""
    if isinstance(section, Npm):
        flags, joint = _NPM_FLAGS, "@"
    elif isinstance(section, Pip):
        flags, joint = _PIP_FLAGS, "=="
    else:
        return
    for index, spec in enumerate(section.install):
        name, _, version = spec.rpartition(joint) if joint == "@" else spec.partition(joint)
        if not exact_version(section, version):
            wanted = f"{name}{joint}1.2.3"
            yield Problem(
                where.below(f".install[{index}]"),
                f"{spec} may be several versions; give one exactly, like {wanted}",
                f"{mend} --exact {wanted}",
            )
    for index, flag in enumerate(section.flags):
        if flag not in flags:
            yield Problem(
                where.below(f".flags[{index}]"),
                f"{flag} is not allowed, as it may change where packages come from; "
                f"allowed are {', '.join(sorted(flags))}",
                mend,
            )


def _line(where: Place) -> str:
    try:
        line = line_of(where.file.read_text("utf-8"), where.path)
    except (OSError, ValueError):
        return ""
    return f" (line {line})" if line else ""
