"""Real agents on the rehearsal model change a real repository through the command and the site."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.changes.making import person_git
from tests.engine.changing import ROOT, Changing
from tests.engine.running import build_missing

pytestmark = pytest.mark.engine


def this_project(path: Path) -> Path:
    """This project's own repository, or one of its files where they came without any."""
    if (ROOT / ".git").exists():
        words = ["git", "clone", "-q", "--no-hardlinks", str(ROOT), str(path)]
        subprocess.run(words, check=True, capture_output=True, timeout=120)
    else:
        path.mkdir()
        person_git(path, "init", "-q", "-b", "main")
        person_git(path, f"--work-tree={ROOT}", "add", "--all", ".")
        person_git(path, "commit", "-q", "-m", "as it came")
        person_git(path, "reset", "-q", "--hard")
    return path


@pytest.mark.parametrize("agent", ["claude", "codex", "gemini", "pi"])
def test_a_real_agent_changes_this_project_and_its_change_is_accepted_on_the_site(
    docker_ready, docker, agent
):
    build_missing(agent)
    path = this_project(docker.ground / "project")
    before = person_git(path, "rev-parse", "HEAD").decode().strip()
    task = "rehearsal: command sed -i '1s/.*/# goodbye/' README.md"

    done = docker.sanduk(
        "change", "run", "--repo", str(path), "--agent", agent, "--provider", "rehearsal",
        "--runtime", "docker", "--json", "--task", task, limit_s=200,
    )  # fmt: skip

    assert done.code == 0, done
    made = json.loads(done.out)
    accepted = Changing(docker, there=path).do("accept-on-site", made["id"], "as asked for")
    branch = f"sanduk/{made['id']}"
    assert person_git(path, "rev-parse", f"{branch}^").decode().strip() == before, accepted
    assert person_git(path, "diff", "--stat", before, branch).decode().splitlines()[-1] == (
        " 1 file changed, 1 insertion(+), 1 deletion(-)"
    )
    assert person_git(path, "show", f"{branch}:README.md").startswith(b"# goodbye\n")
    log = person_git(path, "log", "-1", "--format=%an%n%cn%n%B", branch).decode()
    assert log.startswith(f"{agent}\nAnna Person\n")
    assert f"Sanduk-Agent: {agent}" in log
    assert "Sanduk-Approved-By: anna" in log
    assert person_git(path, "status", "--porcelain") == b""
    person_git(path, "fsck", "--strict")
    assert docker.row["outcome"] == "succeeded"
    docker.nothing_left()
