"""Settings come from the environment, and a bad one is one line that names it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SHOW = """
import json, sys
import sanduk_site.settings as s
print(json.dumps({n: getattr(s, n) for n in sys.argv[1:]}, default=str))
"""


def settings_of(*names: str, state: Path, **env: str) -> subprocess.CompletedProcess[str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return subprocess.run(
        [sys.executable, "-c", SHOW, *names],
        cwd=ROOT,
        env={**kept, "SANDUK_HOME": str(state), **env},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def read(*names: str, state: Path, **env: str) -> dict:
    done = settings_of(*names, state=state, **env)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_defaults_are_the_designs(tmp_path: Path):
    found = read(
        "SANDUK_DEFAULT_MODE", "DEBUG", "SANDUK_HOME", "DATABASES", "ALLOWED_HOSTS", "USE_TZ",
        state=tmp_path / "s",
    )  # fmt: skip

    assert found["SANDUK_DEFAULT_MODE"] == "sealed"  # C-14: the least safe mode was the default
    assert found["DEBUG"] is False
    assert found["SANDUK_HOME"] == str(tmp_path / "s")
    database = found["DATABASES"]["default"]
    assert database["NAME"] == str(tmp_path / "s" / "sanduk.sqlite3")
    assert database["OPTIONS"]["transaction_mode"] == "IMMEDIATE"
    assert "journal_mode=WAL" in database["OPTIONS"]["init_command"]
    assert found["ALLOWED_HOSTS"] == ["127.0.0.1", "localhost", "[::1]"]
    assert not (tmp_path / "s").exists(), "reading settings makes nothing"


@pytest.mark.parametrize("name", ["a b", "what?", "number#1", "50%20", "ü", "x" * 200])
def test_the_database_is_in_the_state_directory_whatever_it_is_called(tmp_path: Path, name):
    database = read("DATABASES", state=tmp_path / name)["DATABASES"]["default"]

    assert database["NAME"] == str(tmp_path / name / "sanduk.sqlite3")


def test_the_environment_changes_them(tmp_path: Path):
    found = read(
        "SANDUK_DEFAULT_MODE", "DEBUG", "SANDUK_LEASE_SECONDS", "ALLOWED_HOSTS", "SECRET_KEY",
        state=tmp_path, SANDUK_DEFAULT_MODE="key-safe", SANDUK_DEBUG="yes",
        SANDUK_LEASE_SECONDS="60", SANDUK_ALLOWED_HOSTS="a.example, b.example",
        SANDUK_SECRET_KEY="k" * 50,
    )  # fmt: skip

    assert found == {
        "SANDUK_DEFAULT_MODE": "key-safe",
        "DEBUG": True,
        "SANDUK_LEASE_SECONDS": 60,
        "ALLOWED_HOSTS": ["a.example", "b.example"],
        "SECRET_KEY": "k" * 50,
    }


def test_the_base_url_decides_names_forms_and_cookies(tmp_path: Path):
    names = (
        "ALLOWED_HOSTS", "CSRF_TRUSTED_ORIGINS", "SESSION_COOKIE_SECURE", "CSRF_COOKIE_SECURE",
        "SESSION_COOKIE_HTTPONLY", "SESSION_COOKIE_SAMESITE",
    )  # fmt: skip
    plain = read(*names, state=tmp_path)
    assert plain["SESSION_COOKIE_SECURE"] is False
    assert plain["CSRF_TRUSTED_ORIGINS"] == ["http://127.0.0.1:8000"]

    found = read(*names, state=tmp_path, SANDUK_BASE_URL="https://Box.example:8443/")

    assert found == {
        "ALLOWED_HOSTS": ["127.0.0.1", "localhost", "[::1]", "box.example"],
        "CSRF_TRUSTED_ORIGINS": ["https://box.example:8443"],
        "SESSION_COOKIE_SECURE": True,
        "CSRF_COOKIE_SECURE": True,
        "SESSION_COOKIE_HTTPONLY": True,
        "SESSION_COOKIE_SAMESITE": "Lax",
    }


@pytest.mark.parametrize(
    "url",
    ["box.example", "ftp://box", "http://", "http://box:99999", "http://box/sub", "http://u@b"],
)
def test_a_base_url_that_is_none_is_refused(tmp_path: Path, url):
    done = settings_of("DEBUG", state=tmp_path, SANDUK_BASE_URL=url)

    assert done.returncode != 0
    assert "SANDUK_BASE_URL must be http://HOST[:PORT]" in done.stderr.splitlines()[-1]


def test_an_ipv6_base_url_is_a_name_in_brackets(tmp_path: Path):
    hosts = read("ALLOWED_HOSTS", state=tmp_path, SANDUK_BASE_URL="http://[fd00::1]:8000")

    assert hosts["ALLOWED_HOSTS"][-1] == "[fd00::1]"


def test_another_database_gets_no_options_of_sqlite(tmp_path: Path):
    (tmp_path / "url").write_text("postgres://u:p@127.0.0.1:5432/sanduk\n")
    found = read("DATABASES", state=tmp_path, DATABASE_URL_FILE=str(tmp_path / "url"))

    database = found["DATABASES"]["default"]
    assert database["ENGINE"] == "django.db.backends.postgresql"
    assert "init_command" not in database.get("OPTIONS", {})


def test_the_stored_key_is_used_and_without_one_each_process_has_its_own(tmp_path: Path):
    first, second = (read("SECRET_KEY", state=tmp_path)["SECRET_KEY"] for _ in range(2))
    assert first != second

    (tmp_path / "secret_key").write_text("stored\n")
    assert read("SECRET_KEY", state=tmp_path)["SECRET_KEY"] == "stored"


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"SANDUK_DEFAULT_MODE": "safe"}, "SANDUK_DEFAULT_MODE must be one of"),
        ({"SANDUK_DEBUG": "maybe"}, "SANDUK_DEBUG must be one of"),
        ({"SANDUK_LEASE_SECONDS": "soon"}, "SANDUK_LEASE_SECONDS must be a whole number"),
        ({"SANDUK_LEASE_SECONDS": "1"}, "SANDUK_LEASE_SECONDS must be between 5 and 600"),
        ({"SANDUK_SECRET_KEY_FILE": "/nonexistent"}, "SANDUK_SECRET_KEY_FILE cannot be read"),
        ({"DATABASE_URL": "gopher://u:canary@x/y"}, "DATABASE_URL"),
        ({"DATABASE_URL": "nonsense canary"}, "DATABASE_URL"),
        ({"SANDUK_HOME": "~nobody-of-that-name/x"}, "SANDUK_HOME names a home"),
    ],
)
def test_a_bad_setting_is_one_line_of_the_command_and_its_exit_is_2(tmp_path, variables, words):
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    done = subprocess.run(
        [sys.executable, "-m", "sanduk_site", "runs"],
        cwd=ROOT,
        env={**kept, "SANDUK_HOME": str(tmp_path / "s"), **variables},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )

    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert line.startswith("sanduk: ")
    assert words in line
    assert "canary" not in line
    assert not (tmp_path / "s").exists()


def test_directories_for_the_web_are_absolute_and_not_the_whole_host(tmp_path: Path):
    found = read("SANDUK_WORK_ROOTS", state=tmp_path, SANDUK_WORK_ROOTS="/srv/work, ~/code")
    assert found["SANDUK_WORK_ROOTS"] == ["/srv/work", str(Path("~/code").expanduser())]
    for wrong in ("work", "/srv,/"):
        done = settings_of("DEBUG", state=tmp_path, SANDUK_WORK_ROOTS=wrong)
        assert done.returncode != 0
        assert "SANDUK_WORK_ROOTS" in done.stderr
