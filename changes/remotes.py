"""Which repository on GitHub a repository of this host has as its remote.

Only the remote's name for it is read, and taken apart. What git would make of it (`insteadOf`,
`pushurl`, helpers) has no part in it: where something is pushed to is composed anew.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from changes.git import git
from changes.github import Site
from changes.repository import find
from runs.refusal import Refusal
from runs.visible import visible

REMOTE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._/-]{0,99}")
_OWNER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")
_URL = re.compile(r"(?P<scheme>https?|ssh)://(?:[^@/]*@)?(?P<host>[^@/]+)/(?P<path>.+)", re.DOTALL)
_SCP = re.compile(r"(?:[^@/:]+@)?(?P<host>[^@/:]+):(?P<path>[^/].*)", re.DOTALL)
_PORT = re.compile(r":[0-9]{1,5}")
# how GitHub is reached by ssh where its usual port is closed
_SSH_NAMES = {"ssh.github.com": "github.com"}


@dataclass(frozen=True, slots=True)
class There:
    """A repository on GitHub, by its owner's name and its own."""

    owner: str
    name: str

    def __str__(self) -> str:
        return f"{self.owner}/{self.name}"


def there(repository: Path, remote: str, site: Site) -> There:
    """The repository on `site` that the remote is.

    Raises:
        Refusal: there is no such remote, or it is something else. An address is not repeated:
            it may hold a password.
    """
    if not REMOTE.fullmatch(remote):
        raise Refusal(f"no remote can be called {visible(remote, limit=100)!r}")
    found = find(repository)
    words = ("config", "--local", "--no-includes", "-z", "--get-all", f"remote.{remote}.url")
    said = git(*words, git_dir=found.git_dir, codes=(0, 1), limit_bytes=64 << 10)
    addresses = [os.fsdecode(each) for each in said.split(b"\0") if each]
    if not addresses:
        raise Refusal(
            f"the repository has no remote called {remote} to push to: git remote add {remote} "
            f"{site.address}/OWNER/NAME.git, or name another with `remote` in its rules"
        )
    if len(addresses) > 1:
        raise Refusal(f"the remote {remote} has {len(addresses)} addresses: leave it one")
    if (taken := _taken_apart(addresses[0], site)) is None:
        raise Refusal(
            f"the remote {remote} is no repository on {site.host}: its address has to be "
            f"{site.address}/OWNER/NAME.git or git@{_without_port(site.host)}:OWNER/NAME.git; "
            "another GitHub is named by SANDUK_GITHUB_API"
        )
    return taken


def address(site: Site, where: There) -> str:
    """What is pushed to; nothing of it but owner and name comes from the repository."""
    return f"{site.address}/{where.owner}/{where.name}.git"


def _taken_apart(text: str, site: Site) -> There | None:
    if match := _URL.fullmatch(text):
        scheme, host = match["scheme"], match["host"].lower()
        if scheme == "ssh":
            host = _without_port(host)
        if scheme == "http" != site.scheme:
            return None
    elif match := _SCP.fullmatch(text):
        scheme, host = "ssh", match["host"].lower()
    else:
        return None
    named = _without_port(site.host) if scheme == "ssh" else site.host
    host = _SSH_NAMES.get(host, host) if scheme == "ssh" else host.removeprefix("www.")
    if host != named:
        return None
    owner, _, name = match["path"].strip("/").partition("/")
    name = name.removesuffix(".git")
    if not _OWNER.fullmatch(owner) or not _NAME.fullmatch(name) or name in ("", ".", ".."):
        return None
    return There(owner, name)


def _without_port(host: str) -> str:
    return _PORT.sub("", host) if not host.startswith("[") else host
