"""Secrets that want to leave are found in every common spelling, and told without being shown."""

from __future__ import annotations

import base64
import html
import json
import time
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs import credentials, secret_scan
from runs.secret_scan import Finding, scan, scan_for

SECRET = "s3cr3t+Value/with=odd-chars_9"


def every_percent(secret: str) -> str:
    return "".join(f"%{byte:02x}" for byte in secret.encode())


def as_escapes(secret: str) -> str:
    return "".join(f"\\u{ord(char):04x}" for char in secret)


SPELLINGS = {
    "plain": SECRET,
    "base64, first place": base64.b64encode(SECRET.encode()).decode(),
    "base64, second place": base64.b64encode(b"x" + SECRET.encode() + b"tail").decode(),
    "base64, third place": base64.b64encode(b"xy" + SECRET.encode() + b"t").decode(),
    "base64, URL-safe": base64.urlsafe_b64encode(b"??>" + SECRET.encode()).decode(),
    "base64, in lines": base64.encodebytes(b"y" * 50 + SECRET.encode() + b"z" * 50).decode(),
    "base64, in a URL": quote(base64.b64encode(SECRET.encode()).decode(), safe=""),
    "hex": SECRET.encode().hex(),
    "HEX": SECRET.encode().hex().upper(),
    "hex with colons": SECRET.encode().hex(":"),
    "hex with escapes": "".join(f"\\x{byte:02x}" for byte in SECRET.encode()),
    "hex dump": SECRET.encode().hex(" ", 2),
    "base32": base64.b32encode(SECRET.encode()).decode(),
    "URL": quote(SECRET, safe=""),
    "URL, every letter": every_percent(SECRET),
    "URL, twice": quote(quote(SECRET, safe=""), safe=""),
    "JSON": as_escapes(SECRET),
    "JSON with slashes": json.dumps(SECRET).replace("/", "\\/"),
    "HTML": "".join(f"&#{ord(char)};" for char in SECRET),
    "reversed": SECRET[::-1],
    "spaced": " ".join(SECRET),
    "in lines": SECRET[:9] + "\n" + SECRET[9:],
    "quoted in lines": f'"{SECRET[:9]}" +\n "{SECRET[9:]}"',
    "in a quoted mail": f"> {SECRET[:9]}\n> {SECRET[9:]}",
    "zero-width": "\u200b".join(SECRET),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_held_secret_is_found_in_any_spelling_with_its_line(spelling):
    text = f"Dear all,\nthe answer is:\n{SPELLINGS[spelling]}\nregards"

    found = [one for one in scan_for(text.encode(), {"API_KEY": SECRET}) if one.kind == "held"]
    assert found
    assert {one.name for one in found} == {"API_KEY"}
    assert 3 in {one.line for one in found}
    assert SECRET not in repr(found)
    assert SPELLINGS[spelling] not in repr(found)


@given(st.binary(min_size=8, max_size=40), st.binary(max_size=40), st.binary(max_size=40))
def test_base64_is_found_wherever_the_secret_lies_in_it(secret, before, after):
    encoded = base64.b64encode(before + secret + after)

    assert any(part in encoded for part in secret_scan.base64_parts(secret))


@given(st.text(max_size=300))
def test_a_text_without_the_secret_is_clear(text):
    assert scan_for(text.encode("utf-8", "replace"), {"KEY": SECRET}) == []


def test_html_entities_with_names_are_read():
    secret = 'a<b>&"quoted"&more'

    assert scan_for(html.escape(secret).encode(), {"KEY": secret})


TOKENS = [
    "sk-ant-api03-" + "a1B2" * 10,
    "sk-proj-" + "a1B2" * 10,
    "AIza" + "a1B2-" * 7,
    "AKIA" + "ABCD" * 4,
    "ghp_" + "a1B2" * 9,
    "github_pat_" + "a1B2" * 9,
    "glpat-" + "a1B2" * 5,
    "xoxb-" + "1234567890-abc",
    "https://hooks.slack.com/services/T" + "ABC1234/B" + "ABC1234/" + "a1B2" * 6,
    "sk_live_" + "a1B2" * 6,
    "npm_" + "a1B2" * 9,
    "pypi-AgEIcHlwaS5vcmc" + "a1B2" * 20,
    "hf_" + "aBcD" * 9,
    "123456789:AA" + "a1B2" * 8 + "c",
    "-----BEGIN OPENSSH PRIVATE KEY-----",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.c2ln",
]


@pytest.mark.parametrize("token", TOKENS)
@pytest.mark.parametrize("write", [str, every_percent, as_escapes])
def test_a_known_shape_of_token_is_found(token, write):
    found = scan_for(f"one\ntwo {write(token)} three".encode(), {})

    assert [(one.kind, one.line) for one in found] == [("token", 2)]
    assert token not in repr(found)


@pytest.mark.parametrize(
    "text",
    [
        "the sk-learn-compatible-estimator-interface is kept",
        "commit 4e3b540f26c1d0da06d7d0a9cc99ae455d1bb537bc33",
        "npm_config_registry and hf_transfer",
        "AKIA is the prefix",
        "-----BEGIN CERTIFICATE-----",
        "eyJ is how JSON begins in base64.",
    ],
)
def test_ordinary_text_is_no_token(text):
    assert scan_for(text.encode(), {}) == []


@pytest.mark.parametrize(
    "piece", [b"a ", b"%41", b"\\u0041", b"&#65;", b"eyJ", b"sk-", b"sk-A1", b"'", b'" ', b"AKIA"]
)
def test_the_worst_text_takes_seconds_not_minutes(piece):
    text = piece * (secret_scan.SCAN_MAX // len(piece))
    started = time.process_time()

    scan_for(text, {f"KEY_{number}": f"{SECRET}{number}" for number in range(20)})
    assert time.process_time() - started < 10


def test_what_is_too_long_to_scan_is_no_all_clear():
    text = b"x" * secret_scan.SCAN_MAX + SECRET.encode()

    (one,) = scan_for(text, {"KEY": SECRET})
    assert one.kind == "unchecked"
    assert one.told() == "could not check: what follows the first 2 MB"


def test_what_this_host_keeps_is_held(state, monkeypatch, settings):
    state.mkdir()
    credentials.store("HOOK_SECRET", "kept-in-the-store")
    monkeypatch.setenv("OPENAI_API_KEY", "given-by-environment")
    text = f"kept-in-the-store\ngiven-by-environment\n{settings.SECRET_KEY}"

    assert [(one.name, one.line) for one in scan(text)] == [
        ("HOOK_SECRET", 1),
        ("OPENAI_API_KEY", 2),
        ("the site's secret key", 3),
    ]


def test_secrets_that_cannot_be_read_are_no_all_clear(state, monkeypatch):
    state.mkdir()
    (state / "credentials").write_text("{broken")
    monkeypatch.setenv("OPENAI_API_KEY_FILE", str(state / "nowhere"))

    assert {one.kind for one in scan("hello")} == {"unchecked"}


def test_findings_are_plain_data_and_come_back():
    one = Finding(kind="held", name="KEY", spelling="base64", line=3, times=2)

    assert secret_scan.restored(json.loads(json.dumps([one.plain()]))) == [one]
    assert one.told() == "line 3: a secret of this host, KEY (base64), 2 times"
