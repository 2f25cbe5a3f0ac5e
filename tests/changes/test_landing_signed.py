"""A landed commit is signed as the account's own git signs, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from changes.landing import BranchTaken, identity, signs
from runs.refusal import Refusal
from tests.changes.making import BRANCH, Scene, landed, person_git, text_of


@pytest.fixture
def signing(changed: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An account whose git signs with a program of its own; it signs otherwise every time."""
    home = tmp_path / "home"
    home.mkdir()
    program = home / "signs"
    program.write_text(
        '#!/bin/sh\n[ -e "$HOME/locked" ] && exit 2\ncat >/dev/null\n'
        "printf '[GNUPG:] SIG_CREATED \\n' >&2\n"
        "printf -- '-----BEGIN PGP SIGNATURE-----\\n\\n%s\\n-----END PGP SIGNATURE-----\\n'"
        ' "$(od -An -N8 -tx1 /dev/urandom)"\n'
    )
    program.chmod(0o755)
    for key, value in (("commit.gpgSign", "true"), ("gpg.program", str(program)),
                       ("user.name", "A Person"), ("user.email", "person@example.test"),
                       ("user.signingKey", "KEY")):  # fmt: skip
        person_git(home, "config", "--file", str(home / ".gitconfig"), key, value)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return home


def test_it_is_signed_when_the_accounts_git_signs(changed, signing):
    assert signs(changed.repository)
    assert identity(changed.repository) == ("A Person", "person@example.test")

    made = landed(changed, sign=True)
    raw = person_git(changed.repository, "cat-file", "commit", made)
    assert b"gpgsig -----BEGIN PGP SIGNATURE-----" in raw
    assert person_git(changed.repository, "fsck", "--strict").strip() == b""
    assert landed(changed, sign=True) == made, "another signature is the same landing"
    with pytest.raises(BranchTaken):
        landed(changed, sign=True, message="another\n")


def test_a_key_that_is_locked_is_refused_and_nothing_lands(changed, signing):
    (signing / "locked").touch()

    with pytest.raises(Refusal, match=r"could not sign the commit .*gpg failed.*accept unsigned"):
        landed(changed, sign=True)
    assert BRANCH not in text_of(person_git(changed.repository, "branch"))


def test_an_account_without_a_name_has_no_identity(changed, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)

    assert identity(changed.repository) is None
    assert not signs(changed.repository)


@pytest.mark.usefixtures("signing")
def test_a_tree_the_repository_already_has_is_signed_too(changed):
    base = changed.provided.base_tree
    commit = landed(changed, base, sign=True)

    assert text_of(person_git(changed.repository, "rev-parse", f"{commit}^{{tree}}")) == base


def test_each_commit_of_a_series_is_signed_and_found_again(changed, signing):
    first = changed.read().tree
    changed.write({"more": b"m\n"})
    before = [(first, "first\n")]

    made = landed(changed, sign=True, before=before)
    for name in (made, f"{made}~1"):
        raw = person_git(changed.repository, "cat-file", "commit", name)
        assert b"gpgsig -----BEGIN PGP SIGNATURE-----" in raw
    assert text_of(person_git(changed.repository, "rev-parse", f"{made}~2")) == changed.base
    assert landed(changed, sign=True, before=before) == made
    for other in ([(first, "other words\n")], [], [*before, *before]):
        with pytest.raises(BranchTaken):
            landed(changed, sign=True, before=other)


@pytest.mark.parametrize(
    "setting", ["gpg.program", "gpg.openpgp.program", "gpg.ssh.program", "gpg.x509.program"]
)
@pytest.mark.parametrize("style", ["openpgp", "ssh", "x509"])
def test_a_program_the_repository_names_never_runs(changed, signing, tmp_path, setting, style):
    ran = tmp_path / "ran"
    program = tmp_path / "theirs"
    program.write_text(f"#!/bin/sh\ntouch {ran}\nexit 1\n")
    program.chmod(0o755)
    for key, value in ((setting, str(program)), ("gpg.format", style),
                       ("gpg.ssh.defaultKeyCommand", str(program))):  # fmt: skip
        person_git(changed.repository, "config", key, value)
    if style == "ssh":
        person_git(signing, "config", "--file", str(signing / ".gitconfig"), "--unset",
                   "user.signingKey")  # fmt: skip

    if style == "openpgp":
        assert landed(changed, sign=True)
    else:
        with pytest.raises(Refusal, match="could not sign"):
            landed(changed, sign=True)
    assert not ran.exists()
