"""Each kind of destination: what the receiver gets, and every way that can go wrong."""

from __future__ import annotations

import base64
import fcntl
import hashlib
import hmac
import json
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from assistants.delivery import apprise_url, command, file, webhook
from assistants.delivery.kinds import (
    AppriseSettings,
    CommandSettings,
    FileSettings,
    WebhookSettings,
)
from assistants.delivery.parcel import OUTPUT_MAX, Doubtful, Failed, Parcel
from assistants.outbox import digest_of
from runs import clock, credentials
from runs.refusal import Refusal

BODY = "größe\n$(touch /tmp/never) `id` ; \x1b[2J"


def parcel(body: str = BODY) -> Parcel:
    return Parcel(
        assistant="daily",
        item=7,
        run="r-1",
        key="k" * 32,
        number=1,
        created_at=clock.now(),
        sha256=digest_of(body),
        body=body,
    )


def run_command(*argv: str, timeout_s: float = 20, body: str = BODY) -> str:
    return command.send(parcel(body), CommandSettings(argv=argv), timeout_s)


def shell(text: str, **how) -> str:
    return run_command("/bin/sh", "-c", text, **how)


# commands


def test_a_command_gets_the_body_and_who_it_is_from():
    names = ("ASSISTANT", "RUN_ID", "DELIVERY_ID", "ITEM_ID")
    echo = " ".join(f'"$SANDUK_{name}"' for name in names)

    assert shell(f"echo {echo}; cat") == f"daily r-1 {'k' * 32} 7\n{BODY}"


def test_words_of_a_command_go_to_no_shell():
    assert run_command("echo", "$HOME", ";", "id") == "$HOME ; id\n"


def test_a_command_does_not_see_our_keys_and_keeps_its_own(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "a-provider-key")
    monkeypatch.setenv("OTHER_NAME", "a-provider-key")
    monkeypatch.setenv("DATABASE_URL", "postgres://u:p@h/d")
    monkeypatch.setenv("TICKET_TOKEN", "its-own")

    seen = shell("env")
    assert "a-provider-key" not in seen
    assert "DATABASE_URL" not in seen
    assert "TICKET_TOKEN=its-own" in seen


def test_a_command_that_fails_is_told_with_what_it_said():
    with pytest.raises(Failed, match="exited with 3") as failed:
        shell("echo no such queue >&2; exit 3")
    assert failed.value.output == "no such queue\n"
    assert not failed.value.lasting


def test_a_command_that_is_not_there_is_a_failure():
    with pytest.raises(Failed, match="could not be started"):
        run_command("/nowhere/notify")


def test_a_command_need_not_read_the_body():
    assert shell("echo done", body="x" * 5_000_000) == "done\n"


def test_endless_output_is_cut_and_does_not_fill_memory():
    said = shell("head -c 50000000 /dev/zero | tr '\\0' x; echo end")

    assert len(said) <= 64 * 1024
    assert said.endswith("end\n")


def test_a_command_out_of_time_is_killed_with_all_it_started(tmp_path: Path):
    started = time.monotonic()
    with pytest.raises(Doubtful, match="did not end within 1 s"):
        shell(f"(sleep 3; touch {tmp_path}/late) & sleep 30", timeout_s=1)

    assert time.monotonic() - started < 15
    time.sleep(2.5)
    assert not (tmp_path / "late").exists()


def test_what_a_command_leaves_behind_does_not_hold_us():
    started = time.monotonic()

    assert shell("sleep 60 & echo done") == "done\n"
    assert time.monotonic() - started < 15


def test_a_command_that_is_killed_by_others_may_have_sent():
    with pytest.raises(Doubtful, match="SIGKILL"):
        shell("kill -9 $$")


# webhooks


def post(url: str, timeout_s: float = 20, **settings) -> str:
    settings.setdefault("allow_lan", True)
    return webhook.send(parcel(), WebhookSettings(url=url, **settings), timeout_s)


def test_a_webhook_gets_json_a_key_and_a_signature_it_can_check(receiver):
    credentials.store("HOOK_SECRET", "a-shared-secret")

    assert post(f"{receiver.url}?a=1", secret="HOOK_SECRET") == "thanks"
    ((headers, body),) = receiver.got
    assert receiver.paths == ["/hook?a=1"]
    assert json.loads(body) == parcel().facts() | {"created_at": json.loads(body)["created_at"]}
    assert headers["Idempotency-Key"] == headers["webhook-id"] == "k" * 32
    assert headers["Host"] == f"127.0.0.1:{receiver.port}"
    assert abs(int(headers["webhook-timestamp"]) - clock.now().timestamp()) < 60
    signed = f"{'k' * 32}.{headers['webhook-timestamp']}.".encode() + body
    wanted = hmac.new(b"a-shared-secret", signed, hashlib.sha256).digest()
    assert headers["webhook-signature"] == f"v1,{base64.b64encode(wanted).decode()}"


def test_a_signing_secret_may_be_written_as_the_standard_does():
    """The example of the Standard Webhooks specification's own libraries."""
    secret = "whsec_" + base64.b64encode(b"plain bytes").decode()
    signed = webhook.signature("id", 1, b"body", secret)["webhook-signature"]

    assert signed == webhook.signature("id", 1, b"body", "plain bytes")["webhook-signature"]


def test_an_unsigned_webhook_has_no_signature(receiver):
    post(receiver.url)

    assert "webhook-signature" not in receiver.got[0][0]


def test_an_url_that_is_a_secret_is_in_no_message(receiver):
    credentials.store("HOOK_URL", f"{receiver.url}/s3cr3t-path")
    settings = WebhookSettings(url_secret="HOOK_URL", allow_lan=True)
    webhook.send(parcel(), settings, 20)
    assert receiver.paths == ["/hook/s3cr3t-path"]

    credentials.store("HOOK_URL", "http://127.0.0.1:1/s3cr3t-path")
    with pytest.raises(Failed) as failed:
        webhook.send(parcel(), settings, 20)
    assert "s3cr3t" not in str(failed.value)


@pytest.mark.parametrize(
    ("status", "lasting"), [(500, False), (503, False), (429, False), (400, True), (410, True)]
)
def test_an_answer_that_is_no_yes_is_a_failure(receiver, status, lasting):
    receiver.status = status

    with pytest.raises(Failed, match=f"answered {status}") as failed:
        post(receiver.url)
    assert failed.value.lasting is lasting
    assert failed.value.output == "thanks"


def test_a_redirect_is_not_followed(receiver):
    receiver.status, receiver.headers = 307, {"Location": receiver.url}

    with pytest.raises(Failed, match="redirects"):
        post(receiver.url)
    assert len(receiver.got) == 1


def test_a_receiver_that_says_nothing_has_its_time_and_no_more(receiver):
    receiver.hold.clear()
    started = time.monotonic()

    with pytest.raises(Failed, match="no answer within 1 s"):
        post(receiver.url, timeout_s=1)
    assert time.monotonic() - started < 15


def test_a_receiver_that_drips_has_no_more_time():
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip() -> None:
            connection, _ = server.accept()
            with connection:
                for char in "HTTP/1.1 200 OK\r\nX-A: " + "a" * 200:
                    try:
                        connection.sendall(char.encode())
                    except OSError:
                        return
                    time.sleep(0.1)

        thread = threading.Thread(target=drip)
        thread.start()
        with pytest.raises(Failed, match="no answer within 1 s"):
            post(f"http://127.0.0.1:{server.getsockname()[1]}/", timeout_s=1)
        thread.join()


def test_an_endless_answer_is_cut(receiver):
    receiver.body = b"x" * 5_000_000

    assert OUTPUT_MAX <= len(post(receiver.url)) < 1_000_000


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/", "http://no-such-host.invalid/"])
def test_a_receiver_that_cannot_be_reached_is_tried_again(url):
    with pytest.raises(Failed, match="could not be asked") as failed:
        post(url)
    assert not failed.value.lasting


def test_a_private_address_is_asked_only_when_that_was_allowed(receiver):
    for host in ("127.0.0.1", "localhost"):
        with pytest.raises(Failed, match=r"not public; --allow-lan") as failed:
            post(f"http://{host}:{receiver.port}/", allow_lan=False)
        assert failed.value.lasting
    assert receiver.got == []


@pytest.mark.parametrize(
    "address",
    [
        "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "127.0.0.1", "0.0.0.0",  # noqa: S104
        "100.64.0.1", "::1", "fe80::1%eth0", "fd00::1", "::ffff:10.0.0.1", "::ffff:127.0.0.1",
        "64:ff9b::a00:1", "2002:a00:1::", "224.0.0.1", "ff02::1",
    ],
)  # fmt: skip
def test_no_spelling_of_a_private_address_is_public(address):
    assert not webhook.may_ask(address, allow_lan=False)


@pytest.mark.parametrize(
    ("address", "may"),
    [
        ("10.0.0.1", True), ("127.0.0.1", True), ("fd00::1", True), ("8.8.8.8", True),
        ("169.254.169.254", False), ("::ffff:169.254.169.254", False), ("fe80::1%1", False),
        ("0.0.0.0", False), ("::", False), ("224.0.0.1", False),  # noqa: S104
    ],
)  # fmt: skip
def test_where_private_addresses_are_allowed_link_local_ones_are_not(address, may):
    assert webhook.may_ask(address, allow_lan=True) is may


def test_a_name_with_one_private_address_is_refused_whole(monkeypatch):
    async def both(self, host, port, **_):
        return [(2, 1, 6, "", ("8.8.8.8", port)), (2, 1, 6, "", ("10.0.0.1", port))]

    monkeypatch.setattr("asyncio.base_events.BaseEventLoop.getaddrinfo", both)
    with pytest.raises(Failed, match=r"10\.0\.0\.1"):
        post("http://example.com/", allow_lan=False)


def test_the_address_that_was_checked_is_the_one_that_is_asked(receiver, monkeypatch):
    """A name that answers differently the second time leads nowhere else."""
    asked = []

    async def once(self, host, port, **_):
        asked.append(host)
        return [(2, 1, 6, "", ("127.0.0.1" if len(asked) == 1 else "10.0.0.1", port))]

    monkeypatch.setattr("asyncio.base_events.BaseEventLoop.getaddrinfo", once)
    post(f"http://hook.example:{receiver.port}/x")
    assert receiver.got[0][0]["Host"] == f"hook.example:{receiver.port}"
    assert asked[0] == "hook.example"
    assert "hook.example" not in asked[1:]


def test_proxies_of_the_environment_are_not_used(receiver, monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")

    assert post(receiver.url) == "thanks"


@pytest.mark.parametrize(
    "url",
    [
        "ftp://h/",
        "h/x",
        "http://",
        "http://u:p@h/",
        "http://h:99999/",
        "http://h/ x",
        "http://[::1",
    ],
)
def test_what_is_no_url_to_post_to_is_refused(url):
    with pytest.raises(Refusal):
        WebhookSettings(url=url).check()
    with pytest.raises(Failed):
        post(url)


# files


def append(path: Path, body: str = BODY) -> None:
    file.send(parcel(body), FileSettings(path=str(path)), 20)


def test_a_file_gets_a_line_for_each_item(tmp_path: Path):
    path = tmp_path / "items.jsonl"
    append(path)
    append(path, "two\nlines")

    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["body"] for line in lines] == [BODY, "two\nlines"]
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_link_is_not_followed(tmp_path: Path):
    (tmp_path / "link").symlink_to(tmp_path / "target")

    with pytest.raises(Failed):
        append(tmp_path / "link")
    assert not (tmp_path / "target").exists()


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_regular_file_gets_nothing(tmp_path: Path, make):
    make(tmp_path / "odd")

    with pytest.raises(Failed):
        append(tmp_path / "odd")


def test_a_full_disk_leaves_no_half_line(tmp_path: Path):
    path = tmp_path / "items.jsonl"
    append(path, "first")
    script = f"""
import resource, signal, sys
from pathlib import Path
import django; django.setup()
from assistants.delivery.parcel import Failed
from tests.assistants.sending.test_senders import append
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    append(Path({str(path)!r}), "x" * 5000)
except Failed as exc:
    sys.exit(7)
"""
    done = subprocess.run([sys.executable, "-c", script], check=False)
    assert done.returncode == 7
    assert [json.loads(line)["body"] for line in path.read_text().splitlines()] == ["first"]
    append(path, "second")
    assert len(path.read_text().splitlines()) == 2


def test_a_file_that_others_hold_locked_is_waited_for_and_not_for_ever(tmp_path: Path):
    path = tmp_path / "items.jsonl"
    with path.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(Failed, match="held it locked"):
            file.send(parcel(), FileSettings(path=str(path)), 0.2)
        threading.Timer(0.3, lambda: fcntl.flock(held, fcntl.LOCK_UN)).start()
        append(path)
        time.sleep(0.05)
    assert len(path.read_text().splitlines()) == 1


# Apprise


@pytest.fixture
def apprise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in for the library: it keeps what it was given, and takes `good://` only."""
    (tmp_path / "apprise.py").write_text(
        "import json, sys, time\n"
        "class Apprise:\n"
        "    def add(self, url):\n"
        "        self.url = url\n"
        "        return '://' in url\n"
        "    def notify(self, **given):\n"
        "        given['argv'] = sys.argv\n"
        "        open(__file__ + '.got', 'w').write(json.dumps(given))\n"
        "        print('asked', self.url)\n"
        "        time.sleep(30 if self.url.startswith('slow') else 0)\n"
        "        return self.url.startswith('good')\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path / "apprise.py.got"


def notify(url: str, timeout_s: float = 20) -> str:
    credentials.store("APPRISE_URL", url)
    return apprise_url.send(parcel(), AppriseSettings(url_secret="APPRISE_URL"), timeout_s)


def test_apprise_gets_title_and_body_and_its_url_is_not_shown(apprise: Path):
    said = notify("good://t0ken-of-it")

    got = json.loads(apprise.read_text())
    assert (got["title"], got["body"]) == ("daily: item 7", BODY)
    assert "t0ken" not in said + str(got["argv"])
    assert "[APPRISE_URL]" in said


def test_what_apprise_does_not_take_is_a_failure(apprise: Path):
    with pytest.raises(Failed, match="did not take it"):
        notify("bad://t0ken")
    with pytest.raises(Failed, match="no URL that Apprise knows"):
        notify("t0ken")
    with pytest.raises(Doubtful, match="was killed"):
        notify("slow://t0ken", timeout_s=1)


def test_without_the_library_it_is_refused_by_name(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)

    with pytest.raises(Refusal, match=r"pip install 'sanduk\[apprise\]'"):
        AppriseSettings(url_secret="APPRISE_URL").check()
    with pytest.raises(Failed, match="not installed"):
        notify("good://t0ken")
