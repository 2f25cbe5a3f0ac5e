"""Where the web may have an agent work: strictly below a root that the operator listed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings

from runs import workspace
from runs.refusal import Refusal

SHOWN_MAX = 200  # directories of one root that are offered


def roots() -> list[Path]:
    """Those of SANDUK_WORK_ROOTS that are there, without a link in them."""
    listed = (Path(os.path.realpath(root)) for root in settings.SANDUK_WORK_ROOTS)
    return [root for root in dict.fromkeys(listed) if os.path.isdir(root)]  # noqa: PTH112 - no error


def root_of(text: str) -> Path | None:
    """The root that a directory lies strictly below, with no link on the way; None for none."""
    real = workspace.resolve(text)
    if str(real) != text:
        return None
    return next((root for root in roots() if real != root and real.is_relative_to(root)), None)


def check(text: str) -> None:
    """Refuse a workspace that lies elsewhere.

    A link below a root may be an agent's, so the directory must be its own real path.

    Args:
        text: an absolute path as `joined` makes it.
    """
    if text in {str(root) for root in roots()}:
        raise Refusal(f"{text} is itself a directory of SANDUK_WORK_ROOTS: name a directory in it")
    if root_of(text) is None:
        raise Refusal(
            f"{text} does not lie below a directory of SANDUK_WORK_ROOTS, or a link is on the way; "
            "the web starts runs nowhere else"
        )


def joined(place: str, below: str) -> str:
    """The absolute path of `below` in `place`, still to be checked. Raises Refusal.

    Args:
        place: a root, or a directory in one.
        below: words with slashes between them; "" for the place itself.
    """
    words = below.split("/") if below else []
    if any(word in ("", ".", "..") or not word.isprintable() for word in words):
        raise Refusal(f"{below!r} is no directory's name: words with / between them")
    return "/".join((place, *words))


def offered() -> Iterator[str]:
    """Each root, then the directories directly in it, by name; hidden ones and links left out."""
    for root in roots():
        yield str(root)
        yield from _within(root)[:SHOWN_MAX]


def workable() -> tuple[list[str], list[str]]:
    """Of what is offered: where an agent can work, and the rest. In a root, one is made for it."""
    fitting: list[str] = []
    closed: list[str] = []
    whole = {str(root) for root in roots()}
    for place in offered():
        is_open = os.access(place, os.W_OK | os.X_OK) if place in whole else _is_fit(place)
        (fitting if is_open else closed).append(place)
    return fitting, closed


def _is_fit(place: str) -> bool:
    try:
        workspace.check_owner(Path(place), Path(place).stat())
    except (workspace.WrongOwner, OSError):
        return False
    return True


def _within(root: Path) -> list[str]:
    try:
        with os.scandir(root) as entries:
            found = [each for each in entries if each.is_dir(follow_symlinks=False)]
    except OSError:
        return []  # it was taken away, or is closed to us: there is nothing to offer
    names = (each.path for each in found if not each.name.startswith("."))
    return sorted(name for name in names if name.isprintable())
