"""What the operator of this host says of one repository: `SANDUK_HOME/repos/<id>.toml`.

It is never read from a branch: what an agent may write can neither loosen a rule nor choose what
runs on its work. Every key is known, or the file is refused with the line that is wrong.
"""

from __future__ import annotations

import difflib
import re
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from django.conf import settings
from msgspec import Meta

from changes.flag import Severity
from changes.store import place
from runs import duration, tree
from runs.refusal import Refusal
from runs.toml_lines import line_of
from runs.visible import visible

MAX_BYTES = 256 * 1024
_MANY = 200
_PATH = re.compile(r"\$(?:\.([a-z_]+))?(?:\[(\d+)\])?(?:\.([a-z_]+))?")
_UNKNOWN = re.compile(r"unknown field `([^`]*)`")

Text = Annotated[str, Meta(min_length=1, max_length=4000)]
Globs = Annotated[tuple[Text, ...], Meta(min_length=1, max_length=_MANY)]
Category = Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9/-]{0,39}$")]


class _Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    pass


class FlagRule(_Strict, frozen=True):
    """Paths this repository's operator wants to be told of."""

    category: Category
    paths: Globs
    reason: Text
    severity: Severity = "medium"
    second_person: bool = False


class Expected(_Strict, frozen=True):
    """A category that is ordinary in some paths: its flags stay, as `low`, with this reason.

    Secrets, and what the agent's own tools read, are never ordinary.
    """

    category: Category
    paths: Globs
    reason: Text


class Rules(_Strict, frozen=True):
    """Args:
    approvals: how many different people must accept a change.
    exclude_author: whoever asked for it cannot be one of them.
    second_person: categories whose flags need somebody else than who asked, whatever else holds.
    flag, expected: see there.
    largest_file_mb: a file above it is flagged.
    test_command: what is run on base + patch before it can be accepted; "" for nothing.
    test_timeout: how long it may take, as "30m".
    recipe, kits: what the box of this repository is made from.
    browser: whether there is a Chromium in it; SANDUK_BROWSER says so where this does not.
    set_up: shell lines that run while its image is built, at the base commit.
    lock_files: paths whose content decides whether that image is built again.
    remote: the git remote whose GitHub repository pull requests are made in.
    pull_request_into: the branch they are proposed for; "" for the one a change began from.
    agent, provider, model, mode, runtime: what an attempt is made with where no flag says.
    """

    approvals: Annotated[int, Meta(ge=1, le=20)] = 1
    exclude_author: bool = False
    second_person: Annotated[tuple[Category, ...], Meta(max_length=_MANY)] = ()
    flag: Annotated[tuple[FlagRule, ...], Meta(max_length=_MANY)] = ()
    expected: Annotated[tuple[Expected, ...], Meta(max_length=_MANY)] = ()
    largest_file_mb: Annotated[int, Meta(ge=1, le=100_000)] = 1
    test_command: Annotated[str, Meta(max_length=20_000)] = ""
    test_timeout: str = "30m"
    recipe: Annotated[str, Meta(max_length=1000)] = ""
    kits: Annotated[tuple[Text, ...], Meta(max_length=_MANY)] = ()
    browser: bool | None = None
    set_up: Annotated[tuple[Text, ...], Meta(max_length=_MANY)] = ()
    lock_files: Annotated[tuple[Text, ...], Meta(max_length=_MANY)] = ()
    remote: Annotated[str, Meta(min_length=1, max_length=100)] = "origin"
    pull_request_into: Annotated[str, Meta(max_length=300)] = ""
    agent: Annotated[str, Meta(max_length=200)] = ""
    provider: Annotated[str, Meta(max_length=200)] = ""
    model: Annotated[str, Meta(max_length=200)] = ""
    mode: Literal["", "open", "key-safe", "sealed"] = ""
    runtime: Annotated[str, Meta(max_length=200)] = ""

    @property
    def test_timeout_s(self) -> int:
        return duration.seconds(self.test_timeout, what="test_timeout")


NEVER_EXPECTED = ("secret", "agent-config")


def file_of(repository: str) -> Path:
    """Where the rules of the repository with this id are written."""
    home: Path = settings.SANDUK_HOME
    return place(home / "repos", repository).with_suffix(".toml")


def of(repository: str) -> Rules:
    """The rules of the repository with this id; the usual ones where nothing was written.

    SANDUK_TEST_COMMAND is the test command of a repository that names none.

    Raises Refusal: the file cannot be read, or says what nobody can mean. Nothing is landed then.
    """
    said = _written(file_of(repository))
    if said.test_command.strip():
        return said
    return msgspec.structs.replace(said, test_command=settings.SANDUK_TEST_COMMAND)


def _written(file: Path) -> Rules:
    try:
        with tree.opened(str(file.parent)) as directory:
            found = tree.read_file(directory, file.name, limit=MAX_BYTES)
    except FileNotFoundError:
        return Rules()
    except tree.NotARegularFile:
        raise Refusal(f"{file} is no regular file") from None
    except OSError as exc:
        raise Refusal(f"{file} cannot be read: {exc.strerror}") from None
    if found.cut:
        raise Refusal(f"{file} is larger than {MAX_BYTES // 1024} KiB")
    try:
        text = found.data.decode()
    except UnicodeDecodeError:
        raise Refusal(f"{file} is not UTF-8 text") from None
    return read(text, name=str(file))


def read(text: str, *, name: str) -> Rules:
    """The rules a document says. Raises Refusal with `name`, the line and the key."""
    try:
        found = msgspec.toml.decode(text + "\n", type=Rules)
    except msgspec.ValidationError as exc:
        raise _wrong(name, text, str(exc)) from None
    except (msgspec.DecodeError, RecursionError) as exc:
        raise Refusal(f"{name}: {visible(str(exc), limit=300)}") from None
    try:
        duration.seconds(found.test_timeout, what="test_timeout")
    except Refusal as exc:
        raise Refusal(f"{name}{_line(text, 'test_timeout')}: {exc}") from None
    for number, each in enumerate(found.expected):
        if each.category in NEVER_EXPECTED:
            line = _line(text, "category", "expected", number)
            raise Refusal(f"{name}{line}: flags of {each.category} are never ordinary")
    return found


def _wrong(name: str, text: str, why: str) -> Refusal:
    said, _, place_ = why.partition(" - at `")
    found = _PATH.match(place_)
    key, number, inner = found.groups() if found else (None, None, None)
    if unknown := _UNKNOWN.search(said):
        kind: Any = {"flag": FlagRule, "expected": Expected}.get(key or "", Rules)
        known = kind.__struct_fields__
        close = difflib.get_close_matches(unknown[1], known, 1)
        hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(known)}"
        said = f"there is no such key; {hint}"
        key, inner = (key, unknown[1]) if number is not None else (unknown[1], None)
    line = _line(text, inner or key or "", key if inner else "", int(number or 0))
    which = ".".join(part for part in (key, inner) if part)
    return Refusal(f"{name}{line}: {visible(which, limit=80)}: {visible(said, limit=300)}")


def _line(text: str, key: str, table: str | None = "", number: int = 0) -> str:
    found = line_of(text, key, table=table or "", number=number)
    return f" line {found}" if found else ""
