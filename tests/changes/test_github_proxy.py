"""Where this host has to use a proxy, GitHub is asked, and pushed to, through it."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from changes import github, pushing, store
from changes.git import GitError
from changes.github import NotAsked, Site
from runs.refusal import HostRefusal, Refusal
from tests.changes.rows import make_git, run_git
from tests.changes.stand_in import TOKEN

HUB = Site("https://api.hub.example", "https://hub.example")


class Proxy:
    """Refuses every tunnel, and keeps what it was asked for."""

    def __init__(self, server: socket.socket) -> None:
        self.server, self.heard = server, []  # type: ignore[var-annotated]

    def serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.server.accept()
                with client:
                    self.heard.append(client.recv(8192))
                    client.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        found = Proxy(server)
        thread = threading.Thread(target=found.serve, daemon=True)
        thread.start()
        address = f"http://user:pass-77@127.0.0.1:{server.getsockname()[1]}"
        for name in ("https_proxy", "no_proxy", "NO_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("HTTPS_PROXY", address)
        yield found
        server.shutdown(socket.SHUT_RDWR)
    thread.join(10)


def test_the_api_is_asked_through_the_proxy_and_only_the_tunnel_is_seen(proxy: Proxy):
    with pytest.raises(NotAsked, match=r"hub\.example could not be reached") as raised:
        github.ask(HUB, TOKEN, "GET", "/repos/people/shop")

    (heard,) = proxy.heard
    assert heard.startswith(b"CONNECT api.hub.example:443 ")
    assert b"proxy-authorization: basic" in heard.lower()
    assert TOKEN.encode() not in heard
    assert "pass-77" not in str(raised.value)


def test_git_pushes_through_the_proxy(proxy: Proxy, tmp_path: Path):
    repository = make_git(tmp_path / "shop")
    commit = run_git(repository, "rev-parse", "HEAD")
    own = store.opened(tmp_path / "store.git")
    run_git(repository, "push", "-q", str(own.path), "main:refs/sanduk/bases/x")

    with pytest.raises((GitError, Refusal)) as raised:
        pushing.push(own, commit, HUB, f"{HUB.address}/people/shop.git", "new", TOKEN)

    heard = b"".join(proxy.heard)
    assert b"CONNECT hub.example:443 " in heard
    assert github.basic(TOKEN).encode() not in heard
    assert "pass-77" not in str(raised.value)


def test_a_proxy_that_cannot_be_used_is_told_without_its_password(monkeypatch):
    monkeypatch.setenv("https_proxy", "socks5://user:pass-77@127.0.0.1:9")

    with pytest.raises(HostRefusal, match="https_proxy") as raised:
        github.ask(HUB, TOKEN, "GET", "/")
    assert "pass-77" not in str(raised.value)


def test_a_site_that_is_not_there_was_not_asked(settings):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    here = Site(f"http://127.0.0.1:{port}/api/v3", f"http://127.0.0.1:{port}")

    with pytest.raises(NotAsked):
        github.ask(here, TOKEN, "POST", "/repos/people/shop/pulls", body={})
