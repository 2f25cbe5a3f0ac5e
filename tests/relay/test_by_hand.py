"""`python -m relay`: one relay, started by hand."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import httpx
import pytest

from relay.arguments import relay_parser
from tests.relay.stand import plain

ROOT = Path(__file__).parents[2]
TOKEN = "run-token-9"
KEY = "sk-by-hand-key"
ENVIRON = {**os.environ, "RUN_TOKEN": TOKEN, "PYTHONWARNINGS": "error"}
BASIC = ("--token-env", "RUN_TOKEN")
NOPE = ("--upstream-key-env", "NOPE")


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "relay", *arguments]


@contextlib.contextmanager
def started(*arguments: str, **environ: str):
    """The relay as a process, and what it said so far as a list that grows."""
    process = subprocess.Popen(
        command(*BASIC, *arguments),
        cwd=ROOT,
        env={**ENVIRON, **environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    watchdog = threading.Timer(30, process.kill)
    watchdog.start()
    try:
        yield process, json.loads(process.stdout.readline() or "null")
    finally:
        watchdog.cancel()
        process.kill()
        process.communicate()


def ended(process: subprocess.Popen, number: int = signal.SIGTERM) -> list[dict]:
    process.send_signal(number)
    out, err = process.communicate(timeout=10)
    assert (process.returncode, err) == (0, "")
    return [json.loads(line) for line in out.splitlines()]


def refused(*arguments: str, **environ: str) -> str:
    done = subprocess.run(
        command(*arguments),
        cwd=ROOT,
        env={**ENVIRON, **environ},
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert (done.returncode, done.stdout) == (2, ""), done
    (line,) = done.stderr.splitlines()
    assert line.startswith("relay: ")
    return line


def ask(url: str, path: str = "/v1/chat/completions", **options):
    headers = {"authorization": f"Bearer {TOKEN}"}
    body = {"model": "rehearsal", "messages": [{"role": "user", "content": "hello"}]}
    return httpx.post(f"http://{url}{path}", headers=headers, json=body, **options)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_a_signal_and_prints_calls_as_lines_of_json(number):
    with started("--provider", "rehearsal", "--listen", "127.0.0.1:0") as (process, first):
        url = first["listening"]
        assert first["provider"] == "rehearsal"
        assert ask(url).status_code == 200
        assert httpx.get(f"http://{url}/v1/models").status_code == 401
        *calls, total = ended(process, number)
    assert [line["call"]["status"] for line in calls] == [200, 401]
    assert calls[0]["call"]["usage"]["input_tokens"] == 400
    assert calls[1]["call"]["refusal"] == "token"
    assert (total["total"]["relayed"], total["total"]["refused"]) == (1, 1)


def test_a_unix_socket_at_a_long_path_is_served_and_removed(tmp_path):
    path = tmp_path / ("d" * 100) / "relay.sock"
    path.parent.mkdir()
    listen = f"unix:{path}"
    with started("--provider", "rehearsal", "--listen", listen) as (process, first):
        assert first["listening"] == listen
        assert path.stat().st_mode & 0o777 == 0o600
        ended(process)
    assert not path.exists()


def test_it_keeps_bodies_where_it_is_told_to(tmp_path):
    kept = tmp_path / "kept"
    flags = ["--provider", "rehearsal", "--listen", "127.0.0.1:0", "--log-bodies", str(kept)]
    with started(*flags) as (process, first):
        assert ask(first["listening"]).status_code == 200
        ended(process)
    assert json.loads((kept / "0001.json").read_text())["model"] == "rehearsal"
    assert json.loads((kept / "0001.outcome.json").read_text())["status"] == 200


def test_the_rules_of_a_policy_have_the_names_of_the_commands_flags():
    rules = ["--allow-model", "other", "--allow-path", "/v1/files"]
    with started("--provider", "rehearsal", "--listen", "127.0.0.1:0", *rules) as (process, first):
        answer = ask(first["listening"])
        assert answer.status_code == 403
        assert "--allow-model" in answer.text
        ended(process)


@pytest.fixture
def upstream():
    """A provider of one answer at a time, and the heads it got."""
    heads = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(20)

        def serve():
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    with connection:
                        connection.settimeout(5)
                        heads.append(connection.recv(65536).decode("latin-1"))
                        connection.sendall(plain(b"{}", "connection: close"))

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", heads
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(5)


def test_an_upstream_gets_the_key_of_the_variable_that_was_named(upstream):
    address, heads = upstream
    flags = ["--provider", "openai-compat", "--upstream", address, "--upstream-key-env", "MY_KEY"]
    environ = {"MY_KEY": KEY, "OPENAI_API_KEY": "sk-another"}
    with started(*flags, "--listen", "127.0.0.1:0", **environ) as (process, first):
        assert ask(first["listening"]).status_code == 200
        printed = json.dumps([first, *ended(process)])
    assert f"Bearer {KEY}\r\n" in heads[0]
    assert KEY not in printed
    assert TOKEN not in printed


def test_an_exported_key_goes_to_no_upstream_by_itself(upstream):
    address, heads = upstream
    flags = ["--provider", "openai-compat", "--upstream", address, "--listen", "127.0.0.1:0"]
    with started(*flags, OPENAI_API_KEY=KEY) as (process, first):
        assert ask(first["listening"]).status_code == 200
        ended(process)
    assert KEY not in heads[0]


def test_the_key_is_checked_before_it_serves(upstream):
    address, heads = upstream
    flags = ["--provider", "anthropic", "--upstream", address, "--listen", "127.0.0.1:0"]
    with started(*flags, ANTHROPIC_API_KEY=KEY) as (process, first):
        assert first["upstream"] == address
        ended(process)
    assert heads[0].startswith("GET /v1/models HTTP/1.1\r\n")


def test_the_egress_door_stands_beside_it(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as host:
        port = host.getsockname()[1]
        door = tmp_path / "egress.sock"
        flags = ["--egress-listen", f"unix:{door}", "--egress", "warn"]
        flags += ["--egress-admit", f"127.0.0.1:{port}"]
        listen = ["--provider", "rehearsal", "--listen", "127.0.0.1:0"]
        with started(*listen, *flags) as (process, _):
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(5)
                client.connect(str(door))
                client.sendall(f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n".encode())
                assert client.recv(4096).startswith(b"HTTP/1.1 200 ")
            lines = ended(process)
    attempt = lines[0]["egress"]
    assert (attempt["port"], attempt["allowed"]) == (port, True)
    assert attempt["flag"] == ""  # no flag lists an address of this machine
    assert not door.exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--provider", "nobody"], "no provider 'nobody'"),
        (["--provider", "anthropic"], "export ANTHROPIC_API_KEY"),
        (["--provider", "rehearsal", "--budget", "nan"], "--budget"),
        (["--provider", "rehearsal", "--budget", "-1"], "--budget"),
        (["--provider", "rehearsal", "--token-budget", "0"], "--token-budget"),
        (["--provider", "rehearsal", "--budget-strict"], "need --budget"),
        (["--provider", "rehearsal", "--max-tokens-cap", "0"], "--max-tokens-cap"),
        (["--provider", "rehearsal", "--allow-path", "/a/../b"], "--allow-path"),
        (["--provider", "rehearsal", "--upstream", "http://10.0.0.1"], "--insecure-upstream"),
        (["--provider", "rehearsal", "--upstream-idle-timeout", "nan"], "--upstream-idle-timeout"),
        (["--provider", "rehearsal", "--allow-host", "files.test"], "--egress-listen"),
        (["--provider", "rehearsal", "--egress-listen", "x"], "unix:PATH"),
        (
            ["--provider", "rehearsal", "--egress-listen", "unix:x", "--allow-host", "*.test"],
            "no wildcards",
        ),
        (["--provider", "rehearsal", "--prices", "/nowhere"], "/nowhere: No such file"),
        (["--provider", "rehearsal", "--providers", "/nowhere"], "/nowhere: No such file"),
        (["--provider", "rehearsal", "--max-body", "0"], "--max-body: it takes a whole number"),
        (["--provider", "rehearsal", "--max-body", "x"], "in digits, not 'x'"),
        (["--provider", "rehearsal", "--max-body", "9" * 17], "--max-body: it takes a whole"),
        (["--provider", "rehearsal", "--max-calls", "٣"], "--max-calls: it takes a whole number"),
        (["--provider", "rehearsal", "--proxy-allow-path", "/v1/x"], "gone: --allow-path adds a"),
        (["--provider", "rehearsal", "--no-such-flag"], "--no-such-flag"),
        (["--provider", "rehearsal", "--egress-listen", "unix:/no/x"], "unix:/no/x: No such file"),
        (["--provider", "rehearsal", "--upstream-key-env", "K"], "nothing without --upstream"),
        (["--provider", "openai-compat", "--upstream", "http://127.0.0.1:1", *NOPE], "NOPE: this"),
        (["--provider", "openai-compat", "--upstream", "unix:/tmp/x", *NOPE], "NOPE: this"),
        (["--provider", "openai-compat", "--budget", "1", "--unpriced", "serial"], "report what"),
    ],
)
def test_arguments_that_make_no_sense_are_refused_in_one_line(arguments, words):
    environ = {"ANTHROPIC_API_KEY": ""}
    assert words in refused("--listen", "127.0.0.1:0", *BASIC, *arguments, **environ)


def test_a_token_that_is_not_there_is_refused():
    said = refused("--provider", "rehearsal", "--listen", "127.0.0.1:0", "--token-env", "NO_TOKEN")
    assert "NO_TOKEN" in said


@pytest.mark.parametrize("token", ["two\nlines", "a b", "é", "\n"])
def test_a_token_that_no_header_can_carry_is_refused_and_not_shown(token):
    listen = ("--provider", "rehearsal", "--listen", "127.0.0.1:0")
    said = refused(*listen, *BASIC, RUN_TOKEN=token)
    assert said == (
        "relay: --token-env RUN_TOKEN: no header can carry this token; visible ASCII, no space, "
        "no line break"
    )


@pytest.mark.parametrize(
    ("listen", "words"),
    [
        ("unix:/nonexistent/x", "unix:/nonexistent/x: No such file"),
        ("192.0.2.1:1", "192.0.2.1:1: "),
    ],
)
def test_a_place_where_nothing_can_listen_is_named(listen, words):
    assert words in refused("--provider", "rehearsal", *BASIC, "--listen", listen)


def test_other_machines_in_reach_are_said():
    flags = ["--provider", "rehearsal", "--listen", "[::]:0"]
    with started(*flags) as (process, first):
        assert first["upstream"] == "the rehearsal model, inside this process"
        process.terminate()
        assert "no loopback address: other machines can reach this relay" in process.stderr.read()


def test_the_help_explains_every_flag_and_ends_with_an_example():
    text = relay_parser().format_help()
    assert "examples:\n  RUN_TOKEN=secret python -m relay --provider rehearsal" in text
    assert [action.dest for action in relay_parser()._actions if not action.help] == []


@pytest.mark.parametrize("listen", ["8080", "127.0.0.1:", ":8080", "127.0.0.1:99999", "unix:"])
def test_an_address_that_is_none_is_said(listen):
    said = refused("--provider", "rehearsal", *BASIC, "--listen", listen)
    assert said == "relay: --listen takes HOST:PORT or unix:PATH"
