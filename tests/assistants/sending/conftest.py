"""A state directory of its own, and servers on loopback that a test asks what they got."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from relay import get_provider, provider_names


@pytest.fixture(autouse=True)
def state(tmp_path: Path, settings, monkeypatch: pytest.MonkeyPatch) -> Path:
    settings.SANDUK_HOME = tmp_path / "state"
    settings.SANDUK_HOME.mkdir(mode=0o700)
    for name in provider_names():
        if variable := get_provider(name).key_env:
            monkeypatch.delenv(variable, raising=False)
            monkeypatch.delenv(f"{variable}_FILE", raising=False)
    return settings.SANDUK_HOME


class Receiver:
    """A webhook's receiver: what it got, and what it answers."""

    def __init__(self) -> None:
        self.got: list[tuple[dict[str, str], bytes]] = []
        self.paths: list[str] = []
        self.status, self.headers, self.body = 200, {}, b"thanks"
        self.hold = threading.Event()  # set: answer; cleared by a test that wants silence
        self.hold.set()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                size = int(self.headers["Content-Length"])
                receiver.got.append((dict(self.headers.items()), self.rfile.read(size)))
                receiver.paths.append(self.path)
                receiver.hold.wait(30)
                try:
                    self.send_response(receiver.status)
                    for name, value in receiver.headers.items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(receiver.body)
                except (BrokenPipeError, ConnectionResetError):
                    pass

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    @property
    def port(self) -> int:
        return self._server.server_port

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    def bodies(self) -> list[dict]:
        return [json.loads(body) for _, body in self.got]

    def close(self) -> None:
        self.hold.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    one = Receiver()
    yield one
    one.close()
