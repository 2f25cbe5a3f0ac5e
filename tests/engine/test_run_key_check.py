"""A key the provider does not take ends a run before it starts, also while images are built."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.engine.engine_fixtures import told
from tests.engine.running import DONE, Installation

pytestmark = pytest.mark.engine
BUILT_S = 40
SLOW = f'FROM debian:trixie-slim\nRUN sleep {BUILT_S}\nENTRYPOINT ["true"]\n'


class Provider(BaseHTTPRequestHandler):
    """Takes no key. It answers when the build has had time to begin."""

    def do_GET(self) -> None:
        time.sleep(2)
        self.send_response(401)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def upstream() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize("mode", ["sealed", "open"])
def test_a_bad_key_does_not_wait_for_the_build(docker: Installation, upstream: str, mode: str):
    file = docker.ground / "Containerfile"
    file.write_text(SLOW)
    words = [word for word in docker.words(DONE, "--mode", mode) if word != "--skip-key-check"]
    at = words.index("--agent")
    words[at + 1] = "pi"
    place = words.index("--provider")
    words[place + 1] = "openai"
    words[at:at] = ["-q", "--model", "m", "--containerfile", str(file)]
    words[at:at] = ["--upstream", upstream] if mode == "sealed" else ["--base-url", upstream]
    done = docker.sanduk(*words, OPENAI_API_KEY="sk-no-such-key-0123456789", DOCKER_BUILDKIT="0")

    assert done.code == 2, done
    assert "openai does not accept OPENAI_API_KEY (it answered 401)" in done.line
    assert done.took_s < BUILT_S
    assert docker.row["outcome"] == "refused"
    docker.nothing_left()
    label = f"label=sanduk.install={(docker.home / 'install-id').read_text()}"
    assert told("docker", "images", "-q", "--filter", label).stdout == ""
