"""What parses but is not built: an image must be what its recipe says, today and next year.

sanduk 0.3 accepted version ranges, other registries by flag and the user root. Such recipes still
load, so that they can be listed and mended; building them is refused here.
"""

from __future__ import annotations

import re

from recipes.resolve import PlacedSection, Recipe
from recipes.schema import Archive, Binary, Npm, Pip, RecipeError

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


def refuse_unbuildable(recipe: Recipe, architecture: str | None) -> None:
    """Raise RecipeError, naming the place and what would do, when it is not to be built.

    Args:
        architecture: what the image is built for, as Debian calls it; None when unknown.
    """
    if recipe.kits:
        names = ", ".join(kit.key for kit in recipe.kits)
        raise RecipeError(f"{recipe.path}: $.kits: kits are not supported yet ({names})")
    if recipe.user == "root":
        raise RecipeError(f"{recipe.path}: $.user: an agent never runs as root; name another user")
    first, *rest = recipe.home.strip("/").split("/")
    if first in _SYSTEM or (first == "var" and not rest):
        raise RecipeError(
            f"{recipe.path}: $.home: {recipe.home} belongs to the system; use /home/{recipe.user}"
        )
    if "HOME" in recipe.env:
        raise RecipeError(f"{recipe.path}: $.env.HOME: it follows from $.home; leave it out")
    for placed in recipe.sections:
        _check_section(placed, architecture)


def _check_section(placed: PlacedSection, architecture: str | None) -> None:
    section = placed.section
    if isinstance(section, Npm):
        for index, spec in enumerate(section.install):
            if not _SEMVER.fullmatch(spec.rpartition("@")[2]):
                raise RecipeError(
                    f"{placed.where}.install[{index}]: {spec} may be several versions; "
                    "give one exactly, like name@1.2.3"
                )
        _check_flags(placed, section.flags, _NPM_FLAGS)
    elif isinstance(section, Pip):
        for index, spec in enumerate(section.install):
            if not _PEP440.fullmatch(spec.partition("==")[2]):
                raise RecipeError(
                    f"{placed.where}.install[{index}]: {spec} may be several versions; "
                    "give one exactly, like name==1.2.3"
                )
        _check_flags(placed, section.flags, _PIP_FLAGS)
    elif (
        isinstance(section, Binary | Archive)
        and architecture is not None
        and architecture not in section.artifacts
    ):
        raise RecipeError(
            f"{placed.where}.artifacts: nothing for {architecture}; "
            f"there is {', '.join(sorted(section.artifacts))}"
        )


def _check_flags(placed: PlacedSection, flags: list[str], allowed: frozenset[str]) -> None:
    for index, flag in enumerate(flags):
        if flag not in allowed:
            raise RecipeError(
                f"{placed.where}.flags[{index}]: {flag} is not allowed, as it may change where "
                f"packages come from; allowed are {', '.join(sorted(allowed))}"
            )
