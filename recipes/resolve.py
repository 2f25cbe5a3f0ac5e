"""From recipe files to one resolved recipe: inheritance and removal.

Every inherited thing remembers the file it comes from. A recipe that replaces or removes
something supersedes *that file's* version of it, and a superseded version never comes back by
another parent: in a diamond, what one side changed or removed stays so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType

from recipes import catalog
from recipes.files import MAX_FILE_BYTES, FileContent, read_inside
from recipes.schema import (
    Copy,
    InstructionsText,
    KitPin,
    RecipeError,
    RecipeFile,
    Removal,
    Section,
    parse,
)

_Kind = Literal["value", "section", "kit", "env", "instructions"]
_Key = tuple[_Kind, str]
_SCALARS = ("description", "agent", "base", "user", "home", "entrypoint")
_REQUIRED = {"agent": "agent", "base": "from", "user": "user", "home": "home"} | {
    "entrypoint": "entrypoint"
}


class PlacedSection(Struct, frozen=True):
    """A section with the recipe that wrote it, and the file it copies."""

    section: Section
    owner: str
    where: str  # file and JSON path, for refusals
    file: FileContent | None = None


class Recipe(Struct, frozen=True):
    """One image's description, complete: inheritance applied, copied files read."""

    name: str
    description: str
    agent: str
    base: str  # the image it starts from
    user: str
    home: str
    entrypoint: tuple[str, ...]
    env: Mapping[str, str]
    sections: tuple[PlacedSection, ...]
    kits: tuple[KitPin, ...]
    instructions: tuple[str, ...]  # texts, ancestors first
    path: str


class _Item(Struct, frozen=True):
    origin: Path
    where: str
    owner: str
    value: Any


class _Layer:
    """What one recipe gives to its children."""

    def __init__(self) -> None:
        self.items: dict[_Key, _Item] = {}
        self.superseded: set[tuple[_Key, Path]] = set()

    def inherit(self, parents: list[_Layer]) -> None:
        for parent in parents:
            self.superseded |= parent.superseded
        for parent in parents:
            for key, item in parent.items.items():
                if (key, item.origin) not in self.superseded:
                    self.put(key, item)

    def put(self, key: _Key, item: _Item) -> None:
        """Append it, or replace in place what has this key."""
        before = self.items.get(key)
        if before is not None and before.origin != item.origin:
            self.superseded.add((key, before.origin))
        self.items[key] = item

    def drop(self, key: _Key) -> None:
        self.superseded.add((key, self.items.pop(key).origin))

    def values(self, kind: _Kind) -> dict[str, _Item]:
        return {name: item for (of, name), item in self.items.items() if of == kind}


def load(spec: str, relative_to: Path | None = None) -> Recipe:
    """Find a recipe by name or path and resolve it.

    Args:
        spec: see `recipes.catalog.find`.
        relative_to: where a relative path starts; the current directory when None.

    Raises:
        RecipeError: it, or something it inherits, cannot be found, read or understood.
    """
    path = catalog.find(spec, relative_to)
    layers: dict[Path, _Layer] = {}
    return _finish(path, _layer(path, (), layers))


def _layer(path: Path, chain: tuple[Path, ...], known: dict[Path, _Layer]) -> _Layer:
    if path in chain:
        names = [step.stem for step in (*chain[chain.index(path) :], path)]
        raise RecipeError(f"{path}: $.inherits: a cycle: {' -> '.join(names)}")
    if path in known:
        return known[path]
    recipe = _read(path)
    parents = []
    for index, spec in enumerate(recipe.parents):
        try:
            parent = catalog.find(spec, path.parent)
        except RecipeError as error:
            raise RecipeError(f"{path}: $.inherits[{index}]: {error}") from None
        parents.append(_layer(parent, (*chain, path), known))
    layer = _Layer()
    layer.inherit(parents)
    if isinstance(recipe.remove, Removal):
        _remove(layer, recipe, recipe.remove, path)
    for key, item in _own(recipe, path):
        layer.put(key, item)
    known[path] = layer
    return layer


def _read(path: Path) -> RecipeFile:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES)
    except OSError as error:
        raise RecipeError(f"{path}: {error.strerror}") from None
    recipe = parse(data, str(path))
    if recipe.name != path.stem:
        raise RecipeError(
            f"{path}: $.name: {recipe.name} is not the file's name; expected {path.stem}"
        )
    return recipe


def _remove(layer: _Layer, recipe: RecipeFile, remove: Removal, path: Path) -> None:
    added: dict[_Kind, set[str]] = {
        "section": {section.name for section in recipe.sections},
        "kit": {kit.key for kit in recipe.kits},
        "env": set(recipe.env),
    }
    asked: list[tuple[_Kind, str, list[str] | UnsetType]] = [
        ("section", "sections", remove.sections),
        ("kit", "kits", remove.kits),
        ("env", "env", remove.env),
    ]
    for kind, json_key, names in asked:
        for name in () if isinstance(names, UnsetType) else names:
            where = f"{path}: $.remove.{json_key}"
            if name in added[kind]:
                raise RecipeError(f"{where}: this recipe itself adds {name}; leave one out")
            if (kind, name) not in layer.items:
                raise RecipeError(f"{where}: {name} is not inherited")
            layer.drop((kind, name))
    for type_ in () if isinstance(remove.section_types, UnsetType) else remove.section_types:
        of_type = [
            name
            for name, item in layer.values("section").items()
            if type(item.value).__struct_config__.tag == type_
        ]
        if not of_type:
            raise RecipeError(
                f"{path}: $.remove.section_types: no section of type {type_} is inherited"
            )
        for name in of_type:
            layer.drop(("section", name))


def _own(recipe: RecipeFile, path: Path) -> Iterator[tuple[_Key, _Item]]:
    """Everything the file itself says, in the order it counts."""

    def item(place: str, value: Any) -> _Item:
        return _Item(path, f"{path}: $.{place}", recipe.name, value)

    for name in _SCALARS:
        value = getattr(recipe, name)
        if value is not UNSET:
            yield ("value", name), item(_REQUIRED.get(name, name), value)
    for index, section in enumerate(recipe.sections):
        yield ("section", section.name), item(f"sections[{index}]", section)
    for index, kit in enumerate(recipe.kits):
        yield ("kit", kit.key), item(f"kits[{index}]", kit)
    for name, text in recipe.env.items():
        yield ("env", name), item(f"env.{name}", text)
    if recipe.instructions is not UNSET:
        # Keyed by the file: what two parents share is said once.
        yield ("instructions", str(path)), item("instructions", recipe.instructions)


def _finish(path: Path, layer: _Layer) -> Recipe:
    values = {name: item.value for name, item in layer.values("value").items()}
    missing = [json_key for name, json_key in _REQUIRED.items() if name not in values]
    if missing:
        raise RecipeError(f"{path}: $: not set here and not inherited: {', '.join(missing)}")
    return Recipe(
        name=path.stem,
        description=values.get("description", ""),
        agent=values["agent"],
        base=values["base"],
        user=values["user"],
        home=values["home"],
        entrypoint=tuple(values["entrypoint"]),
        env={name: item.value for name, item in layer.values("env").items()},
        sections=tuple(_placed(item) for item in layer.values("section").values()),
        kits=tuple(item.value for item in layer.values("kit").values()),
        instructions=tuple(_text(item) for item in layer.values("instructions").values()),
        path=str(path),
    )


def _placed(item: _Item) -> PlacedSection:
    section = item.value
    file = _file(item, section.source, ".from") if isinstance(section, Copy) else None
    return PlacedSection(section, item.owner, item.where, file)


def _text(item: _Item) -> str:
    if isinstance(item.value, InstructionsText):
        text = item.value.text
    else:
        try:
            text = _file(item, item.value, "").content.decode()
        except UnicodeDecodeError:
            raise RecipeError(f"{item.where}: {item.value} is not UTF-8") from None
    if not text.strip():
        raise RecipeError(f"{item.where}: the instructions are blank")
    return text.strip("\n") + "\n"


def _file(item: _Item, relative: str, place: str) -> FileContent:
    try:
        return read_inside(str(item.origin.parent), relative)
    except OSError as error:
        raise RecipeError(f"{item.where}{place}: {relative}: {error.strerror}") from None
    except ValueError as error:
        raise RecipeError(f"{item.where}{place}: {relative}: {error}") from None
