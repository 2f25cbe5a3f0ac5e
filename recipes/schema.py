"""The formats: what a recipe and a kit file may say, and an error that names where one does not.

The keys are those of sanduk 0.3, so its recipes load unchanged. What sanduk 0.3 accepted and we no
longer build (a version range, another registry) still parses; `recipes.pins` refuses it later.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from recipes import strict_json

# `$` also matches before a last newline in Python; the look-ahead forbids that, in any dialect.
_END = r"$(?!\n)"
_SEGMENT = r"(?!\.{1,2}(?:/|$))[A-Za-z0-9._+@%~ -]+"
_MEANINGS: dict[str, str] = {}


def _text(pattern: str, meaning: str) -> Meta:
    """A constraint on a string, and the words an error says instead of the expression."""
    whole = f"^{pattern}{_END}"
    _MEANINGS[whole] = meaning
    return Meta(pattern=whole)


_A_NAME = re.compile("[a-z0-9]+(?:-+[a-z0-9]+)*")
_File = TypeVar("_File", bound=Struct)
Name = Annotated[str, _text(_A_NAME.pattern, "a name of lower-case letters, digits and hyphens")]
SectionName = Annotated[
    str, _text("[A-Za-z0-9][A-Za-z0-9._-]*", "a name of letters, digits, dots, hyphens and _")
]
AgentName = Annotated[str, _text("[A-Za-z0-9][A-Za-z0-9._:-]*", "the name of an agent")]
ImageName = Annotated[
    str, _text("[A-Za-z0-9][A-Za-z0-9._/:@-]*", "an image name like node:22-slim")
]
UserName = Annotated[str, _text("[a-z_][a-z0-9_-]{0,31}", "a lower-case user name")]
AbsolutePath = Annotated[str, _text(f"(?:/{_SEGMENT})+", "an absolute path without . or ..")]
RelativePath = Annotated[
    str,
    _text(f"{_SEGMENT}(?:/{_SEGMENT})*", "a relative path without . or .. that stays below"),
]
# No control characters, of C0 (but the tab) and C1, no ends of lines and nothing that turns the
# direction of writing: what is shown is what is done.
_TURNING = r"\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
OneLine = Annotated[
    str,
    _text(
        rf"[^\x00-\x08\x0a-\x1f\x7f-\x9f{_TURNING}]*",
        "text on a single line, without control characters",
    ),
]
Description = Annotated[OneLine, Meta(max_length=500)]
EnvName = Annotated[str, _text("[A-Za-z_][A-Za-z0-9_]*", "the name of a variable")]
Sha256 = Annotated[str, _text("[0-9a-f]{64}", "a SHA-256 of 64 lower-case hex digits")]
Url = Annotated[str, _text(r"https://[!-~]+", "an https:// address")]
Mode = Annotated[str, _text("[0-7]{3,4}", "an octal mode like 0755")]
Flag = Annotated[
    str, _text("--?[a-z][a-z-]*(?:=[A-Za-z0-9._/:-]+)?", "a flag like --ignore-scripts")
]
_SPEC_CHARACTERS = "A-Za-z0-9._+:@/~=<>!,-"
AptSpec = Annotated[str, _text(f"[A-Za-z0-9@][{_SPEC_CHARACTERS}]*", "the name of a package")]
NpmSpec = Annotated[
    str,
    _text(
        f"(?:@[A-Za-z0-9._~-]+/)?[A-Za-z0-9._~-]+@[0-9][{_SPEC_CHARACTERS}]*",
        "a package with its version, like name@1.2.3",
    ),
]
PipSpec = Annotated[
    str,
    _text(
        f"[A-Za-z0-9][A-Za-z0-9._-]*==[0-9][{_SPEC_CHARACTERS}]*",
        "a package with its version, like name==1.2.3",
    ),
]
Some = Meta(min_length=1)
Architecture = Literal["amd64", "arm64"]
SectionType = Literal["apt", "npm", "pip", "binary", "archive", "copy", "run"]


class RecipeError(Exception):
    """A recipe that cannot be used; the text names the file, the place in it and what is wrong."""


class UnpinnedKit(RecipeError):
    """A recipe names a kit without its hash."""


class _Section(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="type"):
    name: SectionName
    description: Description = ""


class Apt(_Section, frozen=True, tag="apt"):
    """Distribution packages, installed without recommends. Not pinned: the archive moves."""

    install: Annotated[list[AptSpec], Some]


class Npm(_Section, frozen=True, tag="npm"):
    """npm packages, installed globally."""

    install: Annotated[list[NpmSpec], Some]
    flags: list[Flag] = []


class Pip(_Section, frozen=True, tag="pip"):
    """Python packages, installed into the image's interpreter."""

    install: Annotated[list[PipSpec], Some]
    flags: list[Flag] = []


class BinaryArtifact(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    url: Url
    sha256: Sha256
    member: RelativePath | UnsetType = UNSET  # set: the download is an archive that holds it


class Binary(_Section, frozen=True, tag="binary"):
    """One downloaded program, verified and installed 0755."""

    artifacts: Annotated[dict[Architecture, BinaryArtifact], Some]
    path: AbsolutePath | UnsetType = UNSET  # else /usr/local/bin/<name>

    def __post_init__(self) -> None:
        if len({artifact.member is UNSET for artifact in self.artifacts.values()}) > 1:
            raise ValueError("either every artifact has a member or none has")


class ArchiveArtifact(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    url: Url
    sha256: Sha256
    strip: Annotated[int, Meta(ge=0, le=64)] = 0  # leading path segments to drop


class Archive(_Section, frozen=True, tag="archive"):
    """A downloaded tar archive, verified and unpacked into `dest`."""

    artifacts: Annotated[dict[Architecture, ArchiveArtifact], Some]
    dest: AbsolutePath
    links: dict[AbsolutePath, RelativePath] = {}  # link: what it points to, below dest


class Copy(_Section, frozen=True, tag="copy"):
    """A file from beside the recipe or the kit."""

    source: RelativePath = msgspec.field(name="from")
    to: AbsolutePath
    sha256: Sha256 | UnsetType = UNSET  # of its bytes; a pinned kit is not built without
    mode: Mode | UnsetType = UNSET  # else 0755 for an executable file and 0644 for another


class Run(_Section, frozen=True, tag="run"):
    """Lines of POSIX shell, run with `sh -eu` while the image is built."""

    lines: Annotated[list[OneLine], Some]
    user: Literal["root", "agent"] = "root"


Section = Apt | Npm | Pip | Binary | Archive | Copy | Run


class KitPin(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A kit by name or path, and the SHA-256 of its kit.json."""

    sha256: Sha256
    name: Name | UnsetType = UNSET
    path: Annotated[str, Some] | UnsetType = UNSET  # relative to the recipe file

    def __post_init__(self) -> None:
        if (self.name is UNSET) == (self.path is UNSET):
            raise ValueError("a kit is given by exactly one of name and path")

    @property
    def key(self) -> str:
        """The kit's name: a directory of the same name holds it."""
        if isinstance(self.name, str):
            return self.name
        parts = str(self.path).rstrip("/").removesuffix("/kit.json").split("/")
        return parts[-1]


class Skill(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A directory beside the kit with every file's hash, or one SKILL.md fetched by the build."""

    path: RelativePath | UnsetType = UNSET
    files: Annotated[dict[RelativePath, Sha256], Some] | UnsetType = UNSET
    name: Name | UnsetType = UNSET
    url: Url | UnsetType = UNSET
    sha256: Sha256 | UnsetType = UNSET

    def __post_init__(self) -> None:
        given = {key for key in self.__struct_fields__ if getattr(self, key) is not UNSET}
        if given not in ({"path", "files"}, {"name", "url", "sha256"}):
            raise ValueError("a skill has either path and files, or name, url and sha256")
        if isinstance(self.path, str) and not _A_NAME.fullmatch(self.key):
            raise ValueError(
                "a skill's directory has a name of lower-case letters, digits and hyphens"
            )

    @property
    def key(self) -> str:
        """The skill's name: its directory is called so."""
        return self.name if isinstance(self.name, str) else str(self.path).rpartition("/")[2]


class AgentSetup(Struct, frozen=True, forbid_unknown_fields=True):
    """What a kit does for one agent: commands run as the agent's user, each a list of words."""

    setup: list[Annotated[list[OneLine], Some]] = []


class InstructionsText(Struct, frozen=True, forbid_unknown_fields=True):
    text: str


class Removal(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a recipe does not want of what it inherits."""

    sections: Annotated[list[SectionName], Some] | UnsetType = UNSET
    kits: Annotated[list[Name], Some] | UnsetType = UNSET
    env: Annotated[list[EnvName], Some] | UnsetType = UNSET
    section_types: Annotated[list[SectionType], Some] | UnsetType = UNSET


def _exactly_one(*alternatives: list[str]) -> Meta:
    """For editors: what `__post_init__` refuses, in the words of JSON Schema."""
    told = [{"required": each, "maxProperties": len(each)} for each in alternatives]
    return Meta(extra_json_schema={"oneOf": told})


class KitFile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One kit.json as written."""

    name: Name
    description: Description = ""
    tools: list[Section] = []
    skills: list[Annotated[Skill, _exactly_one(["path", "files"], ["name", "url", "sha256"])]] = []
    env: dict[EnvName, OneLine] = {}
    agents: dict[AgentName, AgentSetup] | UnsetType = UNSET  # set: it supports only these
    egress: bool = False  # it is of no use without a network of its own
    provides: list[SectionName] = []  # two kits that provide the same exclude each other
    hook: bool = False  # it installs hooks into the agent
    schema: Any = msgspec.field(name="$schema", default=None)


class RecipeFile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One recipe file as written, before inheritance."""

    name: Name
    description: Description | UnsetType = UNSET
    inherits: str | list[str] | UnsetType = UNSET
    agent: AgentName | UnsetType = UNSET
    base: ImageName | UnsetType = msgspec.field(name="from", default=UNSET)
    user: UserName | UnsetType = UNSET
    home: AbsolutePath | UnsetType = UNSET
    sections: list[Section] = []
    kits: list[Annotated[KitPin, _exactly_one(["name", "sha256"], ["path", "sha256"])]] = []
    remove: Removal | UnsetType = UNSET
    env: dict[EnvName, OneLine] = {}
    entrypoint: Annotated[list[OneLine], Some] | UnsetType = UNSET
    instructions: RelativePath | InstructionsText | UnsetType = UNSET
    schema: Any = msgspec.field(name="$schema", default=None)  # for editors; ignored

    @property
    def parents(self) -> list[str]:
        if isinstance(self.inherits, str):
            return [self.inherits]
        return self.inherits if isinstance(self.inherits, list) else []


def parse(data: bytes, source: str) -> RecipeFile:
    """Read a recipe file.

    Args:
        data: its bytes, UTF-8 JSON.
        source: how errors call the file.

    Raises:
        RecipeError: with the file, the JSON path and what was expected there.
    """
    recipe = _read(data, source, RecipeFile)
    _check_unique(source, "sections", [section.name for section in recipe.sections])
    _check_unique(source, "kits", [kit.key for kit in recipe.kits])
    return recipe


def parse_kit(data: bytes, source: str) -> KitFile:
    """Read a kit.json; arguments and errors as for `parse`."""
    kit = _read(data, source, KitFile)
    _check_unique(source, "tools", [tool.name for tool in kit.tools])
    _check_unique(source, "skills", [skill.key for skill in kit.skills])
    return kit


def _read(data: bytes, source: str, kind: type[_File]) -> _File:
    try:
        document = strict_json.decode(data)
    except ValueError as error:
        raise RecipeError(f"{source}: {error}") from None
    try:
        return msgspec.convert(document, kind)
    except msgspec.ValidationError as error:
        path, text = _plain(str(error), document, kind)
        refused = f"{source}: {path}: {text}"
        if _A_PIN.fullmatch(path) and text == "object missing required field sha256":
            raise UnpinnedKit(refused) from None
        raise RecipeError(refused) from None


def _check_unique(source: str, key: str, names: list[str]) -> None:
    for index, name in enumerate(names):
        if name in names[:index]:
            raise RecipeError(f"{source}: $.{key}[{index}].name: {name} is there twice")


_JSON_TYPES = {"array": "list", "str": "string", "int": "whole number", "bool": "true or false"}
_AT = re.compile(r"(?P<text>.*?) - at (?P<key>`key` in )?`(?P<path>[^`]*)`", re.DOTALL)
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+)\]")
_A_PIN = re.compile(r"\$\.kits\[\d+\]")
_SHOWN_OF_ERROR = 400


def _plain(error: str, document: Any, kind: type[Struct]) -> tuple[str, str]:
    """Where msgspec's error is, and its sentence in the words of JSON."""
    match = _AT.fullmatch(error)
    text, path = (match["text"], match["path"]) if match else (error, "$")
    if match and match["key"]:
        path = f"{_with_key(path, '', error, document, kind)} (a key)"
    elif "[...]" in path:
        start, _, rest = path.partition("[...]")
        path = _with_key(start, rest, error, document, kind)
    for pattern, meaning in _MEANINGS.items():
        text = text.replace(f"`str` matching regex {pattern!r}", meaning)
    text = re.sub(r"`(\w+)` of length >= 1", r"`\1` that is not empty", text)
    text = re.sub(r"`str` of length <= (\d+)", r"a text of at most \1 characters", text)
    text = re.sub(r"`(array|str|int|bool)`", lambda found: _JSON_TYPES[found[1]], text)
    text = text.replace("`", "").replace("nvalid enum value", "nvalid value")
    if len(text) > _SHOWN_OF_ERROR:
        text = f"{text[:_SHOWN_OF_ERROR]}..."
    return path, f"{text[:1].lower()}{text[1:]}"


def _with_key(start: str, rest: str, error: str, document: Any, kind: type[Struct]) -> str:
    """The path with the key that msgspec leaves out: found by halving the object it is in.

    Args:
        start: the path of that object.
        rest: what follows the key.
        document: read again, with ever fewer keys in that object, until one is left.
    """
    holder = document
    for name, index in _STEP.findall(start):
        holder = holder[name] if name else holder[int(index)]
    keys = list(holder.items())
    while len(keys) > 1:
        half = keys[: len(keys) // 2]
        holder.clear()
        holder.update(half)
        try:
            msgspec.convert(document, kind)
            found = False
        except msgspec.ValidationError as again:
            found = str(again) == error
        keys = half if found else keys[len(half) :]
    return strict_json.below(start, keys[0][0]) + rest
