"""`sanduk destroy`: what this installation made goes, others' things stay, records need a word."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.engine.running import DONE, READY, Installation

pytestmark = pytest.mark.engine


def own_image(made: Installation) -> str:
    """A recipe that nobody else has, built and used once; its tag."""
    file = made.ground / "scripted-own.json"
    recipe = {
        "name": file.stem,
        "description": f"Made for one test in {made.ground.name}",
        "agent": "scripted-offline",
        "from": "docker.io/library/debian:trixie-slim",
        "user": "agent",
        "home": "/home/agent",
        "env": {"ONLY_HERE": made.ground.name},
        "sections": [],
        "entrypoint": ["sh"],
    }
    file.write_text(json.dumps(recipe))
    words = ("run", "-q", "--runtime", made.engine, "-w", str(made.work), "-r", str(file))
    done = made.sanduk(*words, "--provider", "rehearsal", "--no-report-instruction", "--keep", DONE)
    assert done.code == 0, done
    return str(made.row["image"])


def is_there(made: Installation, tag: str) -> bool:
    listed = made.engine_says("image", "ls", "--format", "{{.Repository}}:{{.Tag}}").split()
    return any(each.endswith(f"/{tag}") or each == tag for each in listed)


def test_containers_and_images_go_and_records_stay_without_the_word(installation: Installation):
    tag = own_image(installation)
    assert is_there(installation, tag)
    assert installation.containers(), "they are kept"

    done = installation.sanduk("destroy", "--runtime", installation.engine, stdin=b"yes\n")

    assert done.code == 0, done
    assert "they stay as they are" in done.err
    assert installation.containers() == []
    assert not is_there(installation, tag)
    assert is_there(installation, "debian:trixie-slim"), "it was there before"
    assert installation.sanduk("show", installation.row["uid"]).code == 0
    assert (installation.work).is_dir()


def test_with_the_word_the_state_goes_and_what_is_not_ours_stays(docker: Installation):
    docker.run(DONE)
    mine: Path = docker.home / "providers.toml"
    mine.write_text("# my own\n")
    done = docker.sanduk("destroy", "--runtime", "docker", stdin=b"destroy\n")

    assert done.code == 0, done
    assert [path.name for path in docker.home.iterdir()] == ["providers.toml"]
    assert "but for what is not sanduk's own: providers.toml" in done.err
    assert docker.work.is_dir()
    mine.unlink()
    assert docker.sanduk("destroy", "--runtime", "docker", stdin=b"destroy\n").code == 0
    assert not docker.home.exists()


def test_a_live_run_is_not_taken_away_under_its_agent(docker: Installation):
    going = docker.begin(f"{READY}; sleep 60")
    done = docker.sanduk("destroy", "--runtime", "docker", stdin=b"destroy\n")

    assert done.code == 2
    assert "1 live run(s)" in done.err
    assert docker.row["state"] == "running"
    assert len(docker.containers()) == 2
    docker.sanduk("stop", docker.row["uid"])
    going.end()


def test_when_the_engine_cannot_be_asked_the_records_stay(docker: Installation):
    docker.run(DONE)
    done = docker.sanduk(
        "destroy", stdin=b"destroy\n", DOCKER_HOST=f"unix://{docker.ground}/nobody.sock"
    )

    assert done.code == 2
    assert "the records stay" in done.err
    assert (docker.home / "sanduk.sqlite3").exists()
