"""`sanduk login` and the commands that then go to a site: driven against one that answers."""

from __future__ import annotations

import http.server
import io
import json
import threading
from pathlib import Path

import pytest

from assistants.management.commands import (
    sanduk_approve,
    sanduk_inbox,
    sanduk_outbox,
    sanduk_reject,
    sanduk_tell,
)
from assistants.models import InboxMessage
from runs import site_login
from runs.refusal import Refusal
from runs.site_login import Site
from sanduk_site import api_access, terminal_tokens
from sanduk_site.management.commands import sanduk_login, sanduk_logout
from tests.factories import make_assistant
from tests.site.pages import EVIL, HIDING, make_item, somebody

pytestmark = pytest.mark.django_db(transaction=True)
COMMANDS = {
    "approve": sanduk_approve, "inbox": sanduk_inbox, "outbox": sanduk_outbox,
    "reject": sanduk_reject, "tell": sanduk_tell, "login": sanduk_login, "logout": sanduk_logout,
}  # fmt: skip


@pytest.fixture(autouse=True)
def config(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    api_access.GUESSES.forget()
    api_access.ASKED.forget()
    return tmp_path / "config" / "sanduk" / "site.json"


@pytest.fixture
def sanduk(capsys):
    """sanduk(words...): the code, and what was said on both streams."""

    def run(*words: str) -> tuple[int, str, str]:
        command = COMMANDS[words[0]].Command()
        parser = command.create_parser("sanduk", f"sanduk_{words[0]}")
        capsys.readouterr()
        code = command.guarded(**vars(parser.parse_args(list(words[1:]))))
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


@pytest.fixture
def roles():
    from sanduk_site import roles

    roles.make_groups()


@pytest.fixture
def ada(roles):
    return somebody("ada", "operator", "approver")


@pytest.fixture
def logged_in(ada, live_server, sanduk, monkeypatch):
    """This account, logged in as ada, who decides."""
    token = terminal_tokens.new(ada, "laptop", may_decide=True)
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{token}\n"))
    code, out, err = sanduk("login", live_server.url)
    assert code == 0, err
    assert f"ada at {live_server.url}" in out
    assert token not in out + err
    return token


@pytest.fixture
def item(roles):
    return make_item(make_assistant("daily"), f"# Report\n{EVIL}")


def test_the_token_is_this_accounts_alone_and_ends_with_the_logout(logged_in, config, sanduk):
    assert config.stat().st_mode & 0o777 == 0o600
    assert config.parent.stat().st_mode & 0o777 == 0o700
    code, out, _ = sanduk("login", "--json")
    assert (code, json.loads(out)["user"]) == (0, "ada")
    kept = site_login.kept()
    assert sanduk("logout")[0] == 0
    assert not config.exists()
    with pytest.raises(Refusal, match="has ended"):
        kept.get("me")
    assert sanduk("login")[0] == sanduk("logout")[0] == 1


def test_an_item_is_listed_shown_and_approved_there(logged_in, item, sanduk):
    code, out, err = sanduk("outbox", "--pending")
    assert (code, f"[{item.pk}] daily" in out) == (0, True)
    assert "at http://localhost" in err
    code, out, err = sanduk("outbox", "show", str(item.pk))
    assert "waits for 1 person to approve" in out
    assert not any(mark in out + err for mark in HIDING)
    expect = err.rstrip().rpartition(" ")[2]
    code, out, err = sanduk("approve", str(item.pk), "--expect", expect)
    assert (code, out) == (0, f"item {item.pk} is approved\n")
    item.refresh_from_db()
    assert item.decided_by == "ada"
    code, out, err = sanduk("approve", str(item.pk), "--expect", expect)
    assert (code, out) == (2, "")
    assert "already approved" in err


def test_nothing_is_decided_there_unread(logged_in, item, sanduk):
    for words, why in (
        (("approve", str(item.pk)), "--expect says what was read"),
        (("approve", str(item.pk), "999", "--expect", "x"), "one item at a time"),
        (("reject", str(item.pk), "--expect", item.sha256[:12]), "needs a --reason"),
        (("reject", str(item.pk), "--expect", "0" * 12, "--reason", "no"), "not 000000000000"),
        (("outbox", "--deliver", "cat"), "--here"),
        (("outbox", "show", "999"), "no such thing"),
    ):
        code, out, err = sanduk(*words)
        assert (code, out) == (2, ""), words
        assert why in err, words
    item.refresh_from_db()
    assert item.state == "pending"
    words = ("reject", str(item.pk), "--expect", item.sha256[:12], "--reason", "no", "--json")
    code, out, _ = sanduk(*words)
    assert (code, json.loads(out)["state"]) == (0, "rejected")


def test_a_message_is_told_and_listed_there(logged_in, item, sanduk):
    code, out, _ = sanduk("tell", "daily", "leave", "the", "weekend", "out")
    message = InboxMessage.objects.get()
    assert (code, out) == (0, f"message {message.pk} waits for daily\n")
    assert (message.author.username, message.body) == ("ada", "leave the weekend out")
    InboxMessage.objects.create(assistant=item.assistant, body=EVIL, account="root")
    code, out, _ = sanduk("inbox")
    assert "leave the weekend out" in out
    assert not any(mark in out for mark in HIDING)
    assert json.loads(sanduk("inbox", "--json")[1])[0]["author"] == "ada"


def test_here_stays_here(logged_in, item, sanduk, monkeypatch):
    monkeypatch.setattr("runs.management.terminal.prepare", lambda: None)
    monkeypatch.setattr("runs.management.terminal.reconcile", lambda: pytest.fail("not asked"))
    _, out, err = sanduk("outbox", "--here")
    assert f"[{item.pk}]" in out
    assert "at http" not in err


@pytest.mark.parametrize(
    ("content", "mode", "why"),
    [
        ('{"url": "https://a.example", "token": "x"}', 0o644, "chmod 600"),
        ("{", 0o600, "damaged"),
        ('{"url": "ftp://a.example", "token": "x"}', 0o600, "damaged"),
        ('{"url": "https://a.example", "token": "x\\r\\nHost: b"}', 0o600, "damaged"),
        ('{"url": "https://a.example"}', 0o600, "damaged"),
    ],
)
def test_a_file_that_is_not_as_we_wrote_it_is_refused(config, sanduk, content, mode, why):
    config.parent.mkdir(parents=True)
    config.write_text(content)
    config.chmod(mode)
    code, out, err = sanduk("outbox")
    assert (code, out) == (2, "")
    assert why in err
    assert sanduk("logout")[0] == (1 if mode == 0o600 or why == "chmod 600" else 2)
    assert not config.exists()


@pytest.mark.parametrize(
    "url",
    ["ftp://a.example", "https://", "https://a.example/path", "https://u:p@a.example",
     "https://a.example?x", "https://a example", "https://a.example:99999", "https://[::1"],
)  # fmt: skip
def test_what_is_no_address_of_a_site_is_refused(sanduk, url):
    code, _, err = sanduk("login", url)
    assert (code, "no address" in err or "no name" in err) == (2, True), err


def test_addresses_are_brought_to_one_form():
    assert site_login.checked_url("box.example") == "https://box.example"
    assert site_login.checked_url("http://[::1]:8000/") == "http://[::1]:8000"
    assert site_login.is_readable_on_the_way("http://box.lan:8000")
    assert not site_login.is_readable_on_the_way("http://127.0.0.1:8000")


def test_a_token_is_in_no_repr():
    assert "secret" not in repr(Site("https://a.example", "secret"))


class Odd(http.server.BaseHTTPRequestHandler):
    """Answers each path as its name says, and keeps what it was sent."""

    seen: list[tuple[str, str]] = []

    def do_GET(self) -> None:
        self.seen.append((self.path, self.headers.get("Authorization", "")))
        name = self.path.rpartition("/")[2]
        if name == "redirect":
            self.send_response(302)
            self.send_header("Location", f"http://127.0.0.1:{self.server.server_port}/caught")
            self.end_headers()
            return
        self.send_response(500 if name == "broken" else 200)
        self.end_headers()
        said = {"html": b"<html>", "null": b"null", "deep": b"[" * 100_000}
        self.wfile.write(said.get(name, b"\xff"))

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture
def odd():
    Odd.seen.clear()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Odd)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield Site(f"http://127.0.0.1:{server.server_port}", "sanduk-x")
    server.shutdown()
    server.server_close()


def test_a_token_follows_no_redirect(odd):
    with pytest.raises(Refusal, match="302"):
        odd.get("redirect")
    assert [path for path, _ in Odd.seen] == ["/api/1/redirect"]


@pytest.mark.parametrize("name", ["html", "deep", "broken", "bytes"])
def test_what_does_not_answer_as_a_sanduk_is_one_line(odd, name):
    with pytest.raises(Refusal, match="as a sanduk does"):
        odd.get(name)


def test_a_proxy_of_the_environment_is_not_asked(odd, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert odd.get("null") is None


def test_an_answer_of_another_form_is_one_line(odd, sanduk, config):
    site_login.keep(odd)
    for words in (("outbox",), ("outbox", "show", "1"), ("tell", "daily", "x"), ("login",)):
        code, _, err = sanduk(*words)
        assert code == 2, words
        assert "sanduk:" in err


def test_a_site_that_is_away_is_one_line(sanduk, config):
    site_login.keep(Site("http://127.0.0.1:9", "sanduk-x"))
    code, _, err = sanduk("outbox")
    assert (code, "cannot be asked" in err) == (2, True)
    assert sanduk("logout")[0] == 1
    assert not config.exists()
