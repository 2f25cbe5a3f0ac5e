"""Secrets in what a change adds: in lines, names, binaries; and what only looks like one."""

from __future__ import annotations

import base64

import pytest

from changes import risks, secrets_found
from changes.patches import changed_paths
from changes.rules import Rules
from runs import secret_scan
from tests.changes.trees import found, store_in, tree_of

HELD = "correct-horse-7-battery"


@pytest.fixture
def store(tmp_path):
    return store_in(tmp_path)


@pytest.fixture(autouse=True)
def _one_secret_is_held(monkeypatch):
    monkeypatch.setattr("runs.secret_scan.held_secrets", lambda: ({"MY_KEY": HELD}, []))


def secrets(findings):
    return [each for each in findings.flags if each.category == "secret"]


TOKENS = [
    "sk-ant-" + "api03-" + "a1B2" * 8,
    "sk-proj-" + "a1B2" * 8,
    "AIza" + "a1B2c" * 7,
    "xoxb-" + "123456789012-abcdef",
    "github_pat_" + "A1b2C3" * 5,
    "ghp_" + "a1B2" * 9,
    "glpat-" + "a1B2" * 5,
    "ASIA" + "Q1W2" * 4,
    "AKIA" + "Q1W2" * 4,
    "npm_" + "a1B2" * 9,
    "pypi-AgE" + "a1B2" * 15,
    "-----BEGIN ENCRYPTED " + "PRIVATE KEY-----",
    "-----BEGIN PGP " + "PRIVATE KEY BLOCK-----",
    "-----BEGIN OPENSSH " + "PRIVATE KEY-----",
]


@pytest.mark.parametrize("token", TOKENS, ids=range(len(TOKENS)))
def test_the_shape_of_a_token_is_flagged_at_its_line_without_its_value(store, token):
    seen = found(store, {"src/a.txt": f"one\ntwo {token} three\n"})

    flags = secrets(seen)
    assert [(f.path, f.line) for f in flags] == [(b"src/a.txt", 2)]
    assert token[:12] not in flags[0].reason


@pytest.mark.parametrize(
    "written",
    [
        HELD,
        base64.b64encode(HELD.encode()).decode(),
        HELD.encode().hex(),
        HELD[::-1],
        "-\n".join(HELD.split("-")),
    ],
)
def test_a_secret_of_this_host_needs_a_second_person_however_it_is_written(store, written):
    seen = found(store, {"a.txt": f"first\n{written}\n"})

    (flag,) = secrets(seen)
    assert (flag.severity, flag.line, flag.needs_second_person) == ("high", 2, True)
    assert "MY_KEY" in flag.reason
    assert HELD not in flag.reason


def test_a_secret_in_the_strings_of_a_binary_is_found_in_both_widths(store):
    narrow = b"\0\1\2" + HELD.encode() + b"\0"
    wide = b"\0\1\2" + TOKENS[0].encode("utf-16-le") + b"\0"
    seen = found(store, {"a.bin": narrow, "b.bin": wide})

    assert {f.path for f in secrets(seen)} == {b"a.bin", b"b.bin"}
    assert seen.lines_scanned == 2


def test_a_secret_in_a_name_is_found(store):
    seen = found(store, {f"{TOKENS[5]}.txt": "x\n"})

    assert [f.line for f in secrets(seen)] == [0]


def test_a_secret_in_a_links_target_is_found(store):
    seen = found(store, {"link": ("120000", f"a/{HELD}")})

    assert [f.path for f in secrets(seen)] == [b"link"]


def test_a_renamed_file_is_read_whole(store):
    text = f"one\ntwo\n{TOKENS[0]}\n"
    base, tree = tree_of(store, {"a.txt": text}), tree_of(store, {"b.txt": text})

    seen = risks.flags(store, base, tree, changed_paths(store, base, tree), Rules())

    assert [(f.path, f.line) for f in secrets(seen)] == [(b"b.txt", 3)]


def test_a_line_that_was_there_before_or_is_taken_out_is_not_the_change(store):
    before = {"a.txt": f"{TOKENS[0]}\nx\n{TOKENS[5]}\n"}
    seen = found(store, {"a.txt": f"new\n{TOKENS[0]}\nx\n"}, before)

    assert secrets(seen) == []
    assert seen.lines_scanned == 1


def test_a_second_copy_of_a_line_is_new(store):
    seen = found(store, {"a.txt": f"{TOKENS[0]}\n{TOKENS[0]}\n"}, {"a.txt": f"{TOKENS[0]}\n"})

    assert [f.line for f in secrets(seen)] == [2]


def test_each_file_with_the_same_secret_is_named(store):
    seen = found(store, {f"f{n}.txt": f"x\n{HELD}\n" for n in range(4)})

    assert [f.path for f in secrets(seen)] == [b"f0.txt", b"f1.txt", b"f2.txt", b"f3.txt"]


@pytest.mark.parametrize("separator", ["\u2028", "\x85", "\x0b", "\x0c", "\r"])
def test_a_line_separator_of_another_kind_hides_no_line(store, separator):
    seen = found(store, {"a.txt": f"one{separator}{TOKENS[0]}\n"})

    assert [f.line for f in secrets(seen)] == [1]


def test_a_secret_across_the_edge_of_what_is_scanned_at_once_is_found(store, monkeypatch):
    monkeypatch.setattr(secrets_found, "_PIECE", 1000)
    monkeypatch.setattr(secrets_found, "_OVERLAP", 100)
    for before in range(900, 1010, 7):
        seen = found(store, {"a.txt": "x" * before + " " + HELD + " " + "y" * 2000 + "\n"})
        assert [(f.path, f.line) for f in secrets(seen)[:1]] == [(b"a.txt", 1)], before


def test_one_cut_into_lines_at_that_edge_is_found_too(store, monkeypatch):
    monkeypatch.setattr(secrets_found, "_PIECE", 1000)
    monkeypatch.setattr(secrets_found, "_OVERLAP", 100)
    pieces = "-\n".join(HELD.split("-"))
    for before in range(930, 1010, 7):
        filling = "x" * 49 + "\n"
        text = filling * (before // 50) + "y" * (before % 50) + "\n" + pieces + "\n" + filling * 30
        assert secrets(found(store, {"a.txt": text})), before


def test_what_is_not_scanned_for_its_amount_is_no_all_clear(store, monkeypatch):
    monkeypatch.setattr(secrets_found, "TOTAL_MAX", 100)
    seen = found(store, {"a.txt": "x\n" * 30, "b.txt": "x\n" * 30, "c.txt": "y\n" * 30})

    assert len(seen.could_not_check) == 1
    assert "b.txt and 1 more files" in seen.could_not_check[0]
    assert seen.lines_scanned == 30


def test_a_store_of_secrets_that_cannot_be_read_is_no_all_clear(store, monkeypatch):
    problem = secret_scan.Finding(kind="unchecked", name="the stored secrets cannot be read")
    monkeypatch.setattr("runs.secret_scan.held_secrets", lambda: ({}, [problem]))

    seen = found(store, {"a.txt": "x\n"})

    assert seen.answer == "could not check"


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("a.py", 'db_password = "s3cr3t!x"'),
        ("a.py", "PASSWORD='hunter2hunter'"),
        ("a.js", 'const apiKey = "9f8e7d6c5b4a";'),
        ("a.json", '"token": "9f8e7d6c5b4a3f2e"'),
        ("a.json", '"client_secret": "Zx81-kk2Q-pp0r"'),
        (".env", "PASSWORD=s3cr3tpassw0rd"),
        (".env", "aws_secret_access_key = wJalrXUtnFEMIK7MDENGbPxRfiCY"),
        ("a.yml", "password: Tr0ub4dor&3"),
        ("README.md", "export API_TOKEN=9f8e7d6c5b4a"),
        ("a.py", 'url = "postgres://app:s3cr3tpw@db.internal/x"'),
        ("a.txt", "https://bot:9f8e7d6c@git.internal/x.git"),
        ("a.go", 'Password: "pa$$w0rd-1"'),
        ("a.rb", "'secret_key_base' => '9f8e7d6c5b4a3f2e'"),
    ],
)
def test_a_secret_given_in_the_open_is_flagged(store, name, line):
    seen = found(store, {name: f"x\n{line}\n"})

    assert (2, "medium") in [(f.line, f.severity) for f in secrets(seen)]


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("a.py", 'token = "changeme"'),
        ("a.yml", 'secret: "${SECRET}"'),
        ("a.py", 'password = os.environ["PASSWORD"]'),
        ("a.py", 'password = getenv("DB_PASSWORD")'),
        ("a.py", "def login(user: str, password: str) -> Token:"),
        ("a.py", 'token_url = "https://example.org/oauth/token"'),
        ("a.py", 'password_field = "user_password_2"'),
        ("a.py", 'PASSWORD_MIN_LENGTH = "12345678"'),
        ("a.yml", "token: ${{ secrets.GITHUB_TOKEN }}"),
        ("a.yml", "password: string"),
        ("a.yml", "secretName: web-tls-2024"),
        ("a.html", '<input name="password" placeholder="Your password 123">'),
        ("a.py", 'token = "<your-token-here>"'),
        ("a.py", 'secret = "{secret}"'),
        ("a.py", 'api_key = "xxxxxxxxxxxx"'),
        ("a.py", 'token_type = "bearer"'),
        ("a.py", 'raise Error("the token: it is wrong 12")'),
        ("a.py", 'error = "password: must have 8 characters"'),
        ("a.py", 'url = "postgres://postgres:postgres@localhost/x"'),
        ("a.py", 'url = "https://user:password@example.org"'),
        ("a.ts", 'interface A { password: string; token: "access_token" }'),
        ("a.py", "keyboard = 'monkeymonkey12'"),
        ("a.py", 'tokenizer = "cl100k_base"'),
    ],
)
def test_what_only_stands_for_a_secret_is_not_flagged(store, name, line):
    assert secrets(found(store, {name: f"{line}\n"})) == []


def test_one_in_a_test_weighs_less(store):
    seen = found(store, {"tests/test_a.py": 'password = "s3cr3t!x"\n'})

    assert [f.severity for f in secrets(seen)] == ["low"]


def test_a_suppression_that_comes_with_the_change_suppresses_nothing(store):
    seen = found(
        store,
        {
            ".gitattributes": "*.txt binary\n",
            ".gitleaksignore": "a.txt\n",
            "a.txt": f"{TOKENS[0]} # nosec pragma: allowlist secret\n",
        },
    )

    assert [f.path for f in secrets(seen)] == [b"a.txt"]
