"""What stands out in a change, each kind by itself, and what must not."""

from __future__ import annotations

import pytest

from changes import added, risks
from changes.patches import changed_paths
from changes.risky_paths import flags_of
from changes.rules import Expected, FlagRule, Rules
from tests.changes.trees import USUAL, categories, found, store_in, tree_of


@pytest.fixture
def store(tmp_path):
    return store_in(tmp_path)


@pytest.fixture(autouse=True)
def _no_secret_is_held(monkeypatch):
    monkeypatch.setattr("runs.secret_scan.held_secrets", lambda: ({}, []))


PATHS = {
    "ci/workflow": """
        .github/workflows/a.yml .circleci/config.yml .gitlab-ci.yml sub/Jenkinsfile .travis.yml
        azure-pipelines.yml .github/actions/x/action.yml action.yml .github/dependabot.yml
        docs/.github/workflows/evil.yml .GitHub/Workflows/a.yml
    """,
    "deploy": """
        Dockerfile a/docker-compose.yml docker-compose.prod.yaml main.tf Procfile fly.toml
        vercel.json serverless.yml k8s/a.yaml helm/x deploy/run Dockerfile.prod Containerfile
        compose.yaml
    """,
    "auth": """
        src/auth.py login.html user_session.rb permissions.py rbac.go oauth2.ts middleware/x.py
        middleware.py acl.c src/OAuthClient.java lib/useAuth.tsx authorization.py
    """,
    "secret": """
        .env .env.local app/.npmrc .pypirc id_rsa id_rsa.pub server.pem tls/server.key .netrc
        id_ed25519 kubeconfig .kube/config terraform.tfvars my_secrets.py credentials.json
        SECRETS.md
    """,
    "dependency": """
        requirements.txt requirements-dev.txt pyproject.toml poetry.lock package.json
        package-lock.json yarn.lock pnpm-lock.yaml Cargo.toml Cargo.lock go.mod go.sum Gemfile
        Gemfile.lock uv.lock Pipfile.lock environment.yml composer.json build.gradle pom.xml
        bun.lockb
    """,
    "agent-config": """
        .claude/settings.json sub/.claude/x .cursor/rules .mcp.json CLAUDE.md AGENTS.md GEMINI.md
        .gemini/settings.json .codex/config.toml sub/agents.md
    """,
    "environment": ".envrc mise.toml .tool-versions flake.nix",
    "hooks": ".husky/pre-commit .githooks/x .pre-commit-config.yaml",
    "git-config": ".gitmodules .gitattributes sub/.gitattributes",
    "editor": """
        .vscode/tasks.json .vscode/settings.json .vscode/launch.json .idea/workspace.xml
        .devcontainer/devcontainer.json
    """,
    "build": "Makefile setup.py setup.cfg sitecustomize.py evil.pth build.rs",
    "test-config": "conftest.py tox.ini sub/conftest.py",
    "migration": "app/migrations/0002_x.py db/migrate/1.rb",
    "crypto": "src/crypto.py lib/encryption.go",
}


@pytest.mark.parametrize(
    ("category", "path"),
    [(category, path) for category, paths in PATHS.items() for path in paths.split()],
)
def test_a_path_of_weight_is_flagged(category, path):
    assert category in {flag.category for flag in flags_of(path.encode())}


@pytest.mark.parametrize(
    "path",
    [
        *("AUTHORS", "docs/author-guide.md", "obsession.py", "secretary.py", "monkey.key"),
        *("authority.md", "authored.py", "src/possession.c", "README.md", "src/main.py"),
        *(".env.example", ".env.sample", "tokenizer.py", "keyboard.key", "blogin.py"),
        *("deployment.md", "testing.py", "docs/environment-variables.md"),
    ],
)
def test_a_name_that_only_sounds_like_one_is_not_flagged(path):
    assert not list(flags_of(path.encode()))


@pytest.mark.parametrize(
    "path", [b".git\xe2\x80\x8dmodules", b".ENVRC", "ＣＬＡＵＤＥ.md".encode()]
)
def test_a_path_is_not_hidden_by_another_spelling(path):
    assert list(flags_of(path))


def test_a_plain_edit_is_clear_and_says_how_much_was_looked_at(store):
    seen = found(store, {"README.md": "hello\nworld\n", "src/a.py": "x = 1\ny = 2\n"})

    assert (seen.answer, seen.flags, seen.could_not_check) == ("clear", (), ())
    assert seen.lines_scanned == 3


def test_a_deleted_and_a_renamed_path_count_by_the_old_name(store):
    base = tree_of(store, {"conftest.py": "a = 1\nb = 2\nc = 3\n", ".envrc": "x\n"})
    tree = tree_of(store, {"other.py": "a = 1\nb = 2\nc = 3\n"})

    seen = risks.flags(store, base, tree, changed_paths(store, base, tree), Rules())

    assert {"test-config", "environment"} <= categories(seen)
    assert {flag.path for flag in seen.flags} >= {b"conftest.py", b".envrc"}


def test_a_mode_only_change_is_flagged(store):
    seen = found(store, {"README.md": ("100755", "hello\n")})

    assert [(f.category, f.path) for f in seen.flags] == [("mode", b"README.md")]


@pytest.mark.parametrize(
    ("target", "severity", "said"),
    [
        ("/etc/passwd", "high", "absolute"),
        ("../../x", "high", "out of the repository"),
        ("a/../../../x", "high", "out of the repository"),
        ("../.git/hooks", "high", "git's own"),
        ("../.GIT/config", "high", "git's own"),
        ("~/x", "high", "absolute"),
        ("C:\\x", "high", "absolute"),
        ("b.txt", "medium", "a link to b.txt"),
        ("\x1b[2J", "medium", "\\x1b[2J"),
    ],
)
def test_a_link_is_flagged_by_where_it_leads(store, target, severity, said):
    seen = found(store, {"sub/link": ("120000", target)})

    flag = next(each for each in seen.flags if each.category == "symlink")
    assert (flag.severity, flag.path) == (severity, b"sub/link")
    assert said in flag.reason
    assert "\x1b" not in flag.reason


def test_a_file_that_becomes_a_link_is_flagged_as_both(store):
    seen = found(store, {"README.md": ("120000", "/etc/passwd")})

    assert {"type", "symlink"} <= categories(seen)


def test_a_submodule_is_flagged_and_what_it_holds_could_not_be_checked(store):
    seen = found(store, {"vendored": ("160000", "1" * 40)})

    assert "submodule" in categories(seen)
    assert seen.could_not_check == ("vendored: what the submodule's commit holds",)


def test_each_binary_is_named(store):
    seen = found(store, {"a.bin": b"\0\1", "b.bin": b"\0\2", "run": b"\x7fELF\0\0"})

    flagged = [(f.severity, f.path) for f in seen.flags if f.category == "binary"]
    assert flagged == [("high", b"run"), ("medium", b"a.bin"), ("medium", b"b.bin")]


def test_an_archive_is_no_all_clear(store):
    seen = found(store, {"notes.md": b"PK\x03\x04\0text"})

    assert seen.could_not_check == ("notes.md: what is packed in it (zip)",)


def test_a_file_too_large_to_read_is_no_all_clear(store, monkeypatch):
    monkeypatch.setattr(added, "FILE_MAX", 1 << 20)
    seen = found(store, {"big.txt": b"x\n" * (1 << 20)})

    assert any("big.txt: 2 MB" in reason for reason in seen.could_not_check)
    assert "size" in categories(seen)


def test_a_missing_object_is_no_all_clear(store):
    base = tree_of(store, USUAL)
    tree = tree_of(store, {**USUAL, "new.txt": "hello again\n"})
    changed = changed_paths(store, base, tree)
    gone = changed[0].new_id
    (store.path / "objects" / gone[:2] / gone[2:]).unlink()

    seen = risks.flags(store, base, tree, changed, Rules())

    assert seen.could_not_check == ("new.txt: its content is missing",)
    assert seen.answer == "could not check"


@pytest.mark.parametrize(
    ("text", "severity"),
    [
        ("if admin:\u202e # nobody\n", "high"),
        ("x = 'a\u2066b'\n", "high"),
        ("pass\u200bword\n", "high"),
        ("us\u200der\n", "high"),
        ("a\u00adb\n", "high"),
        ("x = '\U000e0041'\n", "high"),
        ("echo \x1b[8mhidden\n", "medium"),
        ("p\u0430yment = 1\n", "medium"),
        ("x = 1" + " " * 300 + "evil()\n", "medium"),
    ],
)
def test_text_that_hides_is_flagged_at_its_line(store, text, severity):
    seen = found(store, {"a.py": "x = 1\n" + text})

    flag = next(each for each in seen.flags if each.category == "hidden-text")
    assert (flag.severity, flag.line) == (severity, 2)


@pytest.mark.parametrize(
    "text",
    [
        "# \U0001f468\u200d\U0001f469\u200d\U0001f467 family\n",
        "«می\u200cخواهم»\n",
        "\ufeffusing System;\n",
        "naïve café – “quoted” … 日本語\n",
        "Привет, мир\n",
        "Δx = λ\n",
        "x\f\n",
    ],
)
def test_writing_of_any_language_hides_nothing(store, text):
    assert "hidden-text" not in categories(found(store, {"a.py": text}))


def test_hidden_text_in_another_encoding_is_found(store):
    seen = found(store, {"a.cs": "\ufeffx\u202ey\n".encode("utf-16-le")})

    assert "hidden-text" in categories(seen)


def test_hidden_text_that_was_there_before_is_not_the_change(store):
    seen = found(store, {"a.py": "x\u202ey\nnew\n"}, {"a.py": "x\u202ey\n"})

    assert "hidden-text" not in categories(seen)


def test_turned_line_ends_are_flagged_and_hide_no_line(store):
    before = {"a.txt": "one\ntwo\nthree\n"}

    only = found(store, {"a.txt": "one\r\ntwo\r\nthree\r\n"}, before)
    more = found(store, {"a.txt": "one\r\ntwo\r\nthree\r\nfour\r\n"}, before)

    assert [(f.category, f.severity) for f in only.flags] == [("line-ends", "low")]
    assert [(f.category, f.severity) for f in more.flags] == [("line-ends", "medium")]
    assert (only.lines_scanned, more.lines_scanned) == (0, 1)


def test_tests_that_go_are_flagged(store):
    before = {"tests/test_a.py": "def test_a():\n    assert one\n" * 30, "b_test.go": "x\n" * 5}
    base, tree = tree_of(store, before), tree_of(store, {"tests/test_a.py": "pass\n"})

    seen = risks.flags(store, base, tree, changed_paths(store, base, tree), Rules())

    flagged = {(f.path, f.severity) for f in seen.flags if f.category == "deleted-tests"}
    assert flagged == {(b"b_test.go", "high"), (b"tests/test_a.py", "medium")}


@pytest.mark.parametrize(
    "line", ["@pytest.mark.skip", "it.only('x', f)", "  xit('x')", "t.Skip()", "@Disabled"]
)
def test_a_test_that_is_switched_off_is_flagged(store, line):
    seen = found(store, {"tests/test_a.py": f"{line}\n", "src/a.py": f"{line}\n"})

    assert [(f.path, f.line) for f in seen.flags if f.category == "deleted-tests"] == [
        (b"tests/test_a.py", 1)
    ]


@pytest.mark.parametrize(
    "name",
    ["-rf", "a\nb", "con.txt", "x ", "a:b", "p\u202eth", b"caf\xe9"],
)
def test_a_name_that_works_against_its_reader_is_flagged(store, name):
    seen = found(store, {name: "x\n"})

    flag = next(each for each in seen.flags if each.category == "name")
    assert flag.reason.isprintable()


def test_a_name_that_differs_in_case_or_form_alone_is_flagged(store):
    before = {"Readme.md": "x\n", "caf\u00e9": "y\n"}
    seen = found(store, {"README.md": "z\n", "cafe\u0301": "z\n"}, before)

    flagged = {f.path for f in seen.flags if f.category == "look-alike"}
    assert flagged == {b"README.md", "cafe\u0301".encode()}


def test_an_attribute_that_comes_with_the_change_hides_nothing(store):
    seen = found(
        store,
        {".gitattributes": "* -diff -text binary\n", ".github/workflows/x.yml": "on: push\n"},
    )

    assert {"git-config", "ci/workflow"} <= categories(seen)
    assert seen.lines_scanned == 2


def test_lines_that_look_like_a_patchs_own_are_lines(store):
    """A removed `-- x` and an added `++ y` are content, whatever a patch makes of them."""
    before = {"q.sql": "-- /etc/passwd\nselect 1;\n"}
    seen = found(store, {"q.sql": "select 1;\n++ AKIA" + "Q1W2" * 4 + "\n"}, before)

    assert [(f.category, f.path, f.line) for f in seen.flags] == [("secret", b"q.sql", 2)]


def test_the_operators_rules_add_flags_and_ask_for_a_second_person(store):
    rule = FlagRule(category="payment", paths=("src/billing/**",), reason="money", severity="high")
    rules = Rules(flag=(rule,), second_person=("ci/workflow",))
    seen = found(store, {"src/billing/a.py": "x\n", ".travis.yml": "x\n"}, rules=rules)

    assert [(f.category, f.needs_second_person) for f in seen.flags] == [
        ("ci/workflow", True),
        ("payment", False),
    ]


def test_what_the_operator_expects_stays_in_sight_as_low(store):
    ordinary = Expected(category="dependency", paths=("docs/**",), reason="docs only")
    seen = found(
        store,
        {"docs/requirements.txt": "x\n", "requirements.txt": "x\n"},
        rules=Rules(expected=(ordinary,)),
    )

    assert [(f.path, f.severity) for f in seen.flags] == [
        (b"requirements.txt", "medium"),
        (b"docs/requirements.txt", "low"),
    ]
    assert "docs only" in seen.flags[1].reason


def test_more_flags_than_anybody_reads_are_counted_and_the_gravest_kept(store, monkeypatch):
    monkeypatch.setattr(risks, "FLAGS_MAX", 3)
    files = {f"auth{n}.py": "x\n" for n in range(5)}
    seen = found(store, {**files, ".envrc": "x\n"})

    assert [f.path for f in seen.flags] == [b".envrc", b"auth0.py", b"auth1.py", b""]
    assert "3 more flags" in seen.flags[-1].reason


@pytest.mark.parametrize(
    "piece", ["a", "A1_", "1\u0430", " ", "{", "password=", "xoxb-", "\\u0061"]
)
@pytest.mark.parametrize("name", ["long.py", "test_long.js"])
def test_a_line_of_megabytes_is_looked_at_to_its_end(store, piece, name):
    line = piece * (2_000_000 // len(piece)) + " = 'pas\u0441word'\n"

    hidden = [flag for flag in found(store, {name: line}).flags if flag.category == "hidden-text"]
    assert "a letter of another alphabet that looks like one of ours" in {
        flag.reason for flag in hidden
    }
