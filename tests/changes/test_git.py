"""Git runs with our settings only, within limits, and leaves nothing behind."""

from __future__ import annotations

import io
import os
import tempfile
import time
from pathlib import Path

import pytest

from changes.git import GitError, git, line, version
from runs.refusal import HostRefusal
from tests.changes.making import person_git, repository


def test_it_is_new_enough_here():
    assert version() >= (2, 38)


@pytest.fixture
def an_old_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    program = tmp_path / "git"
    program.write_text("#!/bin/sh\necho git version 2.30.2\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    version.cache_clear()
    yield
    version.cache_clear()


@pytest.mark.usefixtures("an_old_git")
def test_an_old_one_is_refused_with_what_is_needed():
    with pytest.raises(HostRefusal, match=r"git 2\.38 or newer is needed.*2\.30\.2"):
        version()


def test_a_host_without_git_is_told_to_install_it(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(HostRefusal, match="there is no git on this host"):
        git("version")


@pytest.mark.parametrize(
    "variable",
    ["GIT_DIR", "GIT_CONFIG_GLOBAL", "GIT_EXTERNAL_DIFF", "GIT_SSH_COMMAND", "GIT_TRACE"],
)
def test_no_variable_of_the_caller_reaches_it(variable, tmp_path, monkeypatch):
    monkeypatch.setenv(variable, "/somewhere/else")
    shown = git("-c", "alias.show-it=!env", "show-it", cwd=tmp_path).decode()

    assert "/somewhere/else" not in shown


def test_no_configuration_of_the_account_is_read(tmp_path, monkeypatch):
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text("[user]\n\tname = Somebody\n")
    monkeypatch.setenv("HOME", str(home))

    assert git("config", "user.name", cwd=tmp_path, codes=(0, 1)) == b""
    assert git("config", "user.name", cwd=tmp_path, owner=True) == b"Somebody\n"


def test_a_monitor_of_the_repository_is_not_started(tmp_path):
    made = repository(tmp_path / "r")
    started = tmp_path / "started"
    monitor = tmp_path / "monitor"
    monitor.write_text(f"#!/bin/sh\ntouch '{started}'\n")
    monitor.chmod(0o755)
    person_git(made, "config", "core.fsmonitor", str(monitor))

    git("status", "--porcelain", cwd=made)
    assert not started.exists()

    person_git(made, "status", "--porcelain")
    assert started.exists(), "the monitor works when nobody forbids it"


def test_no_hook_of_the_repository_is_started(tmp_path):
    made = repository(tmp_path / "r")
    started = tmp_path / "started"
    hook = made / ".git" / "hooks" / "reference-transaction"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch '{started}'\n")
    hook.chmod(0o755)

    git("update-ref", "refs/heads/one", "HEAD", cwd=made)
    assert not started.exists()

    person_git(made, "update-ref", "refs/heads/two", "HEAD")
    assert started.exists(), "the hook works when nobody forbids it"


def test_a_replaced_object_is_not_followed(tmp_path):
    made = repository(tmp_path / "r", {"evil": b"evil\n"})
    good, evil = (line(git("rev-parse", f"HEAD:{f}", cwd=made)) for f in ("README.md", "evil"))
    person_git(made, "replace", good, evil)

    assert person_git(made, "cat-file", "blob", good) == b"evil\n"
    assert git("cat-file", "blob", good, cwd=made) == b"hello\n"


@pytest.mark.parametrize("address", ["ext::touch started", "file:///{made}", "ssh://host/x"])
def test_it_reaches_no_other_repository(address, tmp_path):
    made = repository(tmp_path / "r")

    with pytest.raises(GitError, match="not allowed"):
        git("ls-remote", address.format(made=made), cwd=made)
    assert not (made / "started").exists()


def test_missing_objects_are_not_fetched_with_a_program_of_the_configuration(tmp_path):
    made = repository(tmp_path / "r")
    started = tmp_path / "started"
    person_git(made, "config", "core.repositoryFormatVersion", "1")
    person_git(made, "config", "extensions.partialClone", "origin")
    person_git(made, "config", "remote.origin.url", f"ext::touch {started}")
    person_git(made, "config", "remote.origin.promisor", "true")
    person_git(made, "config", "protocol.ext.allow", "always")

    with pytest.raises(GitError):
        git("cat-file", "blob", "1" * 40, cwd=made)
    assert not started.exists()


def test_more_output_than_the_limit_stops_it(tmp_path):
    with pytest.raises(GitError, match="printed more than 1000 bytes"):
        git("-c", "alias.much=!yes", "much", cwd=tmp_path, limit_bytes=1000)


def is_alive(stat: Path) -> bool:
    """Whether a process is there and is no zombie."""
    try:
        return stat.read_text().split()[2] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_what_takes_too_long_is_stopped_with_its_children(tmp_path):
    begun = time.monotonic()
    alias = "alias.slow=!sleep 60 & echo $! >pid; wait"
    with pytest.raises(GitError, match="stopped after 1 s"):
        git("-c", alias, "slow", cwd=tmp_path, timeout_s=1)

    assert time.monotonic() - begun < 20
    process = Path("/proc", (tmp_path / "pid").read_text().strip(), "stat")
    while is_alive(process):  # a moment passes between the signal and the end
        assert time.monotonic() - begun < 20
        time.sleep(0.02)


def test_much_is_given_and_taken_at_the_same_time(tmp_path):
    data = os.urandom(1 << 20) * 8

    assert git("-c", "alias.same=!cat", "same", cwd=tmp_path, stdin=data) == data


def test_a_question_nobody_reads_is_no_error(tmp_path):
    assert git("version", cwd=tmp_path, stdin=bytes(1 << 20)).startswith(b"git version")


def test_it_reads_from_and_writes_to_open_files(tmp_path):
    with tempfile.TemporaryFile() as question, (tmp_path / "answer").open("wb") as answer:
        question.write(b"what was asked")
        question.seek(0)
        assert git("-c", "alias.same=!cat", "same", stdin=question, stdout=answer) == b""

    assert (tmp_path / "answer").read_bytes() == b"what was asked"


def test_its_complaint_is_printable(tmp_path):
    with pytest.raises(GitError) as caught:
        git("-c", r"alias.loud=!printf '\033[2J\342\200\256' >&2; exit 3", "loud", cwd=tmp_path)

    assert caught.value.code == 3
    assert str(caught.value).isprintable()


def test_endless_complaints_are_cut(tmp_path):
    alias = "alias.loud=!head -c 10000000 /dev/zero | tr '\\0' x >&2; exit 1"
    with pytest.raises(GitError) as caught:
        git("-c", alias, "loud", cwd=tmp_path)

    assert len(caught.value.errors) <= 64 << 10
    assert len(str(caught.value)) <= 2000


def test_a_directory_that_is_not_there_is_said(tmp_path):
    with pytest.raises(GitError, match="there is no directory"):
        git("version", cwd=tmp_path / "none")


def test_only_the_last_line_feed_is_taken_off():
    assert line(b"a\n\n") == "a\n"
    assert line(io.BytesIO(b"a\xff").getvalue()) == "a\udcff"
