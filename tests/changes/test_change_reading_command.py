"""`change list`, `show`, `diff`, `status` and `stats`, as people and scripts read them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from changes.management.actions import ACTIONS, found
from changes.models import Batch, Change, RiskFlag, TestRun
from tests.changes.commanding import Terminal
from tests.changes.rows import Project, make_change, make_repository, reviewed, run_git
from tests.factories import make_run

pytestmark = pytest.mark.django_db
HOSTILE = "\x1b[2Jgone‮txt"
SHOWN = "\\x1b[2Jgone\\u202etxt"


def test_every_action_has_a_help_with_examples_of_its_own(sanduk: Terminal):
    for name in ACTIONS:
        said = sanduk(name, "--help")

        assert said.code == 0
        assert said.out.startswith(f"usage: sanduk change {name} "), name
        assert f"examples:\n  sanduk change {name}" in said.out
        assert found(name).examples


def test_an_action_there_is_not_and_none_at_all_are_refused_with_those_there_are(sanduk):
    for words in (("frobnicate",), ()):
        said = sanduk(*words)

        assert (said.code, said.out) == (2, "")
        assert "ACTION" in said.err
    assert "'show'" in sanduk("frobnicate").err
    assert sanduk("--help").out.startswith("usage: sanduk change [-h] ACTION")


def test_without_changes_the_list_says_how_one_is_made(sanduk):
    said = sanduk("list")

    assert (said.code, said.out) == (0, "")
    assert "sanduk change run --repo PATH" in said.err
    assert sanduk("list", "--json").data == []


def test_the_list_shows_what_waits_with_its_flags_and_size(sanduk, project: Project):
    change = project.change({".github/workflows/x.yml": "on: push\n"}, task="add a check")
    make_change(task="another", agent="pi")

    said = sanduk("list", "--waiting")

    assert said.out.splitlines()[0].split()[:4] == ["CHANGE", "CREATED", "STATE", "FLAGS"]
    assert len(said.out.splitlines()) == 2
    assert change.uid in said.out
    assert "add a check" in said.out
    assert "+1 -0" in said.out
    [row] = sanduk("list", "--waiting", "--json").data
    assert row["id"] == change.uid
    assert row["answer"] == "flagged"
    assert sum(row["flags"].values()) == change.attempt.flags.count() > 0
    assert len(sanduk("list", "--json").data) == 2


def test_the_list_is_narrowed_by_repository_state_batch_and_age(sanduk, project: Project):
    one = project.change(batch="b" * 12)
    Batch.objects.create(uid="b" * 12, repository=project.repository)
    make_change()

    for words in (
        ("--repo", str(project.path)), ("--repo", project.repository.uid), ("--state", "review"),
        ("--batch", "b" * 12), ("--batch", "bb"),
    ):  # fmt: skip
        assert [each["id"] for each in sanduk("list", "--json", *words).data] == [one.uid]
    assert len(sanduk("list", "--json", "--since", "1h").data) == 2
    assert sanduk("list", "--since", "soon").code == 2
    assert "there is no batch 'cc'" in sanduk("list", "--batch", "cc").err
    assert sanduk("list", "--waiting", "--state", "failed").code == 2
    said = sanduk("list", "--repo", str(project.path.parent / "elsewhere"))
    assert said.code == 2
    assert "no change was ever asked for on" in said.err


def test_a_repository_is_meant_by_any_directory_in_it(sanduk, project: Project):
    change = project.change()
    (project.path / "sub").mkdir()

    assert sanduk("list", "--json", "--repo", str(project.path / "sub")).data[0]["id"] == change.uid


def test_the_list_asks_the_database_as_often_for_many_as_for_one(
    sanduk, project: Project, django_assert_max_num_queries
):
    for number in range(6):
        project.change({f"{number}.py": "x\n"})

    with django_assert_max_num_queries(2):
        sanduk("list")


def test_the_beginning_of_an_id_is_enough_where_it_is_one_change(sanduk):
    one = make_change(uid="abc123000000")
    make_change(uid="abd000000000")

    assert sanduk("show", "ABC", "--json").data["id"] == one.uid
    said = sanduk("show", "ab")
    assert said.code == 2
    assert "'ab' begins the ids of several changes (" in said.err
    assert "abc123000000" in said.err
    for word in ("zz", "", "abc1230000000", HOSTILE, "%"):
        said = sanduk("show", word)
        assert said.code == 2
        assert "there is no change" in said.err
        assert "\x1b" not in said.err
    run = make_run()
    assert f"it is a run: sanduk show {run.uid}" in sanduk("show", run.uid).err


def test_what_is_shown_begins_with_what_to_look_at(sanduk, project: Project):
    change = project.change({".github/workflows/x.yml": "on: push\n", "a.py": "y\n"}, task="do it")

    said = sanduk("show", change.uid)

    parts = [line for line in said.out.splitlines() if line and not line.startswith(" ")]
    assert parts[:5] == [
        f"change {change.uid}", "flags", "conflicts", "tests", "files: 2 changed, +2 -0"
    ]  # fmt: skip
    assert "! " in said.out.partition("\nflags\n")[2].partition("\n\n")[0]
    assert ".github/workflows/x.yml" in said.out
    assert "tests\n  not run" in said.out
    assert f"accept {change.uid} --expect {change.attempt.digest[:12]}" in said.out
    assert "b/a.py" not in said.out
    assert "+++ b/a.py" in sanduk("show", change.uid, "--patch").out


def test_a_clear_change_says_so_and_how_much_was_looked_at(sanduk, project: Project):
    change = project.change({"a.py": "y\n"})

    assert "flags\n  clear; 1 added line was looked at" in sanduk("show", change.uid).out
    assert sanduk("show", change.uid, "--json").data["answer"] == "clear"


def test_what_could_not_be_checked_is_not_clear(sanduk, project: Project, monkeypatch):
    monkeypatch.setattr("runs.secret_scan.held_secrets", lambda: ({}, [_problem()]))
    change = project.change({"a.py": "y\n"})

    said = sanduk("show", change.uid)

    assert "no flag, but not all could be checked" in said.out
    assert "? could not check: " in said.out
    assert sanduk("show", change.uid, "--json").data["answer"] == "could not check"


def _problem():
    from runs import secret_scan

    return secret_scan.Finding(kind="unread", name="the keys of this host")


def test_nothing_an_agent_wrote_reaches_the_terminal_as_it_is(sanduk, project: Project):
    change = project.change({f"{HOSTILE}.py": f"{HOSTILE}\n"}, task=HOSTILE, agent=HOSTILE[:3])
    attempt = change.attempt
    RiskFlag.objects.create(attempt=attempt, category="x", severity="low", reason=HOSTILE)
    row = TestRun.objects.create(attempt=attempt, digest=attempt.digest, command=HOSTILE)
    TestRun.objects.finish(row.pk, "failed", exit_code=1, output=f"{HOSTILE}\n", reason=HOSTILE)

    for words in (("show", change.uid), ("show", change.uid, "--patch"), ("list",), ("status",)):
        said = sanduk(*words)
        assert said.code == 0
        assert "\x1b" not in said.out + said.err, words
        assert "‮" not in said.out + said.err, words
    assert SHOWN in said.out or "\\x1b" in said.out


def test_the_last_tests_are_shown_with_the_end_of_their_output(sanduk, project: Project):
    change = project.change()
    attempt = change.attempt
    row = TestRun.objects.create(attempt=attempt, digest=attempt.digest, command="make test")
    output = "".join(f"line {number}\n" for number in range(100))
    TestRun.objects.finish(row.pk, "failed", exit_code=3, output=output, output_bytes=99_999)

    said = sanduk("show", change.uid)

    assert "failed, exit code 3: make test" in said.out
    assert "(the end of 99,999 bytes)" in said.out
    assert "| line 99" in said.out
    assert "| line 10\n" not in said.out
    [run] = sanduk("show", change.uid, "--json").data["tests"]
    assert (run["outcome"], run["exit_code"]) == ("failed", 3)


def test_conflicts_with_others_that_wait_and_with_the_branch_are_named(sanduk, project: Project):
    one = project.change({"README.md": "one\n"}, task="first")
    other = project.change({"README.md": "two\n"}, task="second")
    (project.path / "README.md").write_text("three\n")
    run_git(project.path, "commit", "-q", "-a", "-m", "moved on")

    said = sanduk("show", one.uid)

    assert "! with what is checked out as it is now: README.md" in said.out
    assert f"! with change {other.uid} (second): README.md" in said.out
    told = sanduk("show", one.uid, "--json").data["conflicts"]
    assert told == {
        "head": ["README.md"], "changes": [{"change": other.uid, "paths": ["README.md"]}],
        "could_not_check": [],
    }  # fmt: skip


def test_a_repository_that_is_gone_leaves_the_rest_readable(sanduk, project: Project):
    change = project.change({"a.py": "y\n"})
    project.path.rename(project.path.parent / "moved")

    said = sanduk("show", change.uid)

    assert said.code == 0
    assert "? could not check with what is checked out as it is now" in said.out
    assert "a.py" in said.out
    assert sanduk("list", "--repo", str(project.path)).out.count(change.uid) == 1


def test_the_patch_in_a_pipe_is_taken_by_git_as_it_is(sanduk, project: Project, tmp_path: Path):
    change = project.change({"latin.txt": b"caf\xe9\r\n", "data": bytes(range(256))})
    patch = tmp_path / "patch"
    with patch.open("wb") as file:
        _diff_into(file, change.uid)

    done = subprocess.run(
        ["git", "apply", "--check", str(patch)], cwd=project.path, capture_output=True, check=False
    )

    assert done.returncode == 0, done.stderr
    assert b"+caf\xe9\r\n" in patch.read_bytes()


def _diff_into(file, uid: str) -> None:
    import sys

    from changes.management.actions.reading import Diff

    class Out:
        buffer = file
        flush = staticmethod(lambda: None)
        isatty = staticmethod(lambda: False)

    kept, sys.stdout = sys.stdout, Out()
    try:
        code = Diff().act(
            change=uid, attempt=None, against=None, commit=None, files=False, json=False, path=[]
        )
    finally:
        sys.stdout = kept
    assert code == 0


def test_on_a_terminal_the_patch_is_coloured_and_hidden_characters_are_visible(
    sanduk, project: Project, monkeypatch
):
    change = project.change({"a.py": f"{HOSTILE}\n", "README.md": "bye\n"})
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)

    said = sanduk("diff", change.uid)

    assert f"\x1b[32m+{SHOWN}\x1b[m" in said.out
    assert "\x1b[31m-hello\x1b[m" in said.out
    assert "\x1b[1m+++ b/a.py\x1b[m" in said.out
    assert HOSTILE not in said.out


def test_the_paths_of_a_change_are_listed_and_chosen(sanduk, project: Project):
    change = project.change({"a.py": "y\n", "lib/b.py": "z\n"})

    assert sanduk("diff", change.uid, "--files").out.splitlines() == [
        "added     a.py  +1 -0", "added     lib/b.py  +1 -0"
    ]  # fmt: skip
    only = sanduk("diff", change.uid, "--path", "lib/b.py").out
    assert "b/lib/b.py" in only
    assert "a.py b/a.py" not in only
    [row] = sanduk("diff", change.uid, "--json", "--path", "a.py").data
    assert (row["path"], row["kind"], row["added_lines"]) == ("a.py", "added", 1)
    for words in (("--path", "c.py"), ("--files", "--path", "c.py"), ("--json", "--path", "c.py")):
        said = sanduk("diff", change.uid, *words)
        assert (said.code, said.out) == (2, "")
        assert "nothing that changed is called c.py" in said.err


def test_an_earlier_attempt_can_be_read(sanduk, project: Project):
    change = project.change({"a.py": "one\n"})
    assert Change.objects.claim(change.pk, "host:1:here", 30.0, revision=True)
    project.attempt(change, {"a.py": "two\n"})

    assert "+two" in sanduk("diff", change.uid).out
    assert "+one" in sanduk("diff", change.uid, "--attempt", "1").out
    assert (
        "attempt 1, which is not the one in review"
        in sanduk("show", change.uid, "--attempt", "1").out
    )
    said = sanduk("diff", change.uid, "--attempt", "9")
    assert (said.code, said.out) == (2, "")
    assert "has no attempt 9; it has 2" in said.err


def test_a_change_with_nothing_to_read_says_what_it_is(sanduk):
    change = make_change(make_repository())

    assert "is queued: there is no patch" in sanduk("diff", change.uid).err
    assert sanduk("show", change.uid, "--patch").code == 2
    assert "state      queued" in sanduk("show", change.uid).out
    assert sanduk("show", change.uid, "--json").data["attempt"] is None


def test_status_tells_what_goes_on_and_what_waits(sanduk, project: Project):
    waits = project.change()
    queued = make_change()
    over = make_change()
    assert Change.objects.drop(over.pk, "no room")

    said = sanduk("status")

    assert {waits.uid, queued.uid} <= set(said.out.split())
    assert over.uid not in said.out
    assert "1 change waits for a person" in said.err
    told = sanduk("status", "--json").data
    assert {each["id"] for each in told["changes"]} == {waits.uid, queued.uid}
    assert (told["skills_proposed"], told["tests_running"]) == (0, 0)


def test_the_figures_count_what_became_of_changes(sanduk):
    for verdict in ("rejected", "review"):
        change = reviewed()
        if verdict == "rejected":
            assert Change.objects.reject(change.pk, change.attempt_id, decided_by="anna")
    said = sanduk("stats")

    assert "changes      2: 1 review, 1 rejected" in said.out
    assert "decided      1, 0% of them accepted" in said.out
    told = sanduk("stats", "--json").data
    assert told["states"]["rejected"] == 1
    assert told["agents"]["scripted"] == {"changes": 2, "accepted": 0, "rejected": 1}
    assert told["review_s"] >= 0
    assert told["attempts"] == 2


def test_what_could_not_be_read_of_the_agents_account_is_told_later_too(sanduk, project: Project):
    change = make_change(project.repository)
    assert Change.objects.claim(change.pk, "host:1:here", 30.0)
    unread = [(".sanduk/results.json", "it is no JSON"), (f".sanduk/skills/{HOSTILE}", "no head")]
    project.attempt(change, {"a.py": "y\n"}, unread=unread)

    said = sanduk("show", change.uid)

    assert "refused: .sanduk/results.json: it is no JSON" in said.out
    assert "no head" in said.out
    assert HOSTILE not in said.out
    assert sanduk("show", change.uid, "--json").data["refused"][0] == {
        "path": ".sanduk/results.json", "reason": "it is no JSON",
    }  # fmt: skip
