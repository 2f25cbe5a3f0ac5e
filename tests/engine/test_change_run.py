"""Changes made by a real run in a real box: what comes to the gate, and what is left behind."""

from __future__ import annotations

import json
import os

import pytest

from tests.engine.changing import Changing
from tests.engine.running import Installation

pytestmark = pytest.mark.engine


@pytest.fixture
def changing(docker: Installation) -> Changing:
    return Changing(docker)


def test_what_an_agent_writes_comes_to_the_gate_and_lands_when_accepted(installation: Installation):
    changing = Changing(installation)
    account = '{"summary": "said hello", "files_changed": ["new.txt", "REPORT.md"]}'
    script = (
        "echo hello > new.txt; echo a report > REPORT.md; mkdir -p .sanduk/artifacts; "
        f"echo '{account}' > .sanduk/results.json; echo log > .sanduk/artifacts/a.log"
    )
    made = changing.make(script)

    assert (made["state"], made["files"], made["attempt"]) == ("review", 2, 1), made
    assert changing.made.row["engine"] == installation.engine
    assert made["results"]["summary"] == "said hello"
    assert [each["name"] for each in changing.rows("changes_artifact")] == ["a.log"]
    assert changing.host() == changing.before
    assert changing.clones() == []
    changing.made.nothing_left()

    landed = changing.do("accept", made["uid"], "it is fine")
    assert landed["state"] == "accepted", landed
    branch = f"sanduk/{made['uid']}"
    assert changing.git("rev-parse", branch) == landed["commit"]
    assert changing.git("show", f"{branch}:new.txt") == "hello"
    changing.git("fsck", "--strict")


def test_the_box_holds_the_base_and_nothing_else_of_the_repository(changing):
    changing.git("remote", "add", "origin", "https://example.org/x.git")
    (changing.path / "untracked").write_text("x")
    script = (
        "cat .git/HEAD > seen; grep -c remote .git/config >> seen; ls -A >> seen; id -u >> seen; "
        "find .git/refs .git/hooks -type f >> seen; ls -A .git/info >> seen"
    )
    made = changing.make(script)

    changing.do("accept", made["uid"], "")
    branch = f"sanduk/{made['uid']}"
    account = str(os.geteuid() or 1000)  # a normal user's files are theirs in the box, too
    assert changing.git("show", f"{branch}:seen").split("\n") == [
        f"ref: refs/heads/{branch}", "0", ".git", "README.md", "seen", "src", account,
        f".git/refs/heads/{branch}", "attributes",
    ]  # fmt: skip


def test_a_tracked_report_is_a_file_like_any_other(docker):
    changing = Changing(docker, {"REPORT.md": b"kept\n"})

    made = changing.make("cat REPORT.md > copy; ls > listed")

    assert (made["state"], made["files"]) == ("review", 2), made


@pytest.mark.parametrize(
    ("script", "state", "said"),
    [
        ("true", "unchanged", "nothing is different"),
        ("echo x > x; exit 3", "failed", "without saying how it ended"),
        ('echo x > x; echo \'{"type": "result", "error": "no"}\'; exit', "failed", "no"),
    ],
)
def test_what_leaves_nothing_to_look_at_says_why(changing, script, state, said):
    made = changing.make(script)

    assert made["state"] == state, made
    assert said in made["reason"] or state == "failed", made
    assert changing.clones() == []
    assert changing.host() == changing.before


def test_a_revision_starts_from_the_work_before_and_a_failed_one_takes_nothing_away(changing):
    first = changing.make("echo one > one")
    failed = changing.do("revise", first["uid"], "echo two > two; exit 1")

    assert (failed["state"], failed["attempt"], failed["digest"]) == ("review", 1, first["digest"])
    assert "run" in failed["reason"]
    end = '; echo \'{"type": "result", "ok": true}\'; exit'
    revised = changing.do("revise", first["uid"], f"cat one > two{end}")
    assert (revised["state"], revised["attempt"], revised["files"]) == ("review", 2, 2), revised
    same = changing.do("revise", first["uid"], f"true{end}")
    assert (same["state"], same["attempt"]) == ("review", 2)
    assert same["reason"] == "the revision changed nothing"
    attempts = changing.rows("changes_attempt")
    assert [each["number"] for each in attempts] == [1, 2]
    assert changing.clones() == []


def test_a_skill_is_given_to_later_runs_once_it_was_approved(changing):
    text = "---\\nname: house-style\\ndescription: how\\n---\\nSay hello.\\n"
    look = "cat ~/.agents/skills/*/SKILL.md > seen; touch ~/.agents/mine; ls -A >> seen; true"
    first = changing.make(
        "mkdir -p .sanduk/skills; echo a > .sanduk/skills/b.md; echo '[' > .sanduk/results.json; "
        f"printf '%b' '{text}' > .sanduk/skills/a.md; {look}"
    )
    assert first["files"] == 1, first
    refused = json.loads(changing.rows("changes_attempt")[0]["refused"])
    assert [each["path"] for each in refused] == [".sanduk/results.json", ".sanduk/skills/b.md"]
    before = changing.make(look)
    assert changing.do("approve-skills")["approved"] == ["house-style"]
    after = changing.make(look)

    for made in (before, after):
        changing.do("accept", made["uid"], "")
    seen = [changing.git("show", f"sanduk/{made['uid']}:seen") for made in (before, after)]
    assert seen == [
        ".git\nREADME.md\nseen\nsrc",
        "---\nname: house-style\ndescription: how\n---\nSay hello.\n.git\nREADME.md\nseen\nsrc",
    ]
    task = changing.made.row["task"]
    assert "~/.agents/skills/NAME/SKILL.md; read the ones that fit the task: house-style." in task


def test_an_unknown_agent_makes_no_row_and_no_container(changing):
    process = changing.start("make", str(changing.path), "x", '{"agent": "nobody"}')
    _, err = process.communicate(timeout=60)

    assert process.returncode == 1
    assert b"no agent is called 'nobody'" in err
    assert changing.rows("changes_change") == []
    assert changing.rows("runs_run") == []
