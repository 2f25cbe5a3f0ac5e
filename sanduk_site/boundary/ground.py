"""What stands on this host while boxes are probed: a repository, a secret, listeners, a model.

All of it is made for the suite and removed with it; nothing of the person's own is at stake where
a boundary does not hold.
"""

from __future__ import annotations

import contextlib
import getpass
import hashlib
import json
import os
import secrets
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from changes import bundle, clone, store
from changes.git import git
from runs import own_host

BRANCH = "sanduk/boundary"
PIECES, PAUSE_S = 4, 0.2
ANYWHERE = "0.0.0.0"  # noqa: S104 - what no box must reach, wherever it looks from


@dataclass
class Ground:
    """Args:
    place: a directory of its own, with all that follows in it.
    nonce: a word nobody else has.
    key: what stands for a provider's key.
    visitors: what arrived at the listener of this host, one line each.
    asked_with: the keys the model's stand-in was asked with.
    """

    place: Path
    nonce: str
    key: str
    owner: tuple[int, int]
    port: int = 0
    model_port: int = 0
    visitors: list[str] = field(default_factory=list)
    asked_with: list[str] = field(default_factory=list)
    provided: bundle.Provided | None = None
    repository_before: str = ""

    @property
    def repository(self) -> Path:
        return self.place / "repository"

    @property
    def work(self) -> Path:
        return self.place / "work"

    @property
    def secret(self) -> Path:
        return self.place / "private" / f"canary-{self.nonce}"

    @property
    def sprung(self) -> Path:
        return self.place / "sprung"

    @property
    def mark(self) -> str:
        return f"mark-{self.nonce}"

    @property
    def store(self) -> store.Store:
        return store.opened(self.place / "store.git")

    def order(self, home: Path) -> dict[str, Any]:
        """What the probes in a box are told; nothing of it is secret."""
        host = own_host.look()
        stream = b"".join(pieces(self.nonce))
        return {
            "nonce": self.nonce,
            "private": [str(home), str(self.secret.parent), str(self.secret)],
            "canary": self.secret.name,
            "account": _account(),
            "repository": str(self.repository),
            "work": "/work",
            "branch": BRANCH,
            "inodes": _inodes(self.repository),
            "hosts": [*host.addresses],
            "ports": list(dict.fromkeys((self.port, *host.ports))),
            "port": self.port,
            "abstract": self.nonce,
            "neighbour": None,
            "agent": [],
            "own_kernel": False,
            "stream_s": PAUSE_S * (PIECES - 1),
            "stream_sha256": hashlib.sha256(stream).hexdigest(),
            "mark": self.mark,
            "secret": str(self.secret),
            "sprung": str(self.sprung),
            "allowed": [],
            "refused": [],
        }

    def marks(self, home: Path) -> list[Path]:
        """Where a box has written a mark that it must not have been able to write."""
        places = (home, home / "runs", self.secret.parent, self.repository)
        return [place for place in places if (place / self.mark).exists()]


@contextlib.contextmanager
def laid(owner: tuple[int, int]) -> Iterator[Ground]:
    """Everything, for the length of the block.

    Args:
        owner: uid and gid boxes run as; what they must not reach belongs to them, so that only
            the boundary stands between.
    """
    with tempfile.TemporaryDirectory(prefix="sanduk-boundary-") as name:
        place = Path(name)
        place.chmod(0o755)  # only the boundary may keep a box out
        ground = Ground(place, secrets.token_hex(12), f"sk-{secrets.token_hex(20)}", owner)
        _make_files(ground)
        with contextlib.ExitStack() as stack:
            abstract = stack.enter_context(socket.socket(socket.AF_UNIX))
            with contextlib.suppress(OSError):  # a system without abstract sockets
                abstract.bind(f"\0{ground.nonce}")
                abstract.listen()
            ground.port = stack.enter_context(_listening(ANYWHERE, _host_of(ground)))
            ground.model_port = stack.enter_context(_listening("127.0.0.1", _model_of(ground)))
            yield ground
        _reopen(place)


def own_name(file: Path = Path("/etc/hosts")) -> tuple[str, list[str]] | None:
    """A name of this host that its own table knows, and its addresses; None when there is none.

    The egress door opens for a name, and no resolver outside should be asked for one.
    """
    with contextlib.suppress(OSError):
        for row in file.read_text(errors="replace").splitlines():
            words = row.partition("#")[0].split()
            for name in words[1:]:
                if words[0].startswith("127.") and not name.startswith("localhost"):
                    with contextlib.suppress(OSError):
                        found = socket.getaddrinfo(name, 80, type=socket.SOCK_STREAM)
                        return name, sorted({str(each[4][0]) for each in found})
    return None


def _account() -> str:
    """The name of this account, unless images have one of the same name."""
    with contextlib.suppress(KeyError, OSError):
        name = getpass.getuser()
        return "" if name in ("root", "node", "agent", "nobody") else name
    return ""


def _make_files(ground: Ground) -> None:
    ground.secret.parent.mkdir()
    ground.secret.write_text(f"secret {ground.nonce}\n")
    _make_repository(ground)
    ground.work.mkdir()
    bundles = ground.place / "bundles"
    bundles.mkdir()
    ground.provided = bundle.provide(ground.repository, directory=bundles)
    ground.store.take(ground.provided.bundle, ground.provided.base_commit, ground.provided.shallow)
    make_clone(ground, ground.work)
    for path in (ground.secret.parent, ground.repository):
        _give(path, ground.owner)
    ground.repository_before = state_of(ground.repository)


def make_clone(ground: Ground, directory: Path) -> None:
    """The clone, as a change's agent gets it."""
    assert ground.provided is not None  # noqa: S101 - `_make_files` has set it
    owner = ground.owner if os.geteuid() == 0 else None
    clone.make(
        ground.store, ground.provided, directory,
        branch=BRANCH, author=("boundary", "boundary@sanduk.invalid"), owner=owner,
    )  # fmt: skip
    if owner is not None:
        _give(directory, owner)


def _make_repository(ground: Ground) -> None:
    where = ground.repository
    where.mkdir()
    git("init", "--quiet", "--template=", "--initial-branch=main", where, cwd=where)
    (where / "tracked.txt").write_text(f"as it was {ground.nonce}\n")
    (where / ".env").write_text(f"TOKEN={ground.nonce}\n")  # untracked
    hooks = where / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("post-commit", "reference-transaction", "post-checkout", "post-index-change"):
        (hooks / name).write_text(f"#!/bin/sh\necho sprung > {ground.sprung}\nexit 0\n")
        (hooks / name).chmod(0o755)
    git("add", "tracked.txt", cwd=where, git_dir=where / ".git")
    who = {"GIT_AUTHOR_NAME": "boundary", "GIT_AUTHOR_EMAIL": "boundary@sanduk.invalid"}
    who |= {name.replace("AUTHOR", "COMMITTER"): value for name, value in who.items()}
    git("commit", "--quiet", "-m", "base", cwd=where, git_dir=where / ".git", env=who)


def state_of(directory: Path) -> str:
    """A digest of every name, kind, mode and content below a directory; "" when it is gone."""
    seen = hashlib.sha256()
    if not directory.is_dir():
        return ""
    for folder, folders, names in os.walk(directory):
        folders.sort()
        for name in sorted(names + folders):
            path = Path(folder, name)
            facts = path.lstat()
            is_file = path.is_file() and not path.is_symlink()
            content = path.read_bytes() if is_file else b""
            told = f"{path.relative_to(directory)}\0{facts.st_mode}\0{len(content)}\0"
            seen.update(told.encode(errors="surrogateescape") + content)
    return seen.hexdigest()


def _inodes(directory: Path) -> dict[str, str]:
    found = {}
    for folder, _, names in os.walk(directory):
        for name in names:
            path = Path(folder, name)
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            found[str(path.lstat().st_ino)] = digest
    return found


def take_back(ground: Ground) -> None:
    """Give the repository to this account, which lands in its own alone."""
    _give(ground.repository, (os.geteuid(), os.getegid()))


def _give(place: Path, owner: tuple[int, int]) -> None:
    if os.geteuid() != 0:
        return
    for folder, _, names in os.walk(place):
        for name in (".", *names):
            os.chown(Path(folder, name), *owner, follow_symlinks=False)


def _reopen(place: Path) -> None:
    """What a box has closed must not stay when the directory is removed."""
    for folder, folders, _ in os.walk(place):
        for name in folders:
            path = Path(folder, name)
            if not path.is_symlink():
                with contextlib.suppress(OSError):
                    path.chmod(0o700)
    with contextlib.suppress(OSError):
        shutil.rmtree(place / "work")


# -- listeners ------------------------------------------------------------------------------------
@contextlib.contextmanager
def _listening(address: str, handler: type[BaseHTTPRequestHandler]) -> Iterator[int]:
    with ThreadingHTTPServer((address, 0), handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True)
        thread.start()
        try:
            yield int(server.server_address[1])
        finally:
            server.shutdown()
            thread.join(5)


class _Quiet(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *told: Any) -> None:
        """Nothing of it goes to the terminal."""

    def answer(self, status: int, text: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(text)


def _host_of(ground: Ground) -> type[BaseHTTPRequestHandler]:
    """A service of this host, on all of its addresses."""

    class Host(_Quiet):
        def do_GET(self) -> None:
            ground.visitors.append(f"{self.client_address[0]} {self.path[:200]}")
            self.answer(200, ground.nonce.encode())

        do_POST = do_PUT = do_GET

    return Host


def pieces(nonce: str) -> list[bytes]:
    """A streamed answer of the model's."""
    told = [
        {"choices": [{"index": 0, "delta": {"content": f"{nonce} {n}"}}]} for n in range(PIECES)
    ]
    return [
        *(f"data: {json.dumps(each)}\n\n".encode() for each in told[:-1]),
        f"data: {json.dumps(told[-1])}\n\ndata: [DONE]\n\n".encode(),
    ]


def _model_of(ground: Ground) -> type[BaseHTTPRequestHandler]:
    """What stands for a provider: it says the nonce, and remembers the key it was asked with."""

    class Model(_Quiet):
        def do_GET(self) -> None:
            self.answer(200, b'{"data": []}')

        def do_POST(self) -> None:
            ground.asked_with.append(self.headers.get("authorization", ""))
            asked = json.loads(self.rfile.read(int(self.headers.get("Content-Length", "0"))))
            if asked.get("stream"):
                self._stream()
                return
            message = {"role": "assistant", "content": ground.nonce}
            usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
            told = {"model": "boundary", "choices": [{"index": 0, "message": message}]}
            self.answer(200, json.dumps({**told, "usage": usage}).encode())

        def _stream(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            for number, piece in enumerate(pieces(ground.nonce)):
                if number:
                    time.sleep(PAUSE_S)
                self.wfile.write(piece)
                self.wfile.flush()
            self.close_connection = True

    return Model
