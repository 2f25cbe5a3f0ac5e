"""Files of a workspace that an agent is not to see: each is covered by an empty one.

Only the person who starts a run says what is hidden, by `--hide` or SANDUK_HIDE; nothing in the
workspace can take it back. What appears there after the start is not hidden.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from runs.refusal import Refusal
from runs.visible import visible, visible_name

ENTRIES_LOOKED_AT = 300_000
MOST_HIDDEN = 200  # each is a mount of its own
NOTED_DEPTH, NOTED_ENTRIES = 3, 5_000
# names under which secrets usually lie, for a word of warning
USUAL = (
    ".env", ".env.*", ".npmrc", ".pypirc", ".netrc", ".git-credentials", "id_rsa", "id_ecdsa",
    "id_ed25519", "*.pem", "*.p12", "*.key", "credentials.json", "service-account*.json",
    ".aws", ".ssh", ".gnupg", ".kube",
)  # fmt: skip
_HARMLESS = re.compile(r"\.env\.(example|sample|template|dist)")
_NOT_LOOKED_INTO = frozenset({".git", "node_modules", ".venv", "venv", "__pycache__"})


def check_pattern(text: str) -> str:
    """`text` when it is a pattern below the workspace. Raises Refusal."""
    parts = text.rstrip("/").split("/")
    if not text.strip("/") or any(ord(c) < 0x20 for c in text):
        raise Refusal(f"--hide {visible(text)!r} is no name or pattern of files")
    if text.startswith("/") or ".." in parts or "." in parts or "" in parts:
        raise Refusal(
            f"--hide {visible(text)}: give a name, which is hidden wherever it lies, or a path "
            "from the working directory without . and .., such as config/*.key"
        )
    if not any(part.strip("*") for part in parts):
        raise Refusal(f"--hide {visible(text)} would hide everything; name what is secret")
    return text


@dataclass(frozen=True, slots=True)
class Hidden:
    """Args:
    paths: what is covered, as paths from the workspace; of a directory only itself.
    idle: patterns that matched nothing.
    """

    paths: tuple[str, ...] = ()
    idle: tuple[str, ...] = ()


def found(root: Path, patterns: Sequence[str]) -> Hidden:
    """What the patterns match below `root`.

    A pattern without a slash matches names at any depth; with one it matches from the root, where
    `*` stands for one name or a part of it and `**` for any number of directories.

    Raises Refusal when it cannot be said, or is too much.
    """
    wanted = {pattern: _compiled(pattern) for pattern in patterns}
    idle = set(patterns)
    hidden: set[str] = set()
    if not wanted or not root.is_dir():
        return Hidden(idle=tuple(dict.fromkeys(patterns)))
    for path in _below(root):
        matching = {pattern for pattern, each in wanted.items() if each.fullmatch(path)}
        if matching:
            idle -= matching
            hidden |= _real(root, path)
        if len(hidden) > MOST_HIDDEN:
            raise Refusal(
                f"--hide matches more than {MOST_HIDDEN} files in {root}; hide their directory"
            )
    covered = tuple(sorted(path for path in hidden if not _covered(path, hidden)))
    for path in covered:
        if any(ord(c) < 0x20 or c == "\x7f" for c in path):
            raise Refusal(
                f"--hide matches {visible_name(path)}, and no engine can cover a name with control "
                "characters: rename it, or hide its directory"
            )
    return Hidden(covered, tuple(each for each in dict.fromkeys(patterns) if each in idle))


def usual_secrets(root: Path, hidden: Iterable[str]) -> list[str]:
    """Names near the top of `root` under which secrets usually lie, and that are not hidden."""
    covered = set(hidden)
    wanted = [_compiled(pattern) for pattern in USUAL]
    seen = []
    for path in _below(root, depth=NOTED_DEPTH, most=NOTED_ENTRIES, skip=_NOT_LOOKED_INTO):
        if any(pattern.fullmatch(path) for pattern in wanted) and not _HARMLESS.fullmatch(
            path.rpartition("/")[2]
        ):
            seen.append(path)
    return [p for p in seen if p not in covered and not _covered(p, {*covered, *seen})]


def warning(seen: Sequence[str]) -> str:
    """What to tell of such names: which, and how to hide one."""
    shown = ", ".join(visible_name(path, limit=80) for path in seen[:3])
    more = f" and {len(seen) - 3} more" if len(seen) > 3 else ""
    name = visible(seen[0].rpartition("/")[2], limit=80)
    return f"the agent can read {shown}{more}; --hide {shlex.quote(name)} would cover it"


def _below(
    root: Path,
    *,
    depth: int | None = None,
    most: int | None = None,
    skip: frozenset[str] = frozenset(),
) -> Iterator[str]:
    """Paths below `root`, links not followed. Without `most`, too many are a Refusal."""
    looked = 0
    for folder, folders, files in os.walk(root):
        inside = os.path.relpath(folder, root)
        prefix = "" if inside == "." else f"{inside}/"
        names = [*folders, *files]
        folders[:] = [name for name in folders if name not in skip]
        if depth is not None and prefix.count("/") + 1 >= depth:
            folders.clear()
        for name in names:
            looked += 1
            if looked > (most or ENTRIES_LOOKED_AT):
                if most is not None:
                    return
                raise Refusal(
                    f"--hide looks at no more than {ENTRIES_LOOKED_AT:,} files, and {root} has "
                    "more; give an agent a smaller directory"
                )
            yield prefix + name


def _compiled(pattern: str) -> re.Pattern[str]:
    parts = pattern.rstrip("/").split("/")
    if len(parts) == 1:
        return re.compile(f"(?s:(?:.*/)?{_segment(parts[0])})")
    made = "".join("(?:[^/]+/)*" if part == "**" else f"{_segment(part)}/" for part in parts[:-1])
    return re.compile(f"(?s:{made}{_segment(parts[-1])})")


def _segment(text: str) -> str:
    """One name of a pattern: `*` and `?` cross no slash, and nothing else is special."""
    special = {"*": "[^/]*", "?": "[^/]"}
    return "".join(special.get(letter) or re.escape(letter) for letter in text)


def _real(root: Path, path: str) -> set[str]:
    """The path itself; of a link what it leads to, when that lies in the workspace."""
    place = root / path
    if not place.is_symlink():
        return {path}
    try:
        real = place.resolve(strict=True).relative_to(root.resolve())
    except (OSError, RuntimeError, ValueError):
        return set()  # it leads nowhere in there
    return set() if str(real) == "." else {str(real)}


def _covered(path: str, hidden: set[str]) -> bool:
    """Whether a directory above it is hidden."""
    parts = path.split("/")
    return any("/".join(parts[:end]) in hidden for end in range(1, len(parts)))
