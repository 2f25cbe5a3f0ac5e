"""From recipe files to one resolved recipe: inheritance and removal.

Every inherited thing remembers the file it comes from. A recipe that replaces or removes
something supersedes *that file's* version of it, and a superseded version never comes back by
another parent: in a diamond, what one side changed or removed stays so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType

from recipes import catalog
from recipes.files import MAX_FILE_BYTES
from recipes.kits import Kit, load_kit, pinned_kit, refuse_together
from recipes.placed import Place, PlacedSection, mending, placed
from recipes.schema import InstructionsText, RecipeError, RecipeFile, Removal, UnpinnedKit, parse

_Kind = Literal["value", "section", "kit", "env", "instructions"]
_Key = tuple[_Kind, str]
MAX_ANCESTRY = 32  # recipes of which each inherits the next
_SCALARS = ("description", "agent", "base", "user", "home", "entrypoint")
_REQUIRED = {"agent": "agent", "base": "from", "user": "user", "home": "home"} | {
    "entrypoint": "entrypoint"
}


class Recipe(Struct, frozen=True):
    """One image's description, complete: inheritance applied, kits and copied files read."""

    name: str
    description: str
    agent: str
    base: str  # the image it starts from
    user: str
    home: str
    entrypoint: tuple[str, ...]
    env: Mapping[str, str]
    sections: tuple[PlacedSection, ...]
    places: Mapping[str, Place]  # where single values and variables stand: "user", "env.HOME"
    kits: tuple[Kit, ...]
    instructions: tuple[str, ...]  # texts, ancestors first
    path: str

    def place(self, key: str) -> Place:
        """Where a value stands, in this file or in the one it is inherited from."""
        return self.places.get(key, Place(Path(self.path), f"$.{key}"))


class _Item(Struct, frozen=True):
    where: Place
    owner: str
    value: Any

    @property
    def origin(self) -> Path:
        return self.where.file


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


def load(spec: str, relative_to: Path | None = None, *, kits: Sequence[str] = ()) -> Recipe:
    """Find a recipe by name or path and resolve it.

    Args:
        spec: see `recipes.catalog.find`.
        relative_to: where a relative path starts; the current directory when None.
        kits: more kits, by name or path, which nothing pins.

    Raises:
        RecipeError: it, or something it inherits or names, cannot be found, read or understood,
            is not what was pinned, or does not go together.
    """
    path = catalog.find(spec, relative_to)
    layers: dict[Path, _Layer] = {}
    more = tuple(load_kit(kit, relative_to) for kit in kits)
    return _finish(path, _layer(path, (), layers), more)


def _layer(path: Path, chain: tuple[Path, ...], known: dict[Path, _Layer]) -> _Layer:
    if path in chain:
        names = [step.stem for step in (*chain[chain.index(path) :], path)]
        raise RecipeError(f"{path}: $.inherits: a cycle: {' -> '.join(names)}")
    if path in known:
        return known[path]
    if len(chain) >= MAX_ANCESTRY:
        raise RecipeError(
            f"{chain[0]}: $.inherits: a chain of more than {MAX_ANCESTRY} recipes; "
            "inherit one that is nearer to its end"
        )
    recipe = read_recipe(path)
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


def read_recipe(path: Path) -> RecipeFile:
    """One recipe file as it is written. Raises RecipeError."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES)
    except OSError as error:
        raise RecipeError(f"{path}: {error.strerror}") from None
    try:
        recipe = parse(data, str(path))
    except UnpinnedKit as error:
        raise RecipeError(f"{error}; pin it with: sanduk {mending('kit pin', path)}") from None
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
        return _Item(Place(path, f"$.{place}"), recipe.name, value)

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


def _finish(path: Path, layer: _Layer, more: tuple[Kit, ...]) -> Recipe:
    singles, variables = layer.values("value"), layer.values("env")
    values = {name: item.value for name, item in singles.items()}
    missing = [json_key for name, json_key in _REQUIRED.items() if name not in values]
    if missing:
        raise RecipeError(f"{path}: $: not set here and not inherited: {', '.join(missing)}")
    env = {name: item.value for name, item in variables.items()}
    kits = [pinned_kit(item.value, item.where, item.owner) for item in layer.values("kit").values()]
    kits += more
    refuse_together(kits, values["agent"], env)
    return Recipe(
        name=path.stem,
        description=values.get("description", ""),
        agent=values["agent"],
        base=values["base"],
        user=values["user"],
        home=values["home"],
        entrypoint=tuple(values["entrypoint"]),
        env=env,
        sections=tuple(
            placed(item.value, item.owner, item.where) for item in layer.values("section").values()
        ),
        places={name: item.where for name, item in singles.items()}
        | {f"env.{name}": item.where for name, item in variables.items()},
        kits=tuple(kits),
        instructions=tuple(_text(item) for item in layer.values("instructions").values()),
        path=str(path),
    )


def _text(item: _Item) -> str:
    if isinstance(item.value, InstructionsText):
        text = item.value.text
    else:
        try:
            text = item.where.read(item.value).content.decode()
        except UnicodeDecodeError:
            raise RecipeError(f"{item.where}: {item.value} is not UTF-8") from None
    if not text.strip():
        raise RecipeError(f"{item.where}: the instructions are blank")
    return text.strip("\n") + "\n"
