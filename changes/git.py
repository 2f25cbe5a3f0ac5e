"""Starting `git`: the only place that does, and the only environment it ever sees.

Nothing of what git would read by itself is left on: no system or account configuration, no
attributes, no hooks, no helper of any kind, no replaced object, no network. What a repository's
own configuration could still name (a monitor, a pager, a filter at checkout) is overruled on the
command line, or has nothing to act on.
"""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import IO

from runs.refusal import HostRefusal
from runs.visible import visible

REQUIRED = (2, 38)  # the first with `merge-tree --write-tree`
LIMIT = 256 << 20  # bytes of output
TIMEOUT_S = 300.0
_ERRORS = 64 << 10  # bytes kept of what git complains
_PIECE = 1 << 18

_SETTINGS = {
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "core.attributesFile": os.devnull,
    "core.excludesFile": os.devnull,
    "core.pager": "cat",
    "core.editor": "false",
    "core.askPass": "false",
    "core.sshCommand": "false",
    "core.gitProxy": "",
    "core.alternateRefsCommand": "false",
    "core.untrackedCache": "false",
    "core.splitIndex": "false",
    "core.useReplaceRefs": "false",
    # what is stored is what was read: no conversion in either direction
    "core.autocrlf": "false",
    "core.safecrlf": "false",
    "core.precomposeUnicode": "false",
    "core.symlinks": "true",
    "core.fileMode": "true",
    "core.ignoreCase": "false",
    "core.quotePath": "false",
    # names that are the git directory on another system are refused on this one too
    "core.protectHFS": "true",
    "core.protectNTFS": "true",
    "credential.helper": "",
    "protocol.allow": "never",
    "submodule.recurse": "false",
    "commit.gpgSign": "false",
    "log.showSignature": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    # the ownership of what we may run in is looked at by our own code
    "safe.directory": "*",
}
_ENVIRONMENT = {
    "HOME": "/nonexistent",
    "LC_ALL": "C",
    "TZ": "UTC",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_GRAFT_FILE": "/nonexistent/grafts",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "false",
    "SSH_ASKPASS": "false",
    "GIT_PAGER": "cat",
    "GIT_EDITOR": "false",
    "GIT_ADVICE": "0",
}
# what the account's own git needs to know its owner, to sign and to ask an agent for a key
_OWNERS = ("HOME", "XDG_CONFIG_HOME", "GNUPGHOME", "GPG_TTY", "SSH_AUTH_SOCK", "GIT_CONFIG_GLOBAL")
_OWNERS_KEEP = ("commit.gpgSign", "core.askPass")


class GitError(Exception):
    """git failed, took too long or printed too much. The text is printable.

    Attributes:
        code: git's exit status; None when it was stopped by us.
        errors: what it printed on its standard error, cut, as bytes.
    """

    def __init__(self, text: str, *, code: int | None = None, errors: bytes = b"") -> None:
        super().__init__(visible(text, limit=2000))
        self.code = code
        self.errors = errors


def git(
    *words: str | bytes | Path,
    git_dir: Path | None = None,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    settings: Mapping[str, str] | None = None,
    stdin: bytes | IO[bytes] = b"",
    stdout: IO[bytes] | None = None,
    limit_bytes: int = LIMIT,
    timeout_s: float = TIMEOUT_S,
    owner: bool = False,
    codes: tuple[int, ...] = (0,),
) -> bytes:
    """What `git words…` prints.

    Args:
        git_dir: the repository; without it git looks for one from `cwd` upward.
        env: variables beside ours (`GIT_INDEX_FILE`, `GIT_AUTHOR_NAME`…).
        settings: configuration beside ours, which it may overrule.
        stdin: what git reads, or the open file it reads from.
        stdout: the open file git writes into; then nothing is returned.
        owner: read the configuration of the account this runs under, to know its identity and
            to sign; hooks, helpers and the network stay off.
        codes: the exit statuses that are no failure.

    Raises:
        GitError: any other exit status, more than `limit_bytes`, longer than `timeout_s`.
        HostRefusal: there is no git here.
    """
    chosen = {**_SETTINGS, **(settings or {})}
    if owner:
        chosen = {name: value for name, value in chosen.items() if name not in _OWNERS_KEEP}
    command: list[str | bytes] = ["git", "--no-pager"]
    for name, value in chosen.items():
        command += ["-c", f"{name}={value}"]
    command += [bytes(word) if isinstance(word, Path) else word for word in words]
    named = (os.fsdecode(word) for word in words if word and os.fsencode(word)[:1] != b"-")
    title = f"git {next(named, '')}"
    surroundings = _surroundings(git_dir, env, owner=owner)
    try:
        process = subprocess.Popen(
            command,
            cwd=cwd or git_dir or "/",
            env=surroundings,
            stdin=subprocess.PIPE if isinstance(stdin, bytes) else stdin,
            stdout=stdout or subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except FileNotFoundError:
        raise _missing(cwd or git_dir) from None
    with _ended(process):
        said, errors = _talk(
            process, stdin if isinstance(stdin, bytes) else b"", limit_bytes, timeout_s, title
        )
    if process.returncode not in codes:
        text = errors.decode(errors="replace").strip() or f"exit status {process.returncode}"
        raise GitError(f"{title}: {text}", code=process.returncode, errors=errors)
    return said


def line(said: bytes) -> str:
    """One line of output without its line feed; only that one, a name may end in another."""
    return os.fsdecode(said.removesuffix(b"\n"))


@cache
def version() -> tuple[int, int]:
    """The version of git here. Raises HostRefusal when there is none, or one too old."""
    said = git("version", timeout_s=20).decode(errors="replace")
    found = re.search(r"(\d+)\.(\d+)", said)
    here = (int(found[1]), int(found[2])) if found else (0, 0)
    if here < REQUIRED:
        needed = ".".join(map(str, REQUIRED))
        raise HostRefusal(f"git {needed} or newer is needed, here is {visible(said.strip())}")
    return here


def _surroundings(
    git_dir: Path | None, env: Mapping[str, str] | None, *, owner: bool
) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "TMPDIR") if name in os.environ}
    found = {**kept, **_ENVIRONMENT}
    if owner:
        for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"):
            del found[name]
        found |= {name: os.environ[name] for name in _OWNERS if name in os.environ}
    if git_dir is not None:
        found["GIT_DIR"] = str(git_dir)
    return {**found, **(env or {})}


def _missing(place: Path | None) -> Exception:
    if shutil.which("git") is None:
        return HostRefusal("there is no git on this host: install it (apt install git)")
    return GitError(f"there is no directory {place}")


@contextlib.contextmanager
def _ended(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Whatever happens, nothing of the process is left."""
    try:
        yield
    finally:
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


def _talk(
    process: subprocess.Popen[bytes], question: bytes, limit: int, timeout_s: float, title: str
) -> tuple[bytes, bytes]:
    """What the process says on both pipes while it is given the question."""
    until = time.monotonic() + timeout_s
    said, errors = bytearray(), bytearray()
    left = memoryview(question)
    with selectors.DefaultSelector() as selector:
        for pipe, what in ((process.stdout, "said"), (process.stderr, "errors")):
            if pipe is not None:
                os.set_blocking(pipe.fileno(), False)
                selector.register(pipe, selectors.EVENT_READ, what)
        if process.stdin is not None:
            os.set_blocking(process.stdin.fileno(), False)
            selector.register(process.stdin, selectors.EVENT_WRITE, "question")
        while selector.get_map():
            remaining = until - time.monotonic()
            if remaining <= 0:
                raise GitError(f"{title}: stopped after {timeout_s:g} s")
            for key, _ in selector.select(remaining):
                if key.data == "question":
                    left = _give(key.fd, left)
                    if not left:
                        selector.unregister(key.fileobj)
                        process.stdin.close()  # type: ignore[union-attr]
                    continue
                piece = os.read(key.fd, _PIECE)
                if not piece:
                    selector.unregister(key.fileobj)
                elif key.data == "errors":
                    errors += piece[: max(_ERRORS - len(errors), 0)]
                elif len(said) + len(piece) > limit:
                    raise GitError(f"{title}: printed more than {limit} bytes")
                else:
                    said += piece
        try:
            process.wait(max(until - time.monotonic(), 0))
        except subprocess.TimeoutExpired:
            raise GitError(f"{title}: stopped after {timeout_s:g} s") from None
    return bytes(said), bytes(errors)


def _give(pipe: int, left: memoryview) -> memoryview:
    """What is left to write; nothing when the other side wants no more."""
    try:
        return left[os.write(pipe, left[:_PIECE]) :] if left else left
    except BlockingIOError:
        return left
    except BrokenPipeError:
        return left[len(left) :]
