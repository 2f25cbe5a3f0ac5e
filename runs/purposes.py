"""What runs are for, in the words of the apps above: nothing here imports them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

# given ids of runs, what those of them that it knows are for: "change 3f2a9c0d11e4"
Purposes = Callable[[Collection[str]], Mapping[str, str]]

_asked: dict[str, Purposes] = {}


def register(app: str, purposes: Purposes) -> None:
    """Have an app asked. It is asked seldom, for a few runs at a time."""
    _asked[app] = purposes


def of(uids: Collection[str]) -> dict[str, str]:
    """What each of these runs is for; those that were just asked for are not in it."""
    told: dict[str, str] = {}
    if uids:
        for purposes in _asked.values():
            told.update(purposes(uids))
    return told
