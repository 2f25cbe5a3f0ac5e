"""Pushing one commit to one new branch on GitHub, by this host's git from our own store.

The repository's configuration has no part in it: no hook, helper, rewriting of addresses, proxy or
ssh command of its own. The token goes by git's environment, which only this account can read: it is
in no argument, no address, no file and no message.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from changes import github
from changes.git import GitError, git, line
from changes.github import Site
from changes.store import Store, object_id
from runs.refusal import HostRefusal, Refusal
from runs.visible import visible

TIMEOUT_S = 900.0  # of a large change on a slow line
TRY_S = 60.0
_SETTINGS = {
    "http.followRedirects": "false",
    "http.sslVerify": "true",
    "http.lowSpeedLimit": "1",
    "http.lowSpeedTime": "120",
    # what is there already is not sent again, though our store knows nothing of its branches
    "push.negotiate": "true",
    "push.recurseSubmodules": "no",
    "push.gpgSign": "false",
    "push.followTags": "false",
}


class Taken(Refusal):
    """The branch is there already, with something else on it."""


def try_out(store: Store, commit: str, site: Site, address: str, branch: str, token: str) -> None:
    """Whether `push` would be let in, and make a new branch; nothing is changed.

    Raises as `push` does.
    """
    _push(store, commit, site, address, branch, token, "--dry-run", timeout_s=TRY_S)


def push(store: Store, commit: str, site: Site, address: str, branch: str, token: str) -> None:
    """Make `branch` there, with exactly this commit; that it is there already is as good.

    Raises:
        Taken: it is something else there. Nothing was overwritten.
        Refusal: it was not let in.
        GitError: anything else git could not do.
    """
    _push(store, commit, site, address, branch, token, timeout_s=TIMEOUT_S)


def bring(store: Store, repository: Path, base_commit: str, commit: str) -> None:
    """Have in our store, which holds the base, what led from it to a commit; git checks it all.

    Raises GitError: the repository has lost it.
    """
    asked = f"{object_id(commit)}\n^{object_id(base_commit)}\n".encode()
    with tempfile.TemporaryFile(dir=store.path) as pack:
        words = ("pack-objects", "--revs", "--stdout", "--quiet")
        git(*words, git_dir=repository, stdin=asked, stdout=pack)
        pack.seek(0)
        store.git("index-pack", "--stdin", "--strict", stdin=pack)


def _push(
    store: Store,
    commit: str,
    site: Site,
    address: str,
    branch: str,
    token: str,
    *flags: str,
    timeout_s: float,
) -> None:
    _require_transport(site)
    ref = f"refs/heads/{branch}"
    words = (
        "push", "--no-verify", *flags,
        f"--force-with-lease={ref}:",  # it must not be there
        address, f"{object_id(commit)}:{ref}",
    )  # fmt: skip
    try:
        store.git(
            *words, env=_surroundings(site, token), settings=_SETTINGS, timeout_s=timeout_s,
            limit_bytes=1 << 20,
        )  # fmt: skip
    except GitError as exc:
        raise _told(exc, site, branch, token) from None


def _surroundings(site: Site, token: str) -> dict[str, str]:
    header = f"Authorization: Basic {github.basic(token)}"
    found = {
        "GIT_ALLOW_PROTOCOL": site.scheme,
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"http.{site.address}/.extraHeader",
        "GIT_CONFIG_VALUE_0": header,
    }
    if authorities := os.environ.get("SSL_CERT_FILE"):
        found["GIT_SSL_CAINFO"] = authorities
    if (proxy := github.proxy_to(site.address)) is not None:
        found[f"{site.scheme}_proxy"] = os.environ[proxy.variable]
    return found


def _require_transport(site: Site) -> None:
    place = Path(line(git("--exec-path"))) / f"git-remote-{site.scheme}"
    if not place.exists():
        raise HostRefusal(
            f"this host's git cannot push over {site.scheme} ({place.name} is missing): install "
            "the whole of git"
        )


def _told(exc: GitError, site: Site, branch: str, token: str) -> Exception:
    """What git said, without the token, as what it means."""
    text = github.without(exc.errors.decode(errors="replace"), token)
    said = visible(" ".join(text.split()), limit=600)
    if "stale info" in text or "[rejected]" in text or "already exists" in text:
        return Taken(
            f"the branch {visible(branch)} is there already on {site.host}: choose another with "
            "--branch"
        )
    denied = ("403", "401", "Authentication failed", "could not read Username", "not found")
    if any(each in text for each in denied):
        return Refusal(
            f"{site.host} does not let {github.TOKEN} push there: it has to read and write "
            f"contents ({said})"
        )
    if "[remote rejected]" in text or "remote rejected" in text:
        return Refusal(f"{site.host} refused the branch: {said}")
    return GitError(github.without(str(exc), token), code=exc.code)
