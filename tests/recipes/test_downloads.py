"""Images really built from downloads: stand-ins for release pages that are not reachable here.

A stand-in is a shipped recipe whose download is replaced by an archive of our own, with its own
hash, from a file server on loopback. Everything else, the fetching script too, is the shipped one.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import ssl
import tarfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from recipes import BuildContext, load, render
from relay import get_provider
from runs.agents import get_agent
from runs.agents.base import Request, Result, Tally, Trace
from tests.recipes.test_images import ANY_UID, HARDENED, LABEL, build, docker, engine
from tests.relay.certificates import make_certificate, server_context

__all__ = ["engine"]  # its clean-up is wanted here too
pytestmark = pytest.mark.engine
ROOT = "http://127.0.0.1:8080"

HAX = """#!/bin/sh
# Says how it was started, as hax reports; it calls itself, as hax does.
if [ "$1" = --inner ]; then echo inner; exit; fi
printf '{"kind": "assistant", "text": "%s %s"}\\n' "$(hax --inner)" "$(tree-tool)"
printf '{"kind": "tool_call", "tool_name": "bash", "input": "%s"}\\n' "$HAX_OPENAI_BASE_URL"
echo '{"kind": "turn_usage", "usage": {"input": 10, "output": 5, "cached": 4}}'
printf '{"type": "result", "outcome": "complete", "text": "%s", "turns": 1}\\n' "$3"
"""
MINIMA = """#!/bin/sh
# Says how it was started, as minima reports.
printf '{"type": "turn", "text": "%s %s"}\\n' "$2" "$MINIMA_BASE_URL"
echo '{"type": "tool_call", "name": "shell", "input": "ls"}'
printf '{"type": "result", "outcome": "complete", "text": "%s", "turns": 1,' "$4"
echo ' "input_tokens": 10, "output_tokens": 5}'
"""
PRIME = """#!/bin/sh
# Says how it was started, as prime reports; it needs what its archive holds beside it.
beside=$(cat "$(dirname "$(readlink -f "$0")")/python/VERSION")
if [ "$1" = --prime-agent-bootstrap ]; then
    [ "$PRIME_AGENT_INSTALL_UV" = 1 ]
    mkdir -p "$HOME/.local/bin"
    printf '#!/bin/sh\\necho uv %s offline $UV_OFFLINE\\n' "$beside" >"$HOME/.local/bin/uv"
    chmod 755 "$HOME/.local/bin/uv"
    exit
fi
models=$(tr -d '"' <"$PRIME_AGENT_CODING_AGENT_DIR/models.json")
printf '{"type": "tool_execution_start", "toolName": "uv", "args": "%s"}\\n' "$(uv)"
printf '{"type": "message_end", "message": {"role": "assistant", "stopReason": "stop",'
printf ' "content": [{"type": "text", "text": "%s"}],' "$models"
echo ' "usage": {"input": 6, "cacheRead": 4, "output": 5}}}'
echo '{"type": "agent_end", "willRetry": false}'
"""


def archive(**members: str) -> bytes:
    """A gzip tar archive of executable files, owned by nobody we know."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode, info.uid = len(content.encode()), 0o755, 4242
            tar.addfile(info, io.BytesIO(content.encode()))
    return buffer.getvalue()


DOWNLOADS = {
    "hax": archive(hax=HAX, LICENSE="none\n"),
    "minima": archive(minima=MINIMA),
    "prime": archive(**{"prime-agent": PRIME, "python/VERSION": "3.13\n"}),
    "tree": archive(**{"tree-1/bin/tool": "#!/bin/sh\necho from a tree\n"}),
}


class ReleasePage(BaseHTTPRequestHandler):
    """Sends each download on to another address first, as release pages do."""

    def log_message(self, *_: object) -> None:
        """Nothing."""

    def do_GET(self) -> None:
        _, place, name = self.path.split("/", 2)
        content = DOWNLOADS.get(name)
        if content is None:
            self.send_error(404)
        elif place == "releases":
            self.send_response(302)
            self.send_header("location", f"/assets/{name}")
            self.end_headers()
        else:
            self.send_response(200)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)


class TlsServer(ThreadingHTTPServer):
    def __init__(self, context: ssl.SSLContext) -> None:
        super().__init__(("127.0.0.1", 0), ReleasePage)
        self.socket = context.wrap_socket(self.socket, server_side=True)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Nothing: a client that breaks off is its own affair."""


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_certificate(tmp_path_factory.mktemp("tls"), "localhost")


@pytest.fixture(scope="module")
def server(certificate: Path) -> Iterator[str]:
    with TlsServer(server_context(certificate)) as serving:
        thread = threading.Thread(target=serving.serve_forever)
        thread.start()
        yield f"https://localhost:{serving.server_port}"
        serving.shutdown()
        thread.join()


def stand_in(
    name: str, directory: Path, server: str, certificate: Path, sha256: str | None = None
) -> BuildContext:
    """The shipped recipe with its download from the local server, whose certificate is trusted."""

    def artifacts(download: str, **keys: Any) -> dict[str, Any]:
        found = {"url": f"{server}/releases/{download}", **keys}
        found["sha256"] = sha256 or hashlib.sha256(DOWNLOADS[download]).hexdigest()
        return {"amd64": found, "arm64": found}

    (directory / "test.crt").write_bytes((certificate / "cert.pem").read_bytes())
    target = "/usr/local/share/ca-certificates/test.crt"
    trust = [
        {"name": "tools", "type": "apt", "install": ["ca-certificates", "curl"]},
        {"name": "certificate", "type": "copy", "from": "test.crt", "to": target},
        {"name": "trust", "type": "run", "lines": ["update-ca-certificates"]},
    ]
    sections: list[dict[str, Any]] = [{"name": name, "type": "binary"}]
    if name == "prime":
        links = {"/usr/local/bin/prime-agent": "prime-agent"}
        sections[0] |= {"type": "archive", "dest": "/opt/prime-agent", "links": links}
        sections[0]["artifacts"] = artifacts(name)
    else:
        sections[0]["artifacts"] = artifacts(name, member=name)
        tree = {"name": "tree", "type": "archive", "dest": "/opt/tree"}
        tree |= {"links": {"/usr/local/bin/tree-tool": "bin/tool"}}
        sections.append(tree | {"artifacts": artifacts("tree", strip=1)})
    files = {
        "trust": {"sections": trust, "agent": name, "from": "debian:trixie-slim"},
        f"local-{name}": {
            "inherits": ["./trust.json", name],
            "remove": {"sections": ["base"]},  # its packages take long and are not what is tested
            "sections": sections,
        },
    }
    for stem, keys in files.items():
        complete = {"name": stem, "user": "agent", "home": "/home/agent", "entrypoint": ["sh"]}
        (directory / f"{stem}.json").write_text(
            json.dumps((complete if stem == "trust" else {"name": stem}) | keys)
        )
    return render(load(str(directory / f"local-{name}.json")))


def run_stand_in(name: str, image: str) -> tuple[list[Trace], Result | None]:
    """Start it as a run would, as any uid and without a network, and read what it prints."""
    agent, provider = get_agent(name), get_provider("openai-compat")
    launched = agent.launch(
        Request(model="m"), provider, task="-do it", root=ROOT, credential="run-token"
    )
    env = [word for key, value in launched.env.items() for word in ("--env", f"{key}={value}")]
    home = ["--env", "HOME=/home/agent"]
    done = docker(
        "run", *HARDENED, *ANY_UID, "--network", "none", *home, *env, image, *launched.argv
    )
    assert done.stderr == ""
    reader = agent.reader()
    lines: list[Trace] = []
    for line in done.stdout.splitlines():
        lines += reader.record(json.loads(line))
    return lines, reader.result()


SEEN = {
    "hax": (
        [
            Trace("text", "inner from a tree"),
            Trace("tool", "bash", f'{{"input": "{ROOT}/v1"}}'),
        ],
        Result(
            ok=True,
            text="--model=m",
            tally=Tally(input_tokens=10, cached_tokens=4, output_tokens=5, turns=1),
        ),
    ),
    "minima": (
        [
            Trace("text", f"--provider=llamacpp {ROOT}/v1"),
            Trace("tool", "shell", '{"input": "ls"}'),
        ],
        Result(
            ok=True,
            text="--prompt=-do it",
            tally=Tally(input_tokens=10, output_tokens=5, turns=1),
        ),
    ),
    "prime": (
        [
            Trace("tool", "uv", "uv 3.13 offline 1"),
            Trace(
                "text",
                "{providers:{sanduk:{name:sanduk relay,baseUrl:http://127.0.0.1:8080/v1,"
                "api:openai-completions,apiKey:PRIME_RELAY_KEY,models:[{id:m}]}}}",
            ),
        ],
        Result(
            ok=True,
            text="{providers:{sanduk:{name:sanduk relay,baseUrl:http://127.0.0.1:8080/v1,"
            "api:openai-completions,apiKey:PRIME_RELAY_KEY,models:[{id:m}]}}}",
            tally=Tally(input_tokens=10, cached_tokens=4, output_tokens=5, turns=1),
        ),
    ),
}


@pytest.mark.parametrize("name", SEEN)
def test_an_image_is_built_from_a_download_started_and_read(
    name: str, tmp_path: Path, server: str, certificate: Path
) -> None:
    context = stand_in(name, tmp_path, server, certificate)
    image = f"sanduk-test-{LABEL.rpartition('-')[2]}:{name}"
    # The build shares this machine's network: its loopback is the only way to the server.
    build(context, tmp_path / "context", "--network", "host", "--label", LABEL, "--tag", image)

    assert run_stand_in(name, image) == SEEN[name]
    # K-5: what an archive says of owners counts for nothing.
    unpacked = {"hax": "/opt/tree/bin/tool", "prime": "/opt/prime-agent/python/VERSION"}
    path = unpacked.get(name, f"/usr/local/bin/{name}")
    done = docker("run", *HARDENED, "--entrypoint", "stat", image, "-c", "%u:%g", path)
    assert done.stdout == "0:0\n"


@pytest.mark.parametrize("name", ["hax", "prime"])
def test_a_download_that_changed_fails_the_build_and_both_hashes_are_told(
    name: str, tmp_path: Path, server: str, certificate: Path
) -> None:
    context = stand_in(name, tmp_path, server, certificate, sha256="0" * 64)
    flags = ("--network", "host", "--label", LABEL)
    done = build(context, tmp_path / "context", *flags, check=False)
    # A failed build's layers carry no label: the last of them goes, and those below with it.
    docker("image", "rm", re.findall(r"^ ---> ([0-9a-f]{12})$", done.stdout, re.MULTILINE)[-1])

    assert done.returncode != 0
    found = hashlib.sha256(DOWNLOADS[name]).hexdigest()
    expected = f"{server}/releases/{name}: expected SHA-256 {'0' * 64}, found {found}"
    assert expected in done.stdout + done.stderr
