"""The results contract: an agent's own account of its work. It is commentary and proves nothing.

What changed is what the trees say; a claim that differs is itself something to look at.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from changes import own_files
from changes.flag import Flag
from changes.patches import ChangedPath
from recipes import strict_json

FILE = "results.json"
FILE_MAX = 256 << 10  # bytes

_Line = Annotated[str, Meta(max_length=4000)]
_Lines = Annotated[tuple[_Line, ...], Meta(max_length=500)]
_Count = Annotated[int, Meta(ge=0, le=10**12)]


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """What is taken of it; other keys are left where they are.

    Args:
        files_changed: None when nothing is claimed.
    """

    summary: Annotated[str, Meta(min_length=1, max_length=20_000)]
    status: Literal["succeeded", "failed", "timeout", "violation"] = "succeeded"
    files_changed: Annotated[tuple[_Line, ...], Meta(max_length=50_000)] | None = None
    tests_run: _Count = 0
    tests_passed: _Count = 0
    input_tokens: _Count = 0
    output_tokens: _Count = 0
    duration_seconds: Annotated[float, Meta(ge=0, le=10**9)] = 0
    risks: _Lines = ()
    followups: _Lines = ()

    def stored(self) -> dict[str, Any]:
        kept: dict[str, Any] = msgspec.to_builtins(self)
        return kept


def take(clone: Path) -> tuple[Results | None, str]:
    """The account an agent left, and what is wrong with it. Never raises because of it."""
    file = own_files.one(clone, FILE, limit=FILE_MAX)
    if file is None:
        return None, ""
    if file.data is None:
        return None, f"{FILE}: {file.reason}"
    try:
        found = msgspec.convert(strict_json.decode(file.data), Results)
    except (ValueError, msgspec.ValidationError) as exc:
        return None, f"{FILE}: {exc}"
    if not found.summary.strip():
        return None, f"{FILE}: its summary is blank"
    texts = (found.summary, *(found.files_changed or ()), *found.risks, *found.followups)
    if any("\0" in text for text in texts):
        return None, f"{FILE}: it holds a NUL"  # which not every database keeps
    return found, ""


def mismatch(claimed: Results | None, changed: Sequence[ChangedPath]) -> list[Flag]:
    """Files that changed and were not named, and the other way round."""
    if claimed is None or claimed.files_changed is None:
        return []
    named = {_plain(path) for path in claimed.files_changed}
    real = {each.path for each in changed}
    olds = {each.old_path for each in changed if each.old_path is not None}
    silent, made_up = real - named, named - real - olds
    flags = []
    if silent:
        reason = f"the agent does not say that it changed {_some(len(silent))}"
        flags.append(Flag("contract-mismatch", "medium", min(silent), 0, reason))
    if made_up:
        reason = f"the agent says that it changed {_some(len(made_up))}, and it is as it was"
        flags.append(Flag("contract-mismatch", "medium", min(made_up), 0, reason))
    return flags


def _plain(path: str) -> bytes:
    return path.removeprefix("./").encode("utf-8", "surrogateescape")


def _some(many: int) -> str:
    return "this file" if many == 1 else f"this and {many - 1:,} more files"
