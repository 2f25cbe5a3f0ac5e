"""The state directory: private, made once whoever comes first, cheap afterwards."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from django.db import OperationalError, connection
from django.db.migrations.recorder import MigrationRecorder

from runs import home, installation
from runs.refusal import Refusal
from tests.accounts import acting_as, needs_root, open_directory

ROOT = Path(__file__).parents[2]
PREPARE = """
import os, sys
os.environ["DJANGO_SETTINGS_MODULE"] = "sanduk_site.settings"
import django; django.setup()
from runs.home import prepare
from runs.installation import install_id
from runs.models import Run
prepare()
print(install_id(), Run.objects.count())
"""


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def start(state: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PREPARE],
        cwd=ROOT,
        env={**os.environ, "SANDUK_HOME": str(state)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def migrations(monkeypatch: pytest.MonkeyPatch, db: None) -> list[str]:
    """Counts migrations, without doing them to the tests' own database."""
    done: list[str] = []
    monkeypatch.setattr("django.core.management.call_command", lambda name, **_: done.append(name))
    return done


def test_of_many_first_commands_each_finds_one_database_and_one_id(state: Path):
    processes = [start(state) for _ in range(4)]
    said = [process.communicate(timeout=60) for process in processes]

    assert [process.returncode for process in processes] == [0] * 4, said
    assert len({out for out, _ in said}) == 1
    assert said[0][0].split()[1] == "0"


def test_everything_in_it_is_closed_to_others(state: Path):
    """C-15: database 0644, directories 0755."""
    process = start(state)
    assert process.communicate(timeout=60)[1] == ""

    assert mode(state) == 0o700
    for name in ("secret_key", "install-id"):
        assert mode(state / name) == 0o600


@pytest.mark.parametrize("reason", ["Read-only file system", "No space left on device"])
def test_a_disk_that_takes_nothing_is_named_with_the_directory_and_the_reason(
    state: Path, monkeypatch: pytest.MonkeyPatch, settings, reason: str
):
    def no_file(**_):
        raise OSError(28, reason)

    database = {"ENGINE": "django.db.backends.sqlite3", "NAME": str(state / "sanduk.sqlite3")}
    monkeypatch.setitem(settings.DATABASES, "default", database)
    monkeypatch.setattr(home.tempfile, "TemporaryFile", no_file)

    told = home.why_unusable(OperationalError("unable to open database file"))

    assert told == f"nothing can be written in {state}, where the database is: {reason}"


def test_a_database_that_is_broken_on_a_good_disk_is_named_as_a_file(
    state: Path, monkeypatch: pytest.MonkeyPatch, settings
):
    state.mkdir()
    database = {"ENGINE": "django.db.backends.sqlite3", "NAME": str(state / "sanduk.sqlite3")}
    monkeypatch.setitem(settings.DATABASES, "default", database)

    told = home.why_unusable(OperationalError("file is not a database"))

    assert told == f"the database {state}/sanduk.sqlite3 cannot be used: file is not a database"
    assert list(state.iterdir()) == []


def test_an_id_that_cannot_be_written_is_not_called_unreadable(state: Path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(installation, "write_once", full)

    with pytest.raises(Refusal, match="/install-id cannot be written: No space left on device"):
        installation.install_id()


def test_the_second_time_nothing_is_migrated(state: Path, migrations: list[str]):
    home.prepare()
    home.prepare()

    assert migrations == ["migrate"]


def test_a_new_migration_or_another_database_is_noticed(
    state: Path, migrations: list[str], monkeypatch: pytest.MonkeyPatch
):
    home.prepare()
    monkeypatch.setattr(home, "schema_digest", lambda: "another")
    home.prepare()

    assert migrations == ["migrate", "migrate"]


def test_a_database_of_a_newer_sanduk_is_named_and_not_used(state: Path, migrations: list[str]):
    MigrationRecorder(connection).record_applied("runs", "9999_of_tomorrow")

    with pytest.raises(Refusal, match="brought on by a newer sanduk \\(it has runs/9999_of_tom"):
        home.prepare()
    assert migrations == []
    assert not (state / "schema").exists()


def test_a_key_that_is_there_stays(state: Path, migrations: list[str]):
    home.prepare()
    key = (state / "secret_key").read_text()
    home.prepare()

    assert (state / "secret_key").read_text() == key
    assert len(key) > 40


def test_a_directory_of_ours_that_stands_open_is_closed(state: Path, migrations: list[str]):
    state.mkdir(mode=0o755)
    state.chmod(0o755)

    home.prepare()

    assert mode(state) == 0o700


@pytest.mark.parametrize("kind", ["a file", "below a file", "a dangling link"])
def test_a_directory_that_cannot_be_made_is_one_line(state: Path, settings, kind):
    if kind == "a dangling link":
        state.symlink_to("/nonexistent/place")
    else:
        state.touch()
    if kind == "below a file":
        settings.SANDUK_HOME = state / "below"

    with pytest.raises(Refusal, match=r"SANDUK_HOME .* cannot be used") as refusal:
        home.prepare()
    assert "\n" not in str(refusal.value)


@needs_root
def test_a_directory_that_cannot_be_written_is_one_line(settings):
    with open_directory() as place:
        place.chmod(0o755)
        (place / "state").mkdir(mode=0o755)
        settings.SANDUK_HOME = place / "state"
        with acting_as(), pytest.raises(Refusal, match=r"cannot be used: Permission denied"):
            home.prepare()


def test_a_broken_database_is_one_line(state: Path):
    state.mkdir()
    (state / "sanduk.sqlite3").write_bytes(b"this is no database, whatever it is called" * 50)
    process = start(state)
    _, said = process.communicate(timeout=60)

    assert process.returncode == 1
    assert said.splitlines()[-1].endswith("cannot be used: file is not a database")


def test_the_id_of_an_installation_is_made_once(state: Path):
    """L-6: records once could be caught half-written."""
    installation.prepare_home()
    with ThreadPoolExecutor(8) as pool:
        ids = set(pool.map(lambda _: installation.install_id(), range(40)))

    assert len(ids) == 1
    assert len(ids.pop()) == 16
    assert sorted(p.name for p in state.iterdir()) == ["install-id"], "no draft stays"


@pytest.mark.parametrize("content", ["", "   \n", "a b", "../../x", "0123456789abcdef0", "\xff"])
def test_a_spoiled_id_is_refused_because_an_empty_label_matches_every_container(state, content):
    installation.prepare_home()
    (state / "install-id").write_text(content, encoding="latin-1")

    with pytest.raises(Refusal, match=r"/install-id (does not hold|cannot be read)") as refusal:
        installation.install_id()
    assert "\n" not in str(refusal.value)


def test_an_id_that_is_a_directory_is_one_line(state: Path):
    installation.prepare_home()
    (state / "install-id").mkdir()

    with pytest.raises(Refusal, match=r"/install-id cannot be read: Is a directory"):
        installation.install_id()


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda key: key.touch(), "is empty; remove it"),
        (lambda key: key.mkdir(), "cannot be read: Is a directory"),
    ],
    ids=["empty", "a directory"],
)
def test_a_spoiled_secret_key_is_named(state: Path, spoil, said: str):
    state.mkdir()
    spoil(state / "secret_key")
    process = start(state)
    _, error = process.communicate(timeout=60)

    assert process.returncode == 1
    assert f"secret_key {said}" in error.splitlines()[-1]


def test_writing_once_leaves_what_is_there(tmp_path: Path):
    installation.write_once(tmp_path / "f", "first")
    installation.write_once(tmp_path / "f", "second")

    assert (tmp_path / "f").read_text() == "first"
    assert mode(tmp_path / "f") == 0o600
    assert len(list(tmp_path.iterdir())) == 1


def test_a_full_disk_is_refused_before_the_run(state: Path, settings):
    installation.prepare_home()
    installation.require_room()
    settings.SANDUK_MIN_FREE_MB = 2**40

    with pytest.raises(Refusal, match=r"only .* MB are free in .*SANDUK_MIN_FREE_MB"):
        installation.require_room()
