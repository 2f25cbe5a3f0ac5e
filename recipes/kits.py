"""Kits: tools, skills and settings that a recipe adds to any agent it suits, pinned by hash.

The pin is the SHA-256 of kit.json, which in turn holds the hash of everything beside it. Every file
is read once: what was hashed is what is built.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import UNSET, Struct

from recipes import catalog
from recipes.files import MAX_FILE_BYTES
from recipes.placed import Place, PlacedSection, mending, placed
from recipes.schema import Apt, KitFile, KitPin, RecipeError, Run, parse_kit
from recipes.skills import PlacedSkill, placed_skill


class Kit(Struct, frozen=True):
    """One kit, complete: its files read and verified."""

    name: str
    sha256: str  # of its kit.json
    path: str
    pinned: bool  # False: named on the command line, without a hash
    asked: Place | None  # where a recipe names it
    description: str
    tools: tuple[PlacedSection, ...]
    skills: tuple[PlacedSkill, ...]
    env: Mapping[str, str]
    agents: Mapping[str, tuple[tuple[str, ...], ...]] | None  # setup commands; None: any agent
    egress: bool
    provides: tuple[str, ...]
    hook: bool

    @property
    def called(self) -> str:
        """How a refusal calls it: where it is named, else the flag that names it."""
        return str(self.asked) if self.asked else f"--kit {self.name}"

    @property
    def marks(self) -> tuple[str, ...]:
        """What to look at before it is used: hooks, network, and tools that no hash covers."""
        types = {type(tool.section) for tool in self.tools}
        marks = [
            *(["hook"] if self.hook else []),
            *(["egress"] if self.egress else []),
            *(["apt"] if Apt in types else []),
            *(["run"] if Run in types else []),
        ]
        if self.agents is not None:
            marks.append(f"agents: {' '.join(sorted(self.agents)) or 'none'}")
        return tuple(marks)


def load_kit(spec: str, relative_to: Path | None = None) -> Kit:
    """Find a kit by name or path and read it whole, without a pin.

    Args:
        spec: see `recipes.catalog.find_kit`.
        relative_to: where a relative path starts; the current directory when None.

    Raises:
        RecipeError: it cannot be found, read or understood, or its files are not those it lists.
    """
    path = catalog.find_kit(spec, relative_to)
    return _complete(path, *read_kit(path), pinned=False, asked=None)


def pinned_kit(pin: KitPin, where: Place, pinning: str) -> Kit:
    """The kit a recipe names.

    Args:
        where: the place of the pin, in the recipe file that wrote it.
        pinning: that recipe's name.

    Raises:
        RecipeError: as `load_kit`, and when kit.json does not have the pinned hash.
    """
    spec = pin.name if isinstance(pin.name, str) else str(pin.path)
    if isinstance(pin.path, str) and "/" not in spec:
        spec = f"./{spec}"  # a path says so by its key already
    try:
        path = catalog.find_kit(spec, where.file.parent)
        kit, sha256 = read_kit(path)
    except RecipeError as error:
        raise RecipeError(f"{where}: {error}") from None
    if sha256 != pin.sha256:
        raise RecipeError(
            f"{where.below('.sha256')}: recipe {pinning} pins kit {pin.key} at {pin.sha256}, "
            f"but {path} has {sha256}; look at what changed, then: "
            f"sanduk {mending('kit pin', where.file)}"
        )
    return _complete(path, kit, sha256, pinned=True, asked=where)


def read_kit(path: Path) -> tuple[KitFile, str]:
    """A kit.json and the SHA-256 of its bytes. Raises RecipeError."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES)
    except OSError as error:
        raise RecipeError(f"{path}: {error.strerror}") from None
    kit = parse_kit(data, str(path))
    if kit.name != path.parent.name:
        raise RecipeError(
            f"{path}: $.name: {kit.name} is not its directory's name; expected {path.parent.name}"
        )
    return kit, hashlib.sha256(data).hexdigest()


def _complete(path: Path, kit: KitFile, sha256: str, *, pinned: bool, asked: Place | None) -> Kit:
    agents = None
    if kit.agents is not UNSET:
        agents = {
            name: tuple(tuple(words) for words in each.setup) for name, each in kit.agents.items()
        }
    return Kit(
        name=kit.name,
        sha256=sha256,
        path=str(path),
        pinned=pinned,
        asked=asked,
        description=kit.description,
        tools=tuple(
            placed(tool, kit.name, Place(path, f"$.tools[{index}]"))
            for index, tool in enumerate(kit.tools)
        ),
        skills=tuple(
            placed_skill(skill, Place(path, f"$.skills[{index}]"))
            for index, skill in enumerate(kit.skills)
        ),
        env=kit.env,
        agents=agents,
        egress=kit.egress,
        provides=tuple(kit.provides),
        hook=kit.hook,
    )


def refuse_together(kits: Sequence[Kit], agent: str, env: Mapping[str, str]) -> None:
    """Raise RecipeError when kits do not go together, or one of them not with the agent.

    Args:
        env: what the recipe itself sets, which settles what kits disagree about.
    """
    names: dict[str, Kit] = {}
    provided: dict[str, Kit] = {}
    skills: dict[str, Kit] = {}
    variables: dict[str, Kit] = {}
    for kit in kits:
        if kit.agents is not None and agent not in kit.agents:
            suits = ", ".join(sorted(kit.agents)) or "no agent"
            raise RecipeError(f"{kit.called}: kit {kit.name} suits {suits}, not {agent}")
        if kit.name in names:
            raise RecipeError(
                f"{kit.called}: there is already a kit {kit.name}, from {names[kit.name].path}"
            )
        names[kit.name] = kit
        for what in kit.provides:
            if what in provided and provided[what] is not kit:
                raise RecipeError(
                    f"{kit.called}: kits {provided[what].name} and {kit.name} both provide {what}; "
                    "leave one out"
                )
            provided[what] = kit
        for skill in kit.skills:
            if skill.name in skills:
                raise RecipeError(
                    f"{kit.called}: kits {skills[skill.name].name} and {kit.name} both hold a "
                    f"skill {skill.name}; leave one out"
                )
            skills[skill.name] = kit
        for name, value in kit.env.items():
            other = variables.setdefault(name, kit)
            if name not in env and other.env[name] != value:
                raise RecipeError(
                    f"{kit.called}: kits {other.name} and {kit.name} set {name} to different "
                    "values; set it in the recipe's own env"
                )
