"""A stand-in for GitHub on this machine: its API in a few routes, and git's own server beside it.

Everything that was asked is kept, headers and all. Tests bend it with `answers` and `before`.
"""

from __future__ import annotations

import base64
import contextlib
import json
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.changes.rows import GIT, run_git

TOKEN = "github_pat_" + "Stand1nToken" * 4
API = "/api/v3"


@dataclass
class Asked:
    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    body: bytes

    @property
    def data(self) -> Any:
        return json.loads(self.body)


@dataclass
class GitHub:
    """One repository, `people/shop`, that the token may push to.

    Attributes:
        answers: (method, end of the path) to what is answered instead: a status and bytes, or a
            function of the question that gives them, or None to go on.
        hangs_up: (method, end of the path) that are carried out and never answered.
    """

    bare: Path
    port: int = 0
    default_branch: str = "main"
    push: bool = True
    archived: bool = False
    pulls: list[dict[str, Any]] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    answers: dict[tuple[str, str], Any] = field(default_factory=dict)
    hangs_up: set[tuple[str, str]] = field(default_factory=set)
    git_denied: bool = False

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def api(self) -> str:
        return f"{self.address}{API}"

    @property
    def remote(self) -> str:
        return f"{self.address}/people/shop.git"

    def tip(self, branch: str) -> str:
        done = subprocess.run(
            ["git", "rev-parse", "--verify", "--quiet", f"refs/heads/{branch}"],
            cwd=self.bare, env=GIT, capture_output=True, text=True, check=False, timeout=30,
        )  # fmt: skip
        return done.stdout.strip()

    def posts(self) -> list[Asked]:
        return [each for each in self.asked if each.method == "POST" and "/pulls" in each.path]

    def pushes(self) -> list[Asked]:
        return [each for each in self.asked if each.path.endswith("/git-receive-pack")]

    def answer(self, asked: Asked) -> tuple[int, bytes]:
        if asked.headers.get("authorization") != f"Bearer {TOKEN}":
            return 401, b'{"message": "Bad credentials"}'
        for (method, end), told in self.answers.items():
            if asked.method == method and asked.path.endswith(end):
                found = told(asked) if callable(told) else told
                if found is not None:
                    return found
        status, data = self._routed(asked, asked.path.removeprefix(f"{API}/repos/people/shop"))
        return status, json.dumps(data).encode()

    def _routed(self, asked: Asked, path: str) -> tuple[int, Any]:
        lost = (404, {"message": "Not Found"})
        if path == "":
            return 200, {
                "full_name": "people/shop", "default_branch": self.default_branch,
                "archived": self.archived, "permissions": {"push": self.push, "pull": True},
            }  # fmt: skip
        if path.startswith("/branches/"):
            name = unquote(path.removeprefix("/branches/"))
            return (200, {"name": name}) if self.tip(name) else lost
        if path.startswith("/git/ref/heads/"):
            name = unquote(path.removeprefix("/git/ref/heads/"))
            tip = self.tip(name)
            ref = {"ref": f"refs/heads/{name}", "object": {"sha": tip, "type": "commit"}}
            return (200, ref) if tip else lost
        if path.startswith("/compare/"):
            branch, commit = unquote(path.removeprefix("/compare/")).split("...")
            return self._compared(branch, commit) if self.tip(branch) else lost
        if path == "/pulls" and asked.method == "GET":
            head = asked.query["head"][0].removeprefix("people:")
            state = asked.query.get("state", ["open"])[0]
            return 200, [
                each for each in self.pulls
                if each["head"]["ref"] == head and state in ("all", each["state"])
            ]  # fmt: skip
        if path == "/pulls":
            return self._made(asked.data)
        return lost

    def _compared(self, branch: str, commit: str) -> tuple[int, Any]:
        words = ["git", "merge-base", "--is-ancestor", commit, f"refs/heads/{branch}"]
        done = subprocess.run(words, cwd=self.bare, env=GIT, capture_output=True, check=False)
        if done.returncode > 1:
            return 404, {"message": "Not Found"}
        if done.returncode:
            return 200, {"status": "ahead"}
        return 200, {"status": "identical" if self.tip(branch) == commit else "behind"}

    def _made(self, asked: dict[str, Any]) -> tuple[int, Any]:
        is_there = any(
            each["head"]["ref"] == asked["head"] and each["state"] == "open" for each in self.pulls
        )
        if is_there or not self.tip(asked["head"]):
            said = f"A pull request already exists for people:{asked['head']}."
            return 422, {"message": "Validation Failed", "errors": [{"message": said}]}
        made = {
            "number": len(self.pulls) + 41, "state": "open", "draft": asked["draft"],
            "html_url": f"{self.address}/people/shop/pull/{len(self.pulls) + 41}",
            "head": {"ref": asked["head"], "sha": self.tip(asked["head"])},
            "base": {"ref": asked["base"], "sha": self.tip(asked["base"])},
        }  # fmt: skip
        self.pulls.append(made)
        return 201, made

    def served_by_git(self, asked: Asked, query: str) -> tuple[int, dict[str, str], bytes]:
        wanted = base64.b64encode(f"x-access-token:{TOKEN}".encode()).decode()
        if asked.headers.get("authorization") != f"Basic {wanted}":
            return 401, {"WWW-Authenticate": 'Basic realm="stand-in"'}, b""
        if self.git_denied:
            return 403, {}, b"not for you"
        env = {
            **GIT, "GIT_PROJECT_ROOT": str(self.bare.parent), "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": asked.path.replace("/people/shop.git", f"/{self.bare.name}", 1),
            "QUERY_STRING": query, "REQUEST_METHOD": asked.method, "REMOTE_USER": "stand-in",
            "CONTENT_TYPE": asked.headers.get("content-type", ""),
            "CONTENT_LENGTH": str(len(asked.body)),
            "HTTP_CONTENT_ENCODING": asked.headers.get("content-encoding", ""),
            "GIT_PROTOCOL": asked.headers.get("git-protocol", ""),
        }  # fmt: skip
        done = subprocess.run(
            ["git", "http-backend"], env=env, input=asked.body, capture_output=True, check=True,
            timeout=60,
        )  # fmt: skip
        head, _, body = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        return int(headers.pop("Status", "200").split()[0]), headers, body


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    github: GitHub

    def _handle(self) -> None:
        parts = urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        asked = Asked(self.command, parts.path, parse_qs(parts.query), headers, self._body(headers))
        self.github.asked.append(asked)
        extra = {"Content-Type": "application/json"}
        if parts.path.startswith(API):
            status, body = self.github.answer(asked)
        else:
            status, extra, body = self.github.served_by_git(asked, parts.query)
        if any(
            asked.method == method and asked.path.endswith(end)
            for method, end in self.github.hangs_up
        ):
            self.close_connection = True
            return
        self.send_response(status)
        for name, value in extra.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(body)

    do_GET = do_POST = _handle

    def _body(self, headers: dict[str, str]) -> bytes:
        if headers.get("transfer-encoding") != "chunked":
            return self.rfile.read(int(headers.get("content-length", "0")))
        found = b""
        while size := int(self.rfile.readline(), 16):
            found += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return found

    def log_message(self, *words: object) -> None:
        """Say nothing."""


@contextlib.contextmanager
def serving(directory: Path, source: Path) -> Iterator[GitHub]:
    """The stand-in, with a repository that has what `source` has on its branch main."""
    bare = directory / "shop.git"
    run_git(source, "clone", "-q", "--bare", str(source), str(bare))
    run_git(bare, "config", "http.receivepack", "true")
    github = GitHub(bare)
    handler: Callable[..., BaseHTTPRequestHandler] = type(
        "Handler", (_Handler,), {"github": github}
    )
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        github.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield github
        finally:
            server.shutdown()
            thread.join()
