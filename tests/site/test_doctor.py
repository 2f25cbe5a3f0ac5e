"""`sanduk doctor`: what it says of an installation, and what mends it."""

from __future__ import annotations

import datetime as dt
import json
import os
import sqlite3
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.migrated import lay_out
from tests.site.only_scripts import asked

GIT = "git version 2.39.0"


@pytest.fixture
def doctor(tmp_path: Path):
    """doctor(words...): the command where only the given scripts stand for other programs."""
    (tmp_path / "state").mkdir(mode=0o700)
    lay_out(tmp_path / "state")

    def examine(*words: str, scripts: dict[str, str] | None = None, **env: str):
        programs = {"git": f"echo {GIT}", **(scripts or {})}
        given = {"SANDUK_MIN_FREE_MB": "1", **env}
        return asked(tmp_path, "doctor", *words, scripts=programs, env=given)

    return examine


def lines(done: CompletedProcess[str]) -> dict[str, dict[str, str]]:
    return {each["name"]: each for each in json.loads(done.stdout)["checks"]}


def test_without_an_engine_it_is_wrong_and_names_what_helps(doctor):
    done = doctor()

    assert done.returncode == 1
    assert "WRONG  engine docker:" in done.stdout
    assert "no container engine is installed" in done.stdout
    assert "apt-get install" in done.stdout


def test_everything_has_a_line_and_json_says_the_same(doctor):
    done = doctor("--json")

    found = lines(done)
    every = {"python", "database", "home", "disk", "backup", "clock", "worker", "keys", "git"}
    assert every <= set(found)
    assert found["backup"]["fix"] == "sanduk backup DIR"
    assert json.loads(done.stdout)["works"] is False
    assert all(each["fix"] for each in found.values() if each["state"] == "note")
    for name in ("python", "database", "home", "disk", "clock", "git"):
        assert found[name]["state"] == "ok", found[name]


def test_quiet_says_only_what_is_wrong(doctor):
    done = doctor("--quiet")

    assert {line.split()[0] for line in done.stdout.splitlines() if line.strip()[:2] != "->"} == {
        "WRONG"
    }


@pytest.mark.parametrize(
    ("script", "word"),
    [("echo git version 2.20.1", "2.38 or newer"), ("echo git version unreadable", "2.38")],
)
def test_a_git_that_changes_cannot_use_is_wrong(doctor, script: str, word: str):
    found = lines(doctor("--json", scripts={"git": script}))

    assert found["git"]["state"] == "wrong"
    assert word in found["git"]["sentence"]
    assert "install git 2.38" in found["git"]["fix"]


def test_a_key_is_shown_by_its_end_alone(doctor):
    key = "sk-a-long-key-of-somebodys-1234"
    done = doctor("--json", OPENAI_API_KEY=key)

    assert lines(done)["key openai"]["state"] == "ok"
    assert lines(done)["key openai"]["sentence"].endswith("1234 (environment)")
    assert key not in done.stdout + done.stderr


def test_a_key_that_cannot_be_used_is_wrong(doctor):
    done = doctor("--json", OPENAI_API_KEY="two words")

    assert lines(done)["key openai"]["state"] == "wrong"
    assert "two words" not in done.stdout + done.stderr


def test_too_little_room_is_wrong(doctor):
    found = lines(doctor("--json", SANDUK_MIN_FREE_MB="999999999"))

    assert found["disk"]["state"] == "wrong"
    assert "make room" in found["disk"]["fix"]


def test_a_run_of_the_future_shows_that_the_clock_was_set_back(doctor, tmp_path: Path):
    doctor("--json")
    later = dt.datetime.now(dt.UTC) + dt.timedelta(days=2)
    with sqlite3.connect(tmp_path / "state" / "sanduk.sqlite3") as database:
        columns = [row[1:6] for row in database.execute("PRAGMA table_info(runs_run)")]
        values = {
            name: "" if "char" in kind or kind == "text" else 0
            for name, kind, not_null, _, is_key in columns
            if not_null and not is_key
        }
        values |= {"uid": "future", "created_at": later.isoformat(" "), "state": "queued"}
        values |= {name: "{}" for name, kind, *_ in columns if name in ("order", "certificate")}
        names = ", ".join(f'"{name}"' for name in values)
        marks = ", ".join("?" * len(values))
        database.execute("PRAGMA ignore_check_constraints = ON")
        row = f"INSERT INTO runs_run ({names}) VALUES ({marks})"  # noqa: S608 - its own columns
        database.execute(row, [*values.values()])

    found = lines(doctor("--json"))
    assert found["clock"]["state"] == "wrong"


def test_a_home_that_others_can_read_is_closed(doctor, tmp_path: Path):
    doctor()
    (tmp_path / "state").chmod(0o755)

    found = lines(doctor("--json"))
    assert found["home"]["state"] == "ok"
    assert (tmp_path / "state").stat().st_mode & 0o077 == 0


def test_a_misspelt_variable_is_a_note(doctor):
    found = lines(doctor("--json", SANDUK_HOEM="/x"))

    assert found["setting sanduk.W002"]["state"] == "note"
    assert "SANDUK_HOME" in found["setting sanduk.W002"]["fix"]


@pytest.mark.parametrize("flag", ["--agent", "--oci-runtime"])
def test_what_belongs_to_the_boundary_goes_with_it(doctor, flag: str):
    done = doctor(flag, "x")

    assert done.returncode == 2
    assert "goes with --boundary" in done.stderr


def test_without_an_engine_no_boundary_is_tried(doctor):
    done = doctor("--boundary", "--engine", "docker")

    assert done.returncode == 2
    assert "held" not in done.stdout
    assert os.linesep.join(done.stderr.splitlines()[-1:]).startswith("sanduk: ")
