"""Typed readers of the environment; a secret is never part of a message."""

from __future__ import annotations

from pathlib import Path

import pytest

from sanduk_site import env
from sanduk_site.env import BadSetting

NAME = "SANDUK_TEST_SETTING"


@pytest.fixture(autouse=True)
def unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(NAME, raising=False)
    monkeypatch.delenv(f"{NAME}_FILE", raising=False)


@pytest.fixture
def put(monkeypatch: pytest.MonkeyPatch):
    return lambda value: monkeypatch.setenv(NAME, value)


def test_text_is_stripped(put):
    assert env.text(NAME, "default") == "default"
    put("  x y ")
    assert env.text(NAME) == "x y"


@pytest.mark.parametrize(
    ("value", "expected"),
    [("1", True), ("true", True), (" YES ", True), ("On", True),
     ("0", False), ("False", False), ("no", False), ("off", False), ("", False)],
)  # fmt: skip
def test_a_flag_is_one_of_a_few_words(put, value, expected):
    assert env.flag(NAME, True) is True
    put(value)
    assert env.flag(NAME, not expected) is expected


@pytest.mark.parametrize("value", ["2", "ja", "truee", "None"])
def test_another_word_is_no_flag(put, value):
    put(value)
    with pytest.raises(BadSetting, match=f"{NAME} must be one of 1, 0, true"):
        env.flag(NAME)


@pytest.mark.parametrize(
    ("value", "expected"), [("", 7), (" ", 7), ("5", 5), (" 10 ", 10), ("-3", -3)]
)
def test_an_integer_is_a_whole_number(put, value, expected):
    put(value)
    assert env.integer(NAME, 7) == expected


@pytest.mark.parametrize("value", ["x", "1.5", "1e3", "0x10", "ten", "9" * 5000])
def test_anything_else_is_no_integer(put, value):
    put(value)
    with pytest.raises(BadSetting, match=f"{NAME} must be a whole number"):
        env.integer(NAME, 7)


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [(5, None, "at least 5"), (None, 2, "at most 2"), (4, 9, "between 4 and 9")],
)
def test_an_integer_out_of_its_range_says_which(put, low, high, words):
    put("3")
    with pytest.raises(BadSetting, match=f"{NAME} must be {words}"):
        env.integer(NAME, 7, low=low, high=high)


def test_words_are_separated_by_commas(put):
    assert env.words(NAME, "a,b") == ["a", "b"]
    put(" a , ,b,")
    assert env.words(NAME) == ["a", "b"]


def test_a_choice_is_one_of_what_is_allowed(put):
    assert env.choice(NAME, "a", ("a", "b")) == "a"
    put("b")
    assert env.choice(NAME, "a", ("a", "b")) == "b"
    put("c")
    with pytest.raises(BadSetting, match=f"{NAME} must be one of a, b"):
        env.choice(NAME, "a", ("a", "b"))


def test_a_directory_is_absolute_and_knows_a_home(put, monkeypatch, tmp_path: Path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert env.directory(NAME, Path("/default")) == Path("/default")
    put("~/x")
    assert env.directory(NAME, Path("/default")) == tmp_path / "x"
    put("y")
    with pytest.raises(BadSetting, match="absolute"):
        env.directory(NAME, Path("/default"))


def test_a_home_that_does_not_exist_is_a_bad_setting(put):
    put("~nobody-of-that-name/x")
    with pytest.raises(BadSetting, match=f"{NAME} names a home"):
        env.directory(NAME, Path("/default"))


def test_a_secret_comes_from_the_variable_or_its_file(put, monkeypatch, tmp_path: Path):
    assert env.secret(NAME) == ""
    (tmp_path / "secret").write_text(" from the file\n")
    monkeypatch.setenv(f"{NAME}_FILE", str(tmp_path / "secret"))
    assert env.secret(NAME) == "from the file"
    put(" from the variable ")
    assert env.secret(NAME) == "from the variable"


@pytest.mark.parametrize("kind", ["missing", "directory", "not text"])
def test_a_secrets_file_that_cannot_be_read_is_named_by_its_variable(monkeypatch, tmp_path, kind):
    path = tmp_path / "secret"
    if kind == "directory":
        path.mkdir()
    if kind == "not text":
        path.write_bytes(b"canary\xff\xfe")
    monkeypatch.setenv(f"{NAME}_FILE", str(path))

    with pytest.raises(BadSetting, match=f"{NAME}_FILE cannot be read") as error:
        env.secret(NAME)
    assert "canary" not in str(error.value)
    assert error.value.__cause__ is None


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"SANDUK_HOME": "/srv/sanduk", "XDG_STATE_HOME": "/x"}, "/srv/sanduk"),
        ({"XDG_STATE_HOME": "/x"}, "/x/sanduk"),
        ({"HOME": "/home/anna"}, "/home/anna/.local/state/sanduk"),
    ],
)
def test_the_state_directory_is_where_the_design_says(monkeypatch, variables, expected):
    for name in ("SANDUK_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    assert env.state_home() == Path(expected)


@pytest.mark.parametrize("name", ["SANDUK_HOME", "XDG_STATE_HOME", "HOME"])
def test_a_state_directory_that_is_no_text_is_told_by_the_variable_it_came_from(monkeypatch, name):
    for other in ("SANDUK_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(other, raising=False)
    monkeypatch.setenv(name, "/srv/caf\udce9")

    with pytest.raises(BadSetting, match=f"^{name} is no UTF-8 text"):
        env.state_home()


@pytest.mark.parametrize(
    ("value", "host", "port", "is_ssl", "is_tls"),
    [
        ("smtps://ada:p%40ss@mail.example", "mail.example", 465, True, False),
        ("smtp://mail.example", "mail.example", 587, False, True),
        ("smtp://mail.example:2525/", "mail.example", 2525, False, True),
        ("smtp://localhost", "localhost", 25, False, False),
    ],
)
def test_a_mail_server_is_spoken_to_with_tls_but_on_this_machine(
    monkeypatch, value, host, port, is_ssl, is_tls
):
    monkeypatch.setenv("X_MAIL", value)
    found = env.mail_server("X_MAIL")
    assert (found["EMAIL_HOST"], found["EMAIL_PORT"]) == (host, port)
    assert (found["EMAIL_USE_SSL"], found["EMAIL_USE_TLS"]) == (is_ssl, is_tls)
    assert found["EMAIL_HOST_PASSWORD"] == ("p@ss" if is_ssl else "")


@pytest.mark.parametrize("value", ["mail.example", "http://u:hunter2@x", "smtp://", "smtp://x:y:z"])
def test_a_mail_server_that_is_none_is_named_without_its_password(monkeypatch, value):
    monkeypatch.setenv("X_MAIL", value)
    with pytest.raises(env.BadSetting) as bad:
        env.mail_server("X_MAIL")
    assert "X_MAIL" in str(bad.value)
    assert "hunter2" not in str(bad.value)


def test_without_a_mail_server_nothing_is_set(monkeypatch):
    monkeypatch.delenv("X_MAIL", raising=False)
    assert env.mail_server("X_MAIL") == {}


@pytest.mark.parametrize(
    ("value", "expected"),
    [("", "https://api.github.com"), ("https://Hub.example/api/v3/", "https://hub.example/api/v3"),
     ("http://127.0.0.1:8123/api/v3", "http://127.0.0.1:8123/api/v3"),
     ("https://[2001:db8::1]:8443", "https://[2001:db8::1]:8443")],
)  # fmt: skip
def test_an_api_begins_at_an_address_of_https(put, value, expected):
    put(value)
    assert env.api_base(NAME, "https://api.github.com") == expected


@pytest.mark.parametrize(
    "value",
    ["api.github.com", "ftp://x/", "https://", "http://hub.example/api/v3", "https://u:pw@hub/",
     "https://hub/?q", "https://hub/#f", "https://hub/a/../b", "https://hub//x", "https://h ub/",
     "https://hub:port/", "https://[::1/", "https://hub/%2e%2e"],
)  # fmt: skip
def test_a_secret_is_sent_nowhere_else(put, value):
    put(value)
    with pytest.raises(BadSetting, match=f"{NAME} must be https://HOST") as raised:
        env.api_base(NAME, "https://api.github.com")
    assert "pw" not in str(raised.value)
