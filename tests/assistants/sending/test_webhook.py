"""Webhooks: signed, with a key, to checked addresses; every way a receiver can be odd."""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import hmac
import json
import socket
import threading
import time
from email.utils import format_datetime

import pytest

from assistants.delivery import webhook
from assistants.delivery.kinds import WebhookSettings
from assistants.delivery.parcel import OUTPUT_MAX, Doubtful, Failed
from runs import clock, credentials
from runs.refusal import Refusal
from tests.assistants.sending.making import parcel
from tests.pace import stretched


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
    assert time.monotonic() - started < stretched(15)


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


def answers(server: socket.socket, answer: bytes, *, holds: threading.Event) -> None:
    """Take one whole POST, say this much, and stay until told to go."""
    connection, _ = server.accept()
    with connection:
        got = b""
        while b'"body"' not in got or not got.endswith(b"}"):
            got += connection.recv(65536)
        connection.sendall(answer)
        holds.wait(60)


def asked(answer: bytes, *, is_held: bool, timeout_s: float = 20) -> str:
    holds = threading.Event()
    if not is_held:
        holds.set()
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(
            target=answers, args=(server, answer), kwargs={"holds": holds}, daemon=True
        )
        thread.start()
        try:
            return post(f"http://127.0.0.1:{server.getsockname()[1]}/", timeout_s=timeout_s)
        finally:
            holds.set()
            thread.join()


def test_the_status_decides_however_slowly_the_rest_comes():
    began = b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\ntaken"

    assert asked(began, is_held=True, timeout_s=2) == "taken"
    assert asked(began, is_held=False) == "taken"
    with pytest.raises(Failed, match="answered 410") as failed:
        asked(began.replace(b"200 OK", b"410 Gone"), is_held=True, timeout_s=2)
    assert failed.value.lasting


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 2", b"what?\r\n\r\n"])
def test_one_that_took_all_of_it_and_hung_up_may_have_it(answer):
    with pytest.raises(Doubtful, match="took all of it"):
        asked(answer, is_held=False)


@pytest.mark.parametrize(
    ("status", "header", "wait_s"),
    [
        (429, "120", 120), (503, "7200", 7200), (503, "soon", 0), (503, "-5", 0), (500, "120", 0),
        (429, "Thu, 01 Jan 1970 00:00:00 GMT", 0), (429, "9" * 400, 999999999), (429, "", 0),
        (503, "Fri, 31 Dec 9999 99:99:99 GMT", 0),
    ],
)  # fmt: skip
def test_a_receiver_may_ask_to_be_left_alone_for_a_while(receiver, status, header, wait_s):
    receiver.status, receiver.headers = status, {"Retry-After": header}

    with pytest.raises(Failed, match=f"answered {status}") as failed:
        post(receiver.url)
    assert failed.value.wait_s == wait_s


def test_a_receiver_may_name_the_time(receiver):
    at = clock.now() + dt.timedelta(hours=2)
    receiver.status, receiver.headers = 503, {"Retry-After": format_datetime(at, usegmt=True)}

    with pytest.raises(Failed) as failed:
        post(receiver.url)
    assert 7000 < failed.value.wait_s <= 7200


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
        ("64:ff9b::a9fe:a9fe", False), ("64:ff9b::a00:1", True), ("64:ff9b:1::a9fe:a9fe", False),
        ("64:ff9b:1:a9fe:a9:fe00::", False), ("64:ff9b:1:808:8:800::", True),
        ("2002:a9fe:a9fe::1", False), ("::a9fe:a9fe", False), ("::1", True),
        ("::ffff:0:a9fe:a9fe", False), ("2001:0:a9fe:a9fe::1", False),
        ("2001:0:808:808::5601:5601", False), ("64:ff9b::6464:64c8", False),
        ("fd00:ec2::254", False), ("100.100.100.200", False), ("168.63.129.16", False),
        ("fd20:ce::254", False), ("fd00:ec2::255", True), ("100.100.100.201", True),
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


@pytest.mark.parametrize(
    ("host", "lan"),
    [
        ("127.0.0.1", True), ("10.0.0.1", True), ("[::1]", True), ("0x7f.1", True),
        ("2130706433", True), ("169.254.169.254", False), ("2852039166", False),
        ("[::ffff:169.254.169.254]", False), ("[fe80::1]", False), ("0", False),
        ("[64:ff9b::a9fe:a9fe]", False), ("[fd00:ec2::254]", False),
        ("224.0.0.1", False),
    ],
)  # fmt: skip
def test_an_address_that_is_not_public_is_refused_when_it_is_added(host, lan):
    settings = WebhookSettings(url=f"http://{host}:8080/hook")
    with pytest.raises(Refusal, match="the host of the URL is an address that is not public") as no:
        settings.check()
    assert ("--allow-lan" in str(no.value)) is lan

    open_ones = WebhookSettings(url=settings.url, allow_lan=True)
    if lan:
        open_ones.check()
    else:
        with pytest.raises(Refusal, match="no flag admits it"):
            open_ones.check()


def test_an_address_in_a_secret_url_is_refused_by_the_secrets_name():
    credentials.store("HOOK", "https://169.254.169.254/path-that-is-secret")

    with pytest.raises(Refusal, match="the host of HOOK is an address") as refused:
        WebhookSettings(url_secret="HOOK").check()
    assert "169" not in str(refused.value)


@pytest.mark.parametrize("url", ["https://example.com/x", "https://1.1.1.1/x"])
def test_names_and_public_addresses_are_taken(url):
    WebhookSettings(url=url).check()


def test_a_literal_address_is_named_once(receiver):
    with pytest.raises(Failed, match=r"^127\.0\.0\.1 is not public; --allow-lan"):
        webhook.send(parcel(), WebhookSettings(url=receiver.url), 10)
