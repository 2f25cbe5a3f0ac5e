"""What a draft pull request needs is asked first; answers and repositories are hostile."""

from __future__ import annotations

import base64
import json
import re
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from changes import deciding
from changes import github as asking
from changes.git import GitError
from changes.models import Change, PullRequest
from runs import keys, secret_scan
from runs.models import AuditEvent, Decision
from runs.refusal import Refusal
from tests.changes.rows import SOMEBODY, Project, make_git, run_git, state, yes
from tests.changes.stand_in import TOKEN, GitHub

pytestmark = pytest.mark.django_db

REPOSITORY = ("GET", "/repos/people/shop")
COMPARED = ("GET", "/compare/main...")


def refused(change: Change, **words: Any) -> str:
    """Why it is refused; nothing is decided, made or pushed then."""
    with pytest.raises((Refusal, GitError)) as raised:
        deciding.accept(change.uid, SOMEBODY, yes(draft_pr=True, **words))
    assert state(change) == "review"
    assert not Decision.objects.exists()
    assert not AuditEvent.objects.exists()
    assert run_git(Path(change.repository.path), "branch", "--list", "sanduk/*", "mine") == ""
    said = str(raised.value)
    assert TOKEN not in said
    assert asking.basic(TOKEN) not in said
    return said


def untouched(github: GitHub) -> bool:
    return not github.posts() and not any(b"refs/heads/" in each.body for each in github.pushes())


def test_without_a_token_it_is_told_where_one_goes(project: Project, github: GitHub, monkeypatch):
    monkeypatch.delenv("GITHUB_TOKEN")
    change = project.change()

    assert "sanduk auth set GITHUB_TOKEN" in refused(change)
    monkeypatch.setenv("GITHUB_TOKEN", "two words")
    assert "GITHUB_TOKEN holds a line break, a space" in refused(change)
    assert github.asked == []


def test_a_token_may_come_from_a_file_and_from_those_that_are_kept(
    project: Project, github: GitHub, monkeypatch, tmp_path: Path
):
    monkeypatch.delenv("GITHUB_TOKEN")
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    monkeypatch.setenv("GITHUB_TOKEN_FILE", str(tmp_path / "token"))
    assert asking.token() == TOKEN
    monkeypatch.delenv("GITHUB_TOKEN_FILE")
    monkeypatch.setattr("runs.credentials.stored", lambda: {"GITHUB_TOKEN": TOKEN})
    assert asking.token() == TOKEN


def test_a_token_that_github_does_not_know_is_refused(
    project: Project, github: GitHub, monkeypatch
):
    monkeypatch.setenv("GITHUB_TOKEN", "ghp_of_somebody_else")

    assert "127.0.0.1" in (said := refused(project.change()))
    assert "does not know GITHUB_TOKEN" in said


def test_a_repository_without_a_remote_on_that_site_is_refused(project: Project, github: GitHub):
    run_git(project.path, "remote", "set-url", "origin", "git@gitlab.com:people/shop.git")
    assert "is no repository on 127.0.0.1" in refused(project.change())
    run_git(project.path, "remote", "rename", "origin", "other")
    assert "no remote called origin" in refused(project.change())
    project.rule('remote = "other"\n')
    assert "the remote other is no repository" in refused(project.change())
    assert github.asked == []


def test_what_the_token_may_not_do_is_refused(project: Project, github: GitHub):
    change = project.change()
    github.push = False
    assert "GITHUB_TOKEN may not push to people/shop" in refused(change)
    github.push, github.archived = True, True
    assert "people/shop is archived" in refused(change)
    github.archived, github.git_denied = False, True
    assert "does not let GITHUB_TOKEN push there" in refused(change)
    github.git_denied = False
    github.answers[("GET", "/pulls")] = (403, b'{"message": "Resource not accessible"}')
    assert "may not read pull requests of people/shop: Resource not" in refused(change)
    assert untouched(github)


def test_branches_that_are_not_there_or_are_there_already_are_refused(
    project: Project, github: GitHub
):
    change = project.change()
    assert "has no branch nowhere" in refused(change, into="nowhere")
    assert "has no branch ../x" in refused(change, into="../x")
    run_git(github.bare, "branch", f"sanduk/{change.uid}", f"{project.base}^")
    assert "is there already" in refused(change)
    run_git(github.bare, "branch", "mine", project.base)
    assert "mine cannot be proposed for itself" in refused(change, into="mine", branch="mine")
    github.pulls.append(
        {
            "number": 3, "state": "open", "head": {"ref": "new", "sha": "1" * 40},
            "base": {"ref": "main", "sha": "2" * 40},
        }
    )  # fmt: skip
    assert "has pull request 3 of new already" in refused(change, branch="new")
    assert untouched(github)


def test_a_base_that_is_not_in_the_branch_there_is_refused(project: Project, github: GitHub):
    run_git(project.path, "commit", "-q", "--allow-empty", "-m", "nobody read this")
    project.base = run_git(project.path, "rev-parse", "HEAD")

    assert "would hold what nobody accepted here" in refused(project.change())
    assert untouched(github)


def test_a_git_that_cannot_push_over_https_is_told(project: Project, github: GitHub, monkeypatch):
    monkeypatch.setattr("changes.pushing.line", lambda said: "/nonexistent")

    assert "git-remote-http is missing" in refused(project.change())


@pytest.mark.parametrize("status", [302, 307, 404, 403, 429, 500, 503])
def test_an_answer_that_is_no_yes_is_a_no(project: Project, github: GitHub, status: int):
    github.answers[REPOSITORY] = (status, b'{"message": "so it \\u001b[31mis"}')

    said = refused(project.change())

    assert "\x1b" not in said
    assert untouched(github)


NOT_GITHUB = {
    "nothing": b"",
    "a page": b"<html>hello</html>",
    "another kind": b"[]",
    "no names": b"{}",
    "no right at all": b'{"full_name": "people/shop", "default_branch": "main", "permissions": {}}',
    "a number for a name": b'{"full_name": 7, "default_branch": "main"}',
    "a right that is a word": b'{"full_name": "people/shop", "default_branch": "main", '
    b'"permissions": {"push": "yes"}}',
    "depth": b"[" * 100_000,
    "no text": b'{"full_name": "\xff", "default_branch": "main"}',
    "too much": b" " * (2 << 20),
    "another one": b'{"full_name": "evil/shop", "default_branch": "main", '
    b'"permissions": {"push": true}}',
}


@pytest.mark.parametrize("what", NOT_GITHUB)
def test_an_answer_that_is_not_githubs_is_none(project: Project, github: GitHub, what: str):
    github.answers[REPOSITORY] = (200, NOT_GITHUB[what])

    refused(project.change())

    assert untouched(github)


def test_a_redirect_gets_no_token(project: Project, github: GitHub, tmp_path: Path):
    github.answers[REPOSITORY] = (301, b"{}")
    assert "has moved" in refused(project.change())
    assert len(github.asked) == 1


def accepted(change: Change) -> Change:
    return deciding.accept(change.uid, SOMEBODY, yes(draft_pr=True))


MADE = {"number": 5, "state": "open"}
NOT_MADE = {
    "nothing": (201, b""),
    "no number": (201, {**MADE, "number": "5"}),
    "a number below one": (201, {**MADE, "number": 0}),
    "a number beyond all": (201, {**MADE, "number": 10**30}),
    "another branch": (201, {**MADE, "head": {"ref": "evil", "sha": "1" * 40}}),
    "for another branch": (201, {**MADE, "base": {"ref": "evil", "sha": "1" * 40}}),
    "another yes": (200, MADE),
    "a trouble of its own": (502, b"bad gateway"),
    "too much": (201, b" " * (2 << 20)),
}


@pytest.mark.parametrize("what", NOT_MADE)
def test_an_answer_that_cannot_be_read_leaves_it_unknown(
    project: Project, github: GitHub, what: str
):
    change = project.change()
    done = accepted(change)
    status, data = NOT_MADE[what]
    ends = {"head": {"ref": f"sanduk/{change.uid}", "sha": done.landed_commit},
            "base": {"ref": "main", "sha": project.base}}  # fmt: skip
    body = data if isinstance(data, bytes) else json.dumps({**ends, **data}).encode()
    github.answers[("POST", "/pulls")] = (status, body)

    assert "whether the pull request was made is not known" in deciding.proposed(done)
    row = PullRequest.objects.get()
    assert (row.state, row.number, row.url) == ("asked", 0, "")
    github.answers.clear()
    assert deciding.proposed(done) == ""


def test_an_address_that_is_shown_is_the_sites_own(project: Project, github: GitHub):
    change = project.change()
    done = accepted(change)
    made = {
        **MADE, "html_url": "https://evil.example/pull/5", "url": "javascript:alert(1)",
        "head": {"ref": f"sanduk/{change.uid}", "sha": done.landed_commit},
        "base": {"ref": "main", "sha": project.base},
    }  # fmt: skip
    github.answers[("POST", "/pulls")] = (201, json.dumps(made).encode())

    assert deciding.proposed(done) == ""
    assert PullRequest.objects.get().url == f"{github.address}/people/shop/pull/5"


def test_a_no_of_github_is_told_without_the_token_and_can_be_tried_again(
    project: Project, github: GitHub
):
    change = project.change()
    done = accepted(change)
    said = f"Draft pull requests are not supported. \x1b[2J {TOKEN} {asking.basic(TOKEN)}"
    body = json.dumps({"message": "Validation Failed", "errors": [{"message": said}, "x"]})
    github.answers[("POST", "/pulls")] = (422, body.encode())

    told = deciding.proposed(done)

    assert "(422): Validation Failed; Draft pull requests are not supported." in told
    row = PullRequest.objects.get()
    assert (row.state, row.trouble) == ("pushed", told)
    assert TOKEN not in told
    assert asking.basic(TOKEN) not in told
    assert "\x1b" not in told
    github.answers.clear()
    assert deciding.proposed(done) == ""


def test_another_site_than_was_decided_on_gets_nothing(project: Project, github: GitHub, settings):
    done = accepted(project.change())
    settings.SANDUK_GITHUB_API = "https://api.github.com"

    assert f"was to be on {github.address}" in deciding.proposed(done)


def test_nothing_the_repository_is_configured_with_has_a_part_in_it(
    project: Project, github: GitHub, tmp_path: Path
):
    evil = make_git(tmp_path / "evil", {"x": "x\n"})
    run_git(evil, "config", "receive.denyCurrentBranch", "ignore")
    marker = tmp_path / "marker"
    touch = f"touch {marker}"
    for name in ("pre-push", "reference-transaction", "post-commit", "pre-commit"):
        hook = project.path / ".git" / "hooks" / name
        hook.write_text(f"#!/bin/sh\n{touch}\n")
        hook.chmod(hook.stat().st_mode | stat.S_IXUSR)
    for name, value in {
        f"url.file://{evil}.insteadOf": github.remote,
        f"url.file://{evil}.pushInsteadOf": github.remote,
        "remote.origin.pushurl": f"file://{evil}",
        "remote.origin.receivepack": touch,
        "remote.origin.vcs": "ext",
        "core.sshCommand": touch, "core.askPass": touch, "core.gitProxy": touch,
        "core.fsmonitor": touch, "credential.helper": f"!{touch}",
        f"credential.{github.address}.helper": f"!{touch}",
        "http.proxy": "http://127.0.0.1:9", "http.extraHeader": "X-Evil: 1",
        f"http.{github.address}.extraHeader": "Authorization: Basic ZXZpbA==",
        "push.gpgSign": "true", "gpg.program": touch, "commit.gpgSign": "true",
        "push.pushOption": "evil", "push.followTags": "true", "push.default": "matching",
        "protocol.ext.allow": "always",
    }.items():  # fmt: skip
        run_git(project.path, "config", name, value)
    plain = ["git", "push", "-q", github.remote, "HEAD:refs/heads/control"]
    # what these do to an ordinary push
    with pytest.raises(Exception, match="git"):
        run_git(project.path, *plain[1:])
    assert marker.exists()
    marker.unlink()
    asked = len(github.asked)
    assert asked == 0

    change = project.change()
    assert deciding.proposed(accepted(change)) == ""

    assert not marker.exists()
    assert run_git(evil, "branch", "--list", "sanduk/*", "control") == ""
    assert github.tip(f"sanduk/{change.uid}")
    assert all("x-evil" not in each.headers for each in github.asked)


def test_the_token_is_in_no_argument_row_file_or_address(
    project: Project, github: GitHub, tmp_path: Path, monkeypatch
):
    started: list[tuple[list[Any], dict[str, str]]] = []
    encoded = base64.b64encode(f"x-access-token:{TOKEN}".encode()).decode()
    popen = subprocess.Popen

    def watched(command, **how):
        started.append((list(command), dict(how["env"])))
        return popen(command, **how)

    monkeypatch.setattr("changes.git.subprocess.Popen", watched)
    change = project.change()
    github.answers[("POST", "/pulls")] = (422, TOKEN.encode())
    deciding.proposed(accepted(change))
    github.answers.clear()
    assert deciding.proposed(Change.objects.get(pk=change.pk)) == ""

    secrets = (TOKEN, encoded)
    words = [str(word) for command, _ in started for word in command]
    assert not [word for word in words if any(each in word for each in secrets)]
    told = [
        command for command, env in started if any(s in v for s in secrets for v in env.values())
    ]
    assert {next(word for word in command if word == "push") for command in told} == {"push"}
    assert all(TOKEN not in each.path + json.dumps(each.query) for each in github.asked)
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f'SELECT * FROM "{table}"')  # noqa: S608 - our own tables
            rows = repr(cursor.fetchall())
            assert not any(each in rows for each in secrets), table
    kept = [each for each in tmp_path.rglob("*") if each.is_file()]
    assert len(kept) > 20
    for file in kept:
        data = file.read_bytes()
        assert not any(each.encode() in data for each in secrets), file


def test_the_token_is_known_as_a_secret_of_this_host(monkeypatch):
    monkeypatch.undo()
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)

    assert TOKEN in keys.held_keys()
    assert secret_scan.held_secrets()[0]["GITHUB_TOKEN"] == TOKEN
    shown = repr(asking.Answer(200, b"", TOKEN))
    assert re.search(TOKEN, shown) is None
