"""A backup is made while others write, proves itself, and makes an installation of its own."""

from __future__ import annotations

import datetime as dt
import io
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tarfile
import threading
from pathlib import Path

import msgspec
import pytest

from runs import backup_age, clock, pulse
from runs.refusal import Refusal
from sanduk_site import backup
from sanduk_site.backup_file import Manifest, Writer
from tests.migrated import lay_out
from tests.site.pages import somebody

ROOT = Path(__file__).parents[2]
SCRIPT = """
import django; django.setup()
from runs.home import prepare
prepare()
from assistants.models import Delivery, Destination
from runs import audit, credentials, clock
from django.contrib.sessions.backends.db import SessionStore
from tests.factories import make_assistant, make_wakeup, make_run
from tests.site.pages import make_item
daily = make_assistant("daily", directory="/srv/daily")
place = Destination.objects.create(name="mail", kind="file", config={})
for state in ("waiting", "sending", "failed", "sent"):
    item = make_item(daily, f"said {state}", state="approved", decided_at=clock.now())
    Delivery.objects.create(item=item, destination=place, state=state)
credentials.store("OPENAI_API_KEY", "sk-of-all-of-us-0123456789ab")
session = SessionStore(); session["_auth_user_id"] = "1"; session.create()
print(session.session_key)
for number in range(20):
    audit.record("run.stop", f"run:{number}")
"""


class Home:
    """An installation in a directory of its own, driven as from a shell."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.env = {
            **{name: value for name, value in os.environ.items() if "DATABASE" not in name},
            "SANDUK_HOME": str(home),
            "SANDUK_MIN_FREE_MB": "0",
            "DJANGO_SETTINGS_MODULE": "sanduk_site.settings",
            "PYTHONPATH": str(ROOT),
        }
        for name in ("SANDUK_TEST_HOME", "SANDUK_SECRET_KEY"):
            self.env.pop(name, None)

    def python(self, *words: str, code: int = 0) -> str:
        done = subprocess.run(
            [sys.executable, *words], env=self.env, capture_output=True, text=True,
            timeout=120, check=False, cwd=ROOT,
        )  # fmt: skip
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr, done.stderr
        return done.stdout + done.stderr

    def sanduk(self, *words: str, code: int = 0) -> str:
        return self.python("-m", "sanduk_site", *words, code=code)

    def asked(self, sql: str) -> list[tuple]:
        found = sqlite3.connect(self.home / "sanduk.sqlite3")
        try:
            return found.execute(sql).fetchall()
        finally:
            found.close()


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """An installation with something of everything, and two backups of it."""
    place = tmp_path_factory.mktemp("backup")
    there = Home(place / "home")
    there.home.mkdir(mode=0o700)
    lay_out(there.home)
    session_key = there.python("-c", SCRIPT).strip()
    memory = there.home / "memory" / "1"
    for directory in ("objects/ab", "incoming"):
        (memory / directory).mkdir(parents=True)
    (memory / "objects/ab/cd").write_bytes(b"p" + b"remembered" * 9999)
    (there.home / "repos" / "1.git" / "refs" / "heads").mkdir(parents=True)
    (there.home / "changes" / "cd" / "artifacts").mkdir(parents=True)
    (there.home / "changes" / "cd" / "artifacts" / "1").write_text("a picture")
    (there.home / "runs" / "ab").mkdir(parents=True)
    (there.home / "runs" / "ab" / "output.log").write_text("printed\n")
    (there.home / "runs" / "ab" / "bodies").mkdir()
    (there.home / "runs" / "ab" / "bodies" / "1").write_text("asked of a provider")
    (there.home / "runs" / "ab" / "link").symlink_to("/etc/passwd")
    said = there.sanduk("backup", str(place / "plain.tar.gz"))
    there.sanduk("backup", str(place / "secret.tar.gz"), "--with-credentials")
    return there, place, said, session_key


def names(path: Path) -> set[str]:
    with tarfile.open(path) as tar:
        return set(tar.getnames())


def test_it_holds_what_cannot_be_had_elsewhere_and_says_what_it_leaves_out(made):
    there, place, said, _ = made
    held = names(place / "plain.tar.gz")
    assert {
        *("sanduk.sqlite3", "install-id", "audit-head", "memory/1/objects/ab/cd"),
        *("repos/1.git/refs/heads", "changes/cd/artifacts/1", "runs/ab/output.log"),
    } <= held
    assert not held & {"credentials", "secret_key", "runs/ab/bodies/1", "runs/ab/link"}
    for words in ("/srv/daily", "keys, and who is signed in", "bodies of requests", "read back"):
        assert words in said
    assert there.asked("SELECT count(*) FROM runs_auditevent WHERE action='backup.make'") >= [(2,)]


def test_keys_and_sessions_are_in_it_only_when_asked_for(made):
    there, place, _, session_key = made
    for name, is_in in (("plain", False), ("secret", True)):
        path = place / f"{name}.tar.gz"
        assert path.stat().st_mode & 0o777 == 0o600
        with tarfile.open(path) as tar:
            raw = b"".join(tar.extractfile(each).read() for each in tar if each.isreg())
        assert (session_key.encode() in raw) is is_in
        assert (b"sk-of-all-of-us-0123456789ab" in raw) is is_in
        assert ((there.home / "secret_key").read_bytes() in raw) is is_in


def test_an_installation_comes_out_of_it_with_its_record_and_what_was_under_way_in_doubt(made):
    there, place, *_ = made
    other = Home(place / "other")
    said = other.sanduk("restore", str(place / "plain.tar.gz"))
    assert "3 deliveries may have gone out since" in said
    states = other.asked("SELECT state, count(*) FROM assistants_delivery GROUP BY 1 ORDER BY 1")
    assert states == [("sent", 1), ("unknown", 3)]
    assert "the record stands" in other.sanduk("audit", "verify")
    for name in (
        "install-id",
        "memory/1/objects/ab/cd",
        "changes/cd/artifacts/1",
        "runs/ab/output.log",
    ):
        assert (other.home / name).read_bytes() == (there.home / name).read_bytes()
    for path in (other.home, *other.home.rglob("*")):
        if path.name in ("memory", "repos", "output.log", "cd", "other", "sanduk.sqlite3"):
            assert path.stat().st_mode & 0o077 == 0, path
    assert (other.home / "repos/1.git/refs/heads").is_dir()
    assert not (other.home / "credentials").exists()
    key = (other.home / "secret_key").read_text()
    assert key != (there.home / "secret_key").read_text()
    assert "daily" in other.sanduk("assistant", "list")
    # a second one replaces nothing
    assert "not empty" in other.sanduk("restore", str(place / "plain.tar.gz"), code=2)
    whole = Home(place / "whole")
    whole.sanduk("restore", str(place / "secret.tar.gz"))
    assert (whole.home / "secret_key").read_text() == (there.home / "secret_key").read_text()
    assert "OPENAI_API_KEY" in whole.sanduk("auth", "status")


def test_what_is_written_meanwhile_does_not_tear_it(made):
    there, place, *_ = made
    ends = threading.Event()

    def write() -> None:
        found = sqlite3.connect(there.home / "sanduk.sqlite3", timeout=20)
        found.execute("CREATE TABLE IF NOT EXISTS pairs (a INTEGER, b INTEGER)")
        number = 0
        while not ends.is_set():
            with found:
                found.execute("INSERT INTO pairs VALUES (?, 0)", (number,))
                found.execute("UPDATE pairs SET b = a WHERE a = ?", (number,))
            number += 1
        found.execute("DROP TABLE pairs")
        found.commit()
        found.close()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        told = json.loads(there.sanduk("backup", str(place), "--json").split("\nsanduk:")[0])
    finally:
        ends.set()
        writer.join()
    assert told["audit_trouble"] == ""
    copy = place / "copy.sqlite3"
    with tarfile.open(told["file"]) as tar:
        copy.write_bytes(tar.extractfile("sanduk.sqlite3").read())
    found = sqlite3.connect(copy)
    assert found.execute("SELECT count(*) FROM pairs WHERE a != b").fetchone() == (0,)
    found.close()


def rewritten(source: Path, target: Path, change) -> Path:
    """The backup with its members as `change` returns them."""
    with tarfile.open(source) as tar:
        members = [(each, tar.extractfile(each).read() if each.isreg() else b"") for each in tar]
    with tarfile.open(target, "w:gz") as tar:
        for info, content in change(members):
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return target


def named(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


CHANGES = {
    "content": lambda m: [(i, b"x" + c[1:] if i.name == "install-id" else c) for i, c in m],
    "missing": lambda m: [(i, c) for i, c in m if i.name != "install-id"],
    "no list": lambda m: m[:-1],
    "more": lambda m: [(named("memory/more"), b"x"), *m],
    "behind": lambda m: [*m, (named("memory/more"), b"x")],
    "upwards": lambda m: [(named("memory/../../evil"), b"x"), *m],
    "absolute": lambda m: [(named("/etc/evil"), b"x"), *m],
    "link": lambda m: [(named("memory/l", tarfile.SYMTYPE, "/etc"), b""), *m],
    "hard link": lambda m: [(named("memory/l", tarfile.LNKTYPE, "install-id"), b""), *m],
    "device": lambda m: [(named("memory/l", tarfile.CHRTYPE), b""), *m],
    "foreign": lambda m: [(named("evil.sh"), b"x"), *m],
    "database": lambda m: [(i, c[:4096] if i.name == "sanduk.sqlite3" else c) for i, c in m],
    "other kind": lambda m: [
        (i, c.replace(b"sanduk-backup-1", b"sanduk-backup-2") if i.name == "manifest.json" else c)
        for i, c in m
    ],
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_is_not_as_it_was_written_is_refused(made, tmp_path, change):
    _, place, *_ = made
    path = rewritten(place / "plain.tar.gz", tmp_path / "odd.tar.gz", change)
    with pytest.raises(Refusal, match="no whole backup"):
        backup.verify(path)
    assert [each.name for each in tmp_path.iterdir()] == ["odd.tar.gz"]


@pytest.mark.parametrize("keep", [0, 100, -100, 0.5])
def test_a_cut_file_or_another_one_is_refused_and_leaves_nothing(made, tmp_path, keep):
    _, place, *_ = made
    whole = (place / "plain.tar.gz").read_bytes()
    end = int(len(whole) * keep) if isinstance(keep, float) else keep
    (tmp_path / "cut").write_bytes(whole[:end])
    other = Home(tmp_path / "home")
    assert "no whole backup" in other.sanduk("restore", str(tmp_path / "cut"), code=2)
    assert not other.home.exists()


def test_a_later_version_is_refused_before_anything_is_in_place(made, tmp_path):
    _, place, *_ = made
    with tarfile.open(place / "plain.tar.gz") as tar:
        held = msgspec.json.decode(tar.extractfile("manifest.json").read(), type=Manifest)
        (tmp_path / "later.sqlite3").write_bytes(tar.extractfile("sanduk.sqlite3").read())
    base = sqlite3.connect(tmp_path / "later.sqlite3")
    base.execute("INSERT INTO django_migrations (app, name, applied) VALUES ('runs', '9999_x', '')")
    base.commit()
    base.close()
    with tarfile.open(tmp_path / "later.tar.gz", "w:gz") as tar:
        writer = Writer(tar)
        writer.file(tmp_path / "later.sqlite3", "sanduk.sqlite3")
        held = msgspec.structs.replace(held, files=writer.files, directories=())
        writer.text("manifest.json", msgspec.json.encode(held))
    other = Home(tmp_path / "other")
    assert "later sanduk" in other.sanduk("restore", str(tmp_path / "later.tar.gz"), code=2)
    assert not other.home.exists()


def test_a_broken_record_is_said_and_kept_as_evidence(made, tmp_path):
    there, *_ = made
    shutil.copytree(there.home, tmp_path / "cut", symlinks=True)
    cut = Home(tmp_path / "cut")
    base = sqlite3.connect(cut.home / "sanduk.sqlite3")
    base.execute("DELETE FROM runs_auditevent WHERE number > 10")
    base.commit()
    base.close()
    assert "does not stand" in cut.sanduk("backup", str(tmp_path / "b.tar.gz"))
    told = cut.sanduk("restore", "--dry-run", str(tmp_path / "b.tar.gz"))
    assert "could be restored" in told
    assert "does not stand" in told


def test_nothing_is_replaced_and_no_place_that_is_lost_with_the_rest_is_taken(made):
    there, place, *_ = made
    assert "there already" in there.sanduk("backup", str(place / "plain.tar.gz"), code=2)
    assert "lost with it" in there.sanduk("backup", str(there.home), code=2)
    assert "is no directory" in there.sanduk("backup", str(place / "no" / "x"), code=2)
    assert not [each for each in place.iterdir() if each.name.startswith(".")]


def test_of_postgresql_it_says_what_makes_one(monkeypatch, tmp_path):
    monkeypatch.setattr(backup, "has_database_here", lambda: False)
    with pytest.raises(Refusal, match="pg_dump"):
        backup.make(tmp_path)


@pytest.mark.django_db
def test_an_old_backup_or_none_is_told_of_on_home_and_system(
    client, tmp_path, settings, monkeypatch
):
    settings.SANDUK_HOME, settings.SANDUK_BACKUP_DAYS = tmp_path, 7
    client.force_login(somebody("vera", "viewer"))

    def home() -> str:
        return client.get("/").content.decode()

    (tmp_path / "install-id").write_text("0" * 16)
    assert "backup" not in home()  # it began today
    os.utime(tmp_path / "install-id", (0, 0))
    assert "There is no backup of this installation." in home()
    assert "never" in client.get("/system/").content.decode()
    pulse.stamp(backup_age.NAME)
    assert "backup" not in home()
    at = clock.now() + dt.timedelta(days=8)
    monkeypatch.setattr(clock, "now", lambda: at)
    assert "The last backup is 8 days old." in home()
    assert "needs a look" in client.get("/system/").content.decode()
    settings.SANDUK_BACKUP_DAYS = 0
    assert "backup is" not in home()
