"""A real agent commits in its box, and its commits land one by one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.changes.making import person_git, repository
from tests.engine.running import Installation, build_missing

pytestmark = pytest.mark.engine
AGENT = "pi"
FIRST = (
    "rehearsal: command echo key=1 > one; git add one; git commit -qm 'first step'; "
    "echo two > two; git add two; git commit -qm 'second step'; echo rest > rest"
)
SECOND = "rehearsal: command git add rest; git commit -qm 'third step'"


def said(docker: Installation, *words: str) -> dict[str, Any]:
    done = docker.sanduk("change", *words, "--json", limit_s=200)
    assert done.code == 0, done
    found: dict[str, Any] = json.loads(done.out)
    return found


def commits(docker: Installation, uid: str) -> list[str]:
    told = said(docker, "show", uid)
    return [each["message"] for each in told["attempts"][-1]["commits"]]


def test_the_commits_of_a_real_agent_and_of_its_revision_land(docker_ready, docker):
    build_missing(AGENT)
    path = repository(docker.ground / "project")
    own = docker.ground / "user" / ".gitconfig"
    own.write_text("[user]\nname = Anna\nemail = anna@example.org\n")

    made = said(
        docker, "run", "--repo", str(path), "--agent", AGENT, "--provider", "rehearsal",
        "--runtime", "docker", "--keep-commits", "--task", FIRST,
    )  # fmt: skip
    assert commits(docker, made["id"]) == ["first step", "second step", ""]
    said(docker, "revise", made["id"], "--task", SECOND)
    assert commits(docker, made["id"]) == ["first step", "second step", "third step"]
    said(docker, "accept", made["id"])

    branch = f"sanduk/{made['id']}"
    log = person_git(path, "log", "--reverse", "--format=%s|%an|%cn", f"main..{branch}").decode()
    assert log.splitlines() == [
        f"{step} step|{AGENT}|Anna" for step in ("first", "second", "third")
    ]  # fmt: skip
    assert person_git(path, "show", f"{branch}:rest") == b"rest\n"
    person_git(path, "fsck", "--strict")
    docker.nothing_left()
