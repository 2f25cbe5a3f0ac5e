"""Skills: directories that an agent reads when it needs them, each led by a SKILL.md.

A kit either holds one, listed file by file with its hash, or has the build fetch a single SKILL.md.
The format of SKILL.md, a front matter with `name` and `description`: https://agentskills.io.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from recipes.files import FileContent
from recipes.placed import Place, mending
from recipes.schema import RecipeError, Skill

MAIN = "SKILL.md"
MAX_FILES = 2000
_KEY = re.compile(r"([A-Za-z0-9_-]+):(?:[ \t]+(.*))?")
_BLOCK = re.compile(r"[|>][+-]?[1-9]?[+-]?")
_ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\", "/": "/", "0": "\0", "r": "\r"}


class Download(Struct, frozen=True):
    """What the build fetches and verifies."""

    url: str
    sha256: str


class PlacedSkill(Struct, frozen=True):
    """A skill with its files as they were verified, or with what is to be fetched."""

    name: str
    files: Mapping[str, FileContent]
    download: Download | None = None


def placed_skill(skill: Skill, where: Place) -> PlacedSkill:
    """Read and verify a skill.

    Args:
        where: its place in the kit file.

    Raises:
        RecipeError: listing and directory differ, in names or in content, or SKILL.md is none.
    """
    if isinstance(skill.url, str):
        return PlacedSkill(skill.key, {}, Download(skill.url, str(skill.sha256)))
    listed = skill.files if isinstance(skill.files, dict) else {}
    directory = str(skill.path)
    found = files_below(where.below(".path"), directory)
    at = where.below(".files")
    if missing := sorted(set(listed) - found):
        raise RecipeError(f"{at}: {directory} has no file {missing[0]}{_repin(listed, found, at)}")
    if unlisted := sorted(found - set(listed)):
        raise RecipeError(
            f"{at}: {directory}/{unlisted[0]} is there but not listed{_repin(listed, found, at)}"
        )
    if MAIN not in listed:
        raise RecipeError(f"{at}: a skill has a file {MAIN}")
    files: dict[str, FileContent] = {}
    for name, sha256 in listed.items():
        files[name] = at.read(f"{directory}/{name}")
        at.check(f"{directory}/{name}", files[name].content, sha256)
    _check_main(files[MAIN].content, skill.key, f"{at}: {directory}/{MAIN}")
    return PlacedSkill(skill.key, files)


def _repin(listed: Mapping[str, str], found: set[str], at: Place) -> str:
    """The command that writes the list anew, where what is there can be a skill."""
    if MAIN not in found or not found & set(listed):
        return ""
    return f"; look at what changed, then: sanduk {mending('kit pin', at.file)}"


def files_below(where: Place, directory: str) -> set[str]:
    """The relative paths of the regular files below a directory beside a kit file.

    Raises:
        RecipeError: there is something else, such as a symbolic link, or more than MAX_FILES.
    """
    root = where.file.parent / directory
    found: set[str] = set()
    waiting = [root]
    try:
        for step in (root, *root.parents):
            if step == where.file.parent:
                break
            if step.is_symlink():
                raise RecipeError(f"{where}: {step}: a symbolic link is not followed")
        while waiting:
            here = waiting.pop()
            for entry in sorted(os.scandir(here), key=lambda each: each.name):
                mode = entry.stat(follow_symlinks=False).st_mode
                if stat.S_ISDIR(mode):
                    waiting.append(Path(entry.path))
                elif stat.S_ISREG(mode):
                    found.add(Path(entry.path).relative_to(root).as_posix())
                else:
                    kind = "a symbolic link" if stat.S_ISLNK(mode) else "no regular file"
                    raise RecipeError(f"{where}: {entry.path} is {kind}; a skill has plain files")
                if len(found) > MAX_FILES:
                    raise RecipeError(f"{where}: more than {MAX_FILES} files")
    except OSError as error:
        raise RecipeError(f"{where}: {directory}: {error.strerror}") from None
    return found


def _check_main(content: bytes, name: str, where: str) -> None:
    try:
        told = front_matter(content.decode())
    except UnicodeDecodeError:
        raise RecipeError(f"{where}: not UTF-8") from None
    except ValueError as error:
        raise RecipeError(f"{where}: {error}") from None
    if told.get("name") != name:
        has = f"{told['name']!r}" if "name" in told else "nothing"
        raise RecipeError(
            f"{where}: its name must be {name}, as its directory is called; it says {has}"
        )
    if not told.get("description", "").strip():
        raise RecipeError(f"{where}: its front matter needs a description that is not empty")


def front_matter(text: str) -> dict[str, str]:
    """The top-level scalars of a SKILL.md's front matter.

    Reads the part of YAML that scalars of one mapping are written in: plain, quoted, over several
    lines, block (`|`, `>`), with comments. The values of nested keys are passed over.

    Raises:
        ValueError: there is no front matter, or a line of it is none of these.
    """
    lines = text.removeprefix("\ufeff").splitlines()
    if not lines or lines[0].rstrip() != "---":
        raise ValueError("it must begin with a front matter between lines of ---")
    ends = [index for index, line in enumerate(lines[1:], 1) if line.rstrip() in ("---", "...")]
    if not ends:
        raise ValueError("its front matter has no end, which is a line of ---")
    found: dict[str, str] = {}
    at = 1
    while at < ends[0]:
        line = lines[at]
        at += 1
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _KEY.fullmatch(line.rstrip())
        if match is None:
            raise ValueError(f"line {at} of its front matter is not `key: value`")
        if match[1] in found:
            raise ValueError(f"its front matter has {match[1]} twice")
        begin = at
        while at < ends[0] and (not lines[at].strip() or lines[at][:1] in " \t-"):
            at += 1
        found[match[1]] = _scalar((match[2] or "").strip(), lines[begin:at])
    return found


def _scalar(first: str, more: list[str]) -> str:
    """A value from the rest of its line and the indented lines below it."""
    if _BLOCK.fullmatch(first.partition(" #")[0].rstrip()):
        joint = "\n" if first.startswith("|") else " "
        return joint.join(line.strip() for line in more).strip()
    if first.startswith("#"):
        first = ""
    words = " ".join([first, *(line.strip() for line in more)]).strip()
    if first.startswith(('"', "'")):
        return _quoted(words)
    return re.split(r"\s#", words)[0].strip()


def _quoted(words: str) -> str:
    quote = words[0]
    if quote == "'":
        match = re.fullmatch(r"'((?:[^']|'')*)'\s*(?:#.*)?", words)
        if match:
            return match[1].replace("''", "'")
    else:
        match = re.fullmatch(r'"((?:[^"\\]|\\.)*)"\s*(?:#.*)?', words)
        if match:
            return re.sub(r"\\(.)", lambda each: _ESCAPES.get(each[1], each[0]), match[1])
    raise ValueError(f"its front matter has a value whose {quote} is not closed")
