"""Rewriting recipe and kit files: pins to what is there now, and what is not built to what is.

Nothing is written here: each function gives the changes, and `Change.write` is for whoever has
shown them and was told to.
"""

from __future__ import annotations

import difflib
import hashlib
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import UNSET, Struct

from recipes import catalog, edits, strict_json
from recipes.kits import read_kit
from recipes.pins import exact_version, is_system_directory, section_problems
from recipes.placed import Place
from recipes.resolve import read_recipe
from recipes.schema import Copy, Npm, Pip, RecipeError, RecipeFile, Section, parse_kit
from recipes.skills import files_below


class Change(Struct, frozen=True):
    """A file and what it would hold."""

    file: Path
    before: str
    after: str

    def diff(self) -> str:
        """As `diff -u` prints it."""
        name = str(self.file)
        lines = difflib.unified_diff(
            self.before.splitlines(keepends=True),
            self.after.splitlines(keepends=True),
            name,
            name,
        )
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)

    def write(self) -> None:
        """Put it in the file's place at once, with its mode. Raises OSError, or RecipeError when
        the file is no longer what the change was made from."""
        file = self.file.resolve()
        if file.read_bytes() != self.before.encode():
            raise RecipeError(f"{file} has changed meanwhile; nothing was written to it")
        descriptor, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
        try:
            with os.fdopen(descriptor, "wb") as scratch:
                scratch.write(self.after.encode())
            Path(name).chmod(file.stat().st_mode & 0o7777)
            Path(name).replace(file)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


class Mended(Struct, frozen=True):
    """The changes, in the order to write them; what to tell of them; and what is left to do."""

    changes: tuple[Change, ...]
    told: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


def pin(path: Path) -> Mended:
    """Pins rewritten to what the pinned files hold now.

    For a recipe: the pins of its own kits. For a kit, also one that such a recipe names and that is
    neither shipped nor a package's: the hashes of its skills' and copied files.

    Raises:
        RecipeError: something of it cannot be found or read, or it is shipped with sanduk.
    """
    _refuse_shipped(path)
    if path.name == "kit.json":
        change = _pinned_kit(path)
        return Mended((change,) if change else (), _of_kit(path, change))
    text, document = _read(path)
    changes: list[Change] = []
    told: list[str] = []
    after = text
    entries = document.get("kits", [])
    for index, entry in enumerate(entries if isinstance(entries, list) else []):
        where = Place(path, f"$.kits[{index}]")
        kit = _kit_of(entry, where)
        own = "path" in entry or kit.is_relative_to(catalog.user_directory("kit"))
        change = _pinned_kit(kit) if own else None
        told += _of_kit(kit, change)
        if change:
            changes.append(change)
        data = change.after.encode() if change else kit.read_bytes()
        was, now = entry.get("sha256"), hashlib.sha256(data).hexdigest()
        if was is None:
            key = "name" if "name" in entry else "path"
            after = edits.add_after(after, f"{where.path}.{key}", "sha256", now)
            told.append(f"kit {kit.parent.name} is pinned at {now}")
        elif was != now:
            after = edits.put(after, f"{where.path}.sha256", now)
            told.append(f"kit {kit.parent.name} was pinned at {was}, is pinned at {now}")
    if after != text:
        changes.append(Change(path, text, after))
    return Mended(tuple(changes), tuple(told))


def fix(path: Path, versions: Mapping[str, str]) -> Mended:
    """What is read but not built, rewritten as far as the file alone tells how.

    Args:
        path: a recipe or a kit.json.
        versions: the exact version by package name, for what names several.

    Raises:
        RecipeError: it cannot be read, or is shipped with sanduk.
    """
    _refuse_shipped(path)
    text, _ = _read(path)
    after, left = text, []
    if path.name == "kit.json":
        kit, _ = read_kit(path)
        key, sections, env = "tools", kit.tools, kit.env
    else:
        recipe = read_recipe(path)
        key, sections, env = "sections", recipe.sections, recipe.env
        after = _fixed_account(after, recipe)
    if "HOME" in env:
        after = edits.drop(after, "$.env.HOME")
    for index, section in enumerate(sections):
        where = Place(path, f"$.{key}[{index}]")
        after, more = _fixed_section(after, section, where, versions)
        left += more
    return Mended((Change(path, text, after),) if after != text else (), left=tuple(left))


def _fixed_account(text: str, recipe: RecipeFile) -> str:
    user = recipe.user
    if user == "root":
        user = "agent"
        text = edits.put(text, "$.user", user)
    if isinstance(recipe.home, str) and is_system_directory(recipe.home):
        name = user if isinstance(user, str) else "agent"
        text = edits.put(text, "$.home", f"/home/{name}")
    return text


def _fixed_section(
    text: str, section: Section, where: Place, versions: Mapping[str, str]
) -> tuple[str, list[str]]:
    if isinstance(section, Copy) and isinstance(section.sha256, str):
        data = where.below(".from").read(section.source).content
        if (now := hashlib.sha256(data).hexdigest()) != section.sha256:
            text = edits.put(text, f"{where.path}.sha256", now)
    if not isinstance(section, Npm | Pip):
        return text, []
    left: list[str] = []
    joint = "@" if isinstance(section, Npm) else "=="
    # backwards: a flag that goes would else move those after it
    for problem in reversed(list(section_problems(section, where, "recipe fix"))):
        if ".flags[" in problem.where.path:
            text = edits.drop(text, problem.where.path)
            continue
        index = int(problem.where.path.rpartition("[")[2].rstrip("]"))
        name = section.install[index].rpartition(joint)[0]
        version = versions.get(name, "")
        if exact_version(section, version):
            text = edits.put(text, problem.where.path, f"{name}{joint}{version}")
        else:
            left.append(f"{problem.where}: {problem.text}: --exact {name}{joint}1.2.3")
    return text, left


def _pinned_kit(path: Path) -> Change | None:
    """A kit.json with the hashes its files have now; None when they are these already."""
    text, document = _read(path)
    kit = parse_kit(text.encode(), str(path))
    after = text
    for index, tool in enumerate(kit.tools):
        if not isinstance(tool, Copy):
            continue
        where = Place(path, f"$.tools[{index}]")
        now = hashlib.sha256(where.below(".from").read(tool.source).content).hexdigest()
        if tool.sha256 is UNSET:
            after = edits.add_after(after, f"{where.path}.from", "sha256", now)
        elif tool.sha256 != now:
            after = edits.put(after, f"{where.path}.sha256", now)
    for index, skill in enumerate(document.get("skills", [])):
        if "path" in skill:
            after = _pinned_skill(after, skill, Place(path, f"$.skills[{index}]"))
    return Change(path, text, after) if after != text else None


def _pinned_skill(text: str, skill: Mapping[str, Any], where: Place) -> str:
    directory, listed = skill["path"], dict(skill["files"])
    there = files_below(where.below(".path"), directory)
    known = [name for name in listed if name in there]
    if not known:
        raise RecipeError(f"{where}.files: none of them is in {directory}")
    for name in [name for name in listed if name not in there]:
        text = edits.drop(text, f"{where.path}.files.{name}")
    for name in known:
        now = _hash_of(where, f"{directory}/{name}")
        if listed[name] != now:
            text = edits.put(text, f"{where.path}.files.{name}", now)
    last = known[-1]
    for name in sorted(there - set(listed)):
        now = _hash_of(where, f"{directory}/{name}")
        text = edits.add_after(text, f"{where.path}.files.{last}", name, now)
        last = name
    return text


def _hash_of(where: Place, relative: str) -> str:
    return hashlib.sha256(where.below(".files").read(relative).content).hexdigest()


def _of_kit(path: Path, change: Change | None) -> tuple[str, ...]:
    return (f"kit {path.parent.name}: the hashes of its files are renewed",) if change else ()


def _kit_of(entry: Any, where: Place) -> Path:
    if not isinstance(entry, dict) or not isinstance(entry.get("name", entry.get("path")), str):
        raise RecipeError(f"{where}: a kit is given by exactly one of name and path")
    spec = entry["name"] if "name" in entry else entry["path"]
    try:
        if "path" in entry and "/" not in spec:
            spec = f"./{spec}"
        return catalog.find_kit(spec, where.file.parent)
    except RecipeError as error:
        raise RecipeError(f"{where}: {error}") from None


def _read(path: Path) -> tuple[str, dict[str, Any]]:
    try:
        data = path.read_bytes()
        document = strict_json.decode(data)
    except OSError as error:
        raise RecipeError(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise RecipeError(f"{path}: {error}") from None
    if not isinstance(document, dict):
        raise RecipeError(f"{path}: $: expected object")
    return data.decode(), document


def _refuse_shipped(path: Path) -> None:
    if path.is_relative_to(catalog.SHIPPED):
        raise RecipeError(f"{path} is shipped with sanduk; copy it under another name to change it")
