"""`sanduk up`: what it says, what it refuses, and the first administrator."""

from __future__ import annotations

import contextlib
import http.client
import socket
import sqlite3
from pathlib import Path

import pytest

from tests.site.going_site import PASSWORD, Browser, link_in, python, sanduk, site_up

pytestmark = pytest.mark.timeout(280)


def people(home: Path) -> list[tuple[str, int]]:
    with sqlite3.connect(home / "sanduk.sqlite3") as database:
        return list(database.execute("select username, is_superuser from auth_user"))


def test_the_link_makes_one_administrator_and_is_good_once(tmp_path):
    home = tmp_path / "home"
    with site_up(home, "--no-worker") as site:
        link, browser = link_in(site), Browser()
        assert site.said.count("/setup/") == 1
        assert browser.get(link)[0] == 200
        assert browser.get(link)[0] == 200, "looking uses nothing up"
        weak = browser.post(link, username="anna", password="12345", again="12345")
        assert "too short" in weak[1]

        status, page, url = browser.post(link, username="anna", password=PASSWORD, again=PASSWORD)

        assert status == 200
        assert "/first-run/team" in url
        assert "One person, or a team?" in page
        assert browser.get(link)[0] == 410
        assert people(home) == [("anna", 1)]
        token = link.rpartition("/")[2]
    for kept in home.rglob("*"):
        if kept.is_file():
            assert token.encode() not in kept.read_bytes(), kept


def test_the_environment_can_name_the_administrator_and_is_asked_once(tmp_path):
    home, file = tmp_path / "home", tmp_path / "password"
    file.write_text(PASSWORD)
    file.chmod(0o600)
    named = {"SANDUK_ADMIN_USER": "root", "SANDUK_ADMIN_PASSWORD_FILE": str(file)}
    for _ in range(2):
        with site_up(home, "--no-worker", **named) as site:
            assert "/setup/" not in site.said
            assert site.get("/static/admin/css/base.css")[0] == 200
            assert "Warning" not in site.said
            login = f"http://127.0.0.1:{site.port}/admin/login/?next=/first-run"
            _, page, _ = Browser().post(login, username="root", password=PASSWORD)
            assert "One person, or a team?" in page
    assert people(home) == [("root", 1)]


def test_a_second_up_is_refused_and_names_the_first(tmp_path):
    with site_up(tmp_path / "home", "--no-worker") as site:
        again = sanduk(tmp_path / "home", "up", "--port", "0")

    assert again.returncode == 2
    (line,) = again.stderr.splitlines()
    assert f"process {site.process.pid}, at http://127.0.0.1:" in line


def test_a_worker_that_runs_already_is_named_and_the_site_alone_works_beside_it(tmp_path):
    home = tmp_path / "home"
    with site_up(home) as site:
        worker = sanduk(home, "worker")
        assert worker.returncode == 2
        assert "another worker" in worker.stderr
        assert site.ready()["worker"] == "ok"


@pytest.mark.parametrize(
    ("words", "variables", "said"),
    [
        (["--host", "192.0.2.1"], {}, "needs SANDUK_BASE_URL"),
        (["--port", "99999"], {}, "another one: --port"),
        (["--host", "192.0.2.1"], {"SANDUK_BASE_URL": "http://box.lan"}, "cannot listen"),
        ([], {"SANDUK_ADMIN_USER": "root"}, "SANDUK_ADMIN_PASSWORD"),
        ([], {"SANDUK_ADMIN_USER": "root", "SANDUK_ADMIN_PASSWORD": "123"}, "too short"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(tmp_path, words, variables, said):
    words = words if "--port" in words else [*words, "--port", "0"]
    done = sanduk(tmp_path / "home", "up", *words, **variables)

    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert said in line


def test_a_port_that_is_in_use_is_one_line(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = sanduk(tmp_path / "home", "up", "--port", str(taken.getsockname()[1]))

    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "Address already in use" in line


def test_a_name_the_site_was_not_given_is_not_answered(tmp_path):
    with site_up(tmp_path / "home", "--no-worker") as site:
        connection = http.client.HTTPConnection("127.0.0.1", site.port, timeout=30)
        with contextlib.closing(connection):
            connection.request("GET", "/admin/login/", headers={"Host": "evil.example"})
            assert connection.getresponse().status == 400


RINGS = """
from runs import queue  # as a command does, before it acts
from runs.home import prepare
prepare()
queue.ring("assistants.working.tick", 0)
"""
HEARS = """
from runs import queue
print(queue.hanging(queue.CONTROL, "assistants.working.tick"))
"""


def test_what_the_very_first_process_rings_is_understood_by_the_next(tmp_path):
    """Its settings were read before there was a key: no cluster could read its bells."""
    for code, wanted in ((RINGS, ""), (HEARS, "{0}")):
        done = python(tmp_path / "home", code)
        assert (done.stdout.strip(), done.returncode) == (wanted, 0), done.stderr


@pytest.mark.parametrize(("trusted", "address"), [("", "127.0.0.1"), ("127.0.0.1", "203.0.113.9")])
def test_who_asks_is_what_a_trusted_proxy_says_and_nobody_else(tmp_path, trusted, address):
    home = tmp_path / "home"
    more = {"SANDUK_ADMIN_USER": "root", "SANDUK_ADMIN_PASSWORD": PASSWORD}
    with site_up(home, "--no-worker", SANDUK_TRUSTED_PROXIES=trusted, **more) as site:
        login = f"http://127.0.0.1:{site.port}/admin/login/"
        browser = Browser(X_Forwarded_For="203.0.113.9")
        for number in range(6):
            status, page, _ = browser.post(login, username="root", password=f"wrong {number}")
            if status == 429:
                break

    assert status == 429
    assert "<b>root</b>" in page
    assert "that is in 15 minutes" in page
    with sqlite3.connect(home / "sanduk.sqlite3") as database:
        found = database.execute("select username, ip_address from axes_accessattempt").fetchall()
    assert found == [("root", address)]
