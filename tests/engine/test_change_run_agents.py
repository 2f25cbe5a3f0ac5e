"""Real agents on the rehearsal model change a real repository through the command."""

from __future__ import annotations

import json

import pytest

from tests.changes.making import person_git, repository
from tests.engine.running import build_missing

pytestmark = pytest.mark.engine


@pytest.mark.parametrize("agent", ["claude", "codex", "gemini", "pi"])
def test_a_real_agent_changes_a_repository_and_its_change_is_accepted(docker_ready, docker, agent):
    build_missing(agent)
    path = repository(docker.ground / "project")
    own = docker.ground / "user" / ".gitconfig"
    own.write_text("[user]\nname = Anna\nemail = anna@example.org\n")
    task = "rehearsal: command sed -i s/hello/goodbye/ README.md"

    done = docker.sanduk(
        "change", "run", "--repo", str(path), "--agent", agent, "--provider", "rehearsal",
        "--runtime", "docker", "--json", "--task", task, limit_s=200,
    )  # fmt: skip

    assert done.code == 0, done
    made = json.loads(done.out)
    accepted = docker.sanduk("change", "accept", made["id"], "--json")
    assert accepted.code == 0, accepted
    branch = f"sanduk/{made['id']}"
    assert person_git(path, "show", f"{branch}:README.md") == b"goodbye\n"
    log = person_git(path, "log", "-1", "--format=%an%n%B", branch).decode()
    assert log.startswith(f"{agent}\n")
    assert f"Sanduk-Agent: {agent}" in log
    person_git(path, "fsck", "--strict")
    assert docker.row["outcome"] == "succeeded"
    docker.nothing_left()
