"""Trees for tests, made in a store of ours from nothing but names, modes and bytes."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from changes import risks
from changes.flag import Findings
from changes.patches import changed_paths
from changes.rules import Rules
from changes.store import Store, opened

Files = Mapping[str | bytes, "bytes | str | tuple[str, bytes | str]"]
USUAL: Files = {"README.md": "hello\n"}


def store_in(directory: Path) -> Store:
    return opened(directory / "store.git")


def tree_of(store: Store, files: Files) -> str:
    """A tree of these files; a pair is a mode with the content, or a submodule's commit."""
    listed = []
    for name, content in files.items():
        mode, data = content if isinstance(content, tuple) else ("100644", content)
        data = data.encode() if isinstance(data, str) else data
        if mode == "160000":
            thing = data.decode()
        else:
            thing = store.git("hash-object", "-w", "--stdin", stdin=data).decode().strip()
        path = name.encode() if isinstance(name, str) else name
        listed.append(f"{mode} {thing} 0\t".encode() + path + b"\0")
    with tempfile.TemporaryDirectory() as place:
        index = {"GIT_INDEX_FILE": f"{place}/index"}
        store.git("update-index", "-z", "--index-info", stdin=b"".join(listed), env=index)
        return store.git("write-tree", env=index).decode().strip()


def found(
    store: Store, after: Files, before: Files = USUAL, rules: Rules | None = None
) -> Findings:
    """What is seen in the change from one set of files to another; `before` stays in it."""
    base = tree_of(store, before)
    tree = tree_of(store, {**before, **after})
    return risks.flags(store, base, tree, changed_paths(store, base, tree), rules or Rules())


def categories(findings: Findings) -> set[str]:
    return {flag.category for flag in findings.flags}
