"""The real `sanduk up` in tests: a state directory and a free port of its own."""

from __future__ import annotations

import contextlib
import http.client
import http.cookiejar
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.migrated import prepared

ROOT = Path(__file__).parents[2]
START_S = 90
PASSWORD = "correct horse 7 battery"


def environment(home: Path, **more: str) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    # an engine that is not there: nothing of these tests may start a container
    return {
        **kept,
        "SANDUK_HOME": str(prepared(home)),
        "DOCKER_HOST": "unix:///nonexistent",
        **more,
    }


def sanduk(home: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    return _done(home, "-m", "sanduk_site", *words, **more)


def python(home: Path, code: str) -> subprocess.CompletedProcess[str]:
    """Code of ours in a process of its own, Django ready."""
    ready = "import django; django.setup()\n"
    return _done(home, "-c", ready + code, DJANGO_SETTINGS_MODULE="sanduk_site.settings")


def _done(home: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words],
        cwd=ROOT, env=environment(home, **more), capture_output=True, text=True,
        stdin=subprocess.DEVNULL, timeout=START_S, check=False,
    )  # fmt: skip


def eventually(what: Callable[[], object], *, seconds: float = 60, why: str = "") -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, why or "it never came to be"
        time.sleep(0.1)


@dataclass
class Site:
    """Args:
    process: the supervisor.
    log: what it and its parts say.
    """

    process: subprocess.Popen[bytes]
    log: Path

    @property
    def said(self) -> str:
        return self.log.read_text()

    @property
    def port(self) -> int:
        found = re.search(r"the site is at http://[^ ]*?:(\d+);", self.said)
        assert found, self.said
        return int(found[1])

    def get(self, path: str) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        with contextlib.closing(connection):
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read()

    def ready(self) -> dict[str, object]:
        found: dict[str, object] = json.loads(self.get("/readyz")[1])
        return found

    def children(self) -> dict[str, int]:
        """The parts by their word: web, sanduk (the control cluster), runs."""
        found = {}
        for pid, words in commands().items():
            if parent_of(pid) == self.process.pid and {"web", "cluster"} & set(words):
                found["web" if "web" in words else words[-1]] = pid
        return found

    def family(self) -> set[int]:
        """Everything it started that is there, however far down."""
        found, new = set(), {self.process.pid}
        while new:
            found |= new
            new = {pid for pid in commands() if parent_of(pid) in new} - found
        return found - {self.process.pid}


def commands() -> dict[int, list[str]]:
    found = {}
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            with contextlib.suppress(OSError):
                found[int(place.name)] = (place / "cmdline").read_text().split("\0")[:-1]
    return found


def parent_of(pid: int) -> int:
    with contextlib.suppress(OSError):
        return int((Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[1])
    return 0


def is_there(pid: int) -> bool:
    try:
        stat = (Path("/proc") / str(pid) / "stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


class Browser:
    """Keeps cookies, posts forms with their token."""

    def __init__(self, **headers: str) -> None:
        jar = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
        self._opener = urllib.request.build_opener(jar)
        self._opener.addheaders += [(k.replace("_", "-"), v) for k, v in headers.items()]

    def get(self, url: str) -> tuple[int, str, str]:
        return self._open(url, None)

    def post(self, url: str, **fields: str) -> tuple[int, str, str]:
        _, page, _ = self.get(url)
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
        assert token, page
        data = urllib.parse.urlencode({"csrfmiddlewaretoken": token[1], **fields})
        return self._open(url, data.encode())

    def _open(self, url: str, data: bytes | None) -> tuple[int, str, str]:
        try:
            with self._opener.open(url, data, timeout=30) as answer:
                return answer.status, answer.read().decode(), answer.url
        except urllib.error.HTTPError as exc:
            with exc:
                return exc.code, exc.read().decode(), url


def link_in(site: Site) -> str:
    found = re.search(r"http://\S+/setup/\S+", site.said)
    assert found, site.said
    return found[0]


@contextlib.contextmanager
def site_up(home: Path, *words: str, **more: str) -> Iterator[Site]:
    """A site that has told its address; ended, with all it started, behind the block."""
    log = home.parent / f"{home.name}.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "sanduk_site", "up", "--port", "0", *words],
            cwd=ROOT, env=environment(home, **more), stdin=subprocess.DEVNULL, stdout=out,
            stderr=out,
        )  # fmt: skip
    site = Site(process, log)
    family: set[int] = set()
    try:
        eventually(
            lambda: "the site is at" in site.said or process.poll() is not None,
            seconds=START_S,
        )
        assert process.poll() is None, site.said
        yield site
    finally:
        family = site.family()
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for pid in family:
            with contextlib.suppress(ProcessLookupError):
                if is_there(pid) and str(home) in _environment_of(pid):
                    os.kill(pid, signal.SIGKILL)


def _environment_of(pid: int) -> str:
    try:
        return (Path("/proc") / str(pid) / "environ").read_text(errors="replace")
    except OSError:
        return ""
