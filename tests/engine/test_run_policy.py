"""What the relay allows, through the command and with the real agents."""

from __future__ import annotations

import contextlib
import http.server
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.running import AGENTS, DONE, Installation

pytestmark = pytest.mark.engine
CALL = 'curl -s -o /dev/null -w "%{http_code}" -H "Authorization: Bearer $RELAY_TOKEN"'


@pytest.mark.parametrize("agent", AGENTS)
def test_a_run_under_a_budget_ends_cleanly_when_it_is_used_up(
    docker: Installation, agent_images: None, agent: str
):
    """The first call uses up the 400 tokens: nothing is left for the second."""
    words = ("--agent", agent, "--provider", "rehearsal", "--token-budget", "400", "look around")
    done = docker.sanduk("run", "-q", "-w", str(docker.work), *words, limit_s=120)

    row = docker.row
    assert (done.code, row["outcome"]) == (4, "budget_exhausted"), done
    assert "the budget is used up" in done.err
    assert row["spent_tokens"] in (440, 444)  # the protocols' numbers differ
    assert row["calls_completed"] == 1
    docker.nothing_left()


def test_a_model_that_is_not_allowed_is_refused_with_the_flag_that_would_allow_it(
    docker: Installation,
):
    done = docker.run(
        f'{CALL} -d \'{{"model":"dear"}}\' $RELAY_URL/chat/completions; {DONE}',
        "--allow-model",
        "cheap",
    )
    call = docker.show()["relay_calls"][0]

    assert done.code == 1  # no call was completed
    assert (call["status"], call["refusal"]) == (403, "allow-model")
    assert docker.row["calls_refused"] == 1


def test_the_number_of_calls_can_be_limited(docker: Installation):
    body = '{"model":"rehearsal","messages":[]}'
    call = f"{CALL} -d '{body}' $RELAY_URL/chat/completions"
    docker.run(f"{call}; {call}; {DONE}", "--max-calls", "1")

    assert [each["status"] for each in docker.show()["relay_calls"]] == [200, 403]


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--mode", "open", "--budget", "1"), "open runs have no relay"),
        (("--mode", "key-safe", "--allow-host", "example.com"), "a door in a sealed run"),
        (("--budget", "nan"), "above 0"),
        (("--budget-strict",), "need --budget"),
        (("--allow-host", "*.example.com"), "no wildcards"),
        (("--allow-host", "127.0.0.1"), "127.0.0.1"),
        (("--max-calls", "0"), "from 1"),
        (("--allow-path", "/../x"), "--allow-path"),
    ],
)
def test_rules_that_mean_nothing_are_refused(docker: Installation, flags, words):
    done = docker.sanduk("run", "--agent", "pi", "--provider", "rehearsal", *flags, "x")

    assert done.code == 2
    assert words in done.err
    assert "Traceback" not in done.err


def test_without_the_flag_there_is_no_door(docker: Installation):
    docker.run(f"env | grep -ci proxy; (echo > /dev/tcp/127.0.0.1/3128) 2>&1; {DONE}")

    assert docker.show()["egress_attempts"] == []


def test_a_host_that_is_not_listed_is_refused_and_told(docker: Installation):
    done = docker.run(
        f"curl -s -m 5 https://unlisted.invalid/; {DONE}", "--allow-host", "listed.invalid"
    )
    (attempt,) = docker.show()["egress_attempts"]

    assert (attempt["host"], attempt["port"], attempt["allowed"]) == (
        "unlisted.invalid", 443, False,
    )  # fmt: skip
    assert attempt["flag"] == "--allow-host unlisted.invalid:443"
    assert "--allow-host unlisted.invalid:443" in done.err


def test_a_name_of_this_machine_cannot_be_listed(docker: Installation):
    done = docker.run(DONE, "--allow-host", "localhost:8443")

    assert done.code == 2
    assert "localhost" in done.err


def test_a_listed_host_is_reached_and_the_bytes_are_counted(docker: Installation, tmp_path):
    """The stand-in for a host outside: this machine's name, admitted by the operator alone."""
    name = socket.gethostname()
    try:
        address = socket.getaddrinfo(name, None, socket.AF_INET)[0][4][0]
    except OSError:
        pytest.skip(f"the name of this machine ({name}) resolves to no address")
    with serving_tls(address, tmp_path) as port:
        fetch = f"curl -sk -m 10 https://{name}:{port}/"
        docker.run(
            f'echo \'{{"type":"text","text":"\'$({fetch})\'"}}\'; {DONE}',
            "--allow-host",
            f"{name}:{port}",
            SANDUK_EGRESS_ADMIT=f"{address}:{port}",
        )
    shown = docker.show()
    (attempt,) = shown["egress_attempts"]

    assert (attempt["host"], attempt["allowed"], attempt["listed"]) == (name.lower(), True, True)
    assert attempt["bytes_in"] > 1000  # a certificate and an answer
    assert any("hello from outside" in event["text"] for event in shown["trace"])
    assert shown["certificate"]["headline"].startswith("sealed")


@contextlib.contextmanager
def serving_tls(address: str, place: Path) -> Iterator[int]:
    """A small HTTPS server with a certificate of its own, for the length of the block."""
    key, certificate = place / "key.pem", place / "cert.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj",
         "/CN=outside", "-keyout", str(key), "-out", str(certificate)],
        check=True, capture_output=True,
    )  # fmt: skip

    class Hello(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"hello from outside")

        def log_message(self, *_: object) -> None:
            return

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with http.server.ThreadingHTTPServer((address, 0), Hello) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
