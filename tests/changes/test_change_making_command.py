"""`change run`, `revise`, `batch`, `test` and `gc`, up to where the box begins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from changes import asking, base
from changes.models import Batch, Change
from runs.models import Run
from runs.models.run import EXIT_CODES
from tests.changes.commanding import Terminal
from tests.changes.rows import OWNER, Project, run_git
from tests.factories import make_run

pytestmark = pytest.mark.django_db
PI = ("--agent", "pi", "--provider", "rehearsal")


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch, project: Project) -> list[str]:
    """Every attempt comes back with one file, without a box; the uids, as they were made."""
    uids: list[str] = []

    def make(uid: str, owner: str = "", tell: Any = None) -> Change:
        change = Change.objects.get(uid=uid)
        assert Change.objects.claim(change.pk, OWNER, 30.0)
        project.attempt(change, {"new.py": "x = 1\n"})
        uids.append(uid)
        return Change.objects.select_related("repository", "attempt", "run").get(uid=uid)

    monkeypatch.setattr("changes.making.make", make)
    return uids


def ends_as(monkeypatch: pytest.MonkeyPatch, state: str, reason: str, run: Run | None) -> None:
    def make(uid: str, owner: str = "", tell: Any = None) -> Change:
        change = Change.objects.get(uid=uid)
        Change.objects.filter(pk=change.pk).update(run=run)
        assert Change.objects.claim(change.pk, OWNER, 30.0)
        assert Change.objects.give_up(change.pk, OWNER, state, reason)
        return Change.objects.select_related("repository", "attempt", "run").get(uid=uid)

    monkeypatch.setattr("changes.making.make", make)


def ended_run(outcome: str) -> Run:
    return make_run(state="ended", outcome=outcome, exit_code=EXIT_CODES[outcome])


def test_what_came_back_is_told_with_its_flags_and_what_to_do_next(
    sanduk: Terminal, project: Project, made
):
    said = sanduk("run", "--repo", str(project.path), *PI, "--task", "write new.py")

    assert said.code == 0
    [change] = Change.objects.all()
    assert made == [change.uid]
    assert said.out.splitlines()[0] == (
        f"change {change.uid} is in review: 1 file, +1 -0, digest {change.attempt.digest}"
    )
    assert f"  sanduk change show {change.uid}" in said.out
    assert f"change {change.uid} on project, from {project.base[:12]}" in said.err
    assert (change.task, change.agent, change.requested_as) == ("write new.py", "pi", "anna")


def test_as_json_it_is_one_object_and_quiet_it_is_one_line(sanduk, project: Project, made):
    told = sanduk("run", "--repo", str(project.path), *PI, "--task", "x", "--json").data
    assert (told["state"], told["files"], told["answer"]) == ("review", 1, "clear")

    said = sanduk("run", "--repo", str(project.path), *PI, "--task", "x", "-q")
    assert (len(said.out.splitlines()), said.err) == (1, "")


def test_base_history_and_every_flag_of_a_run_are_kept(sanduk, project: Project, made):
    run_git(project.path, "branch", "old")
    (project.path / "README.md").write_text("later\n")
    run_git(project.path, "commit", "-q", "-a", "-m", "second")

    said = sanduk(
        "run", "--repo", str(project.path), *PI, "--task", "x", "--base", "old", "--history", "2",
        "--budget", "1.5", "--timeout", "1h", "--memory", "1g", "--env", "A=b",
        "--allow-host", "example.org", "--max-calls", "7",
    )  # fmt: skip

    assert said.code == 0, said.err
    [change] = Change.objects.all()
    assert (change.base_ref, change.base_commit, change.history) == ("old", project.base, 2)
    order = change.order
    assert (order["budget_usd"], order["timeout_s"], order["memory"]) == (1.5, 3600, "1g")
    assert (order["env"], order["max_calls"]) == ({"A": "b"}, 7)
    assert order["allow_hosts"] == ["example.org"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--agent", "nobody"), "nobody"),
        (("--agent", "pi", "--provider", "gemini"), "pi"),
        ((*PI, "--base", "nowhere"), "--base nowhere"),
        ((*PI, "--timeout", "soon"), "--timeout takes a duration"),
        ((*PI, "--history", "0"), "it takes a whole number"),
        ((*PI, "--workdir", "x"), "unrecognized arguments"),
        ((*PI, "--budget", "nan"), "it takes US dollars above 0"),
        ((*PI, "--max-budget-usd", "2"), "--max-budget-usd is gone: --budget is"),
        ((*PI, "--browser", "--image", "mine:1"), "--image is used as it is"),
    ],
)
def test_what_cannot_work_is_refused_before_there_is_a_row(sanduk, project, words, said):
    answer = sanduk("run", "--repo", str(project.path), "--task", "x", *words)

    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err
    assert not Change.objects.exists()
    assert not Run.objects.exists()


def test_a_task_is_needed_and_can_come_from_a_file(sanduk, project, made, tmp_path: Path):
    where = ("run", "--repo", str(project.path), *PI)
    file = tmp_path / "task"
    file.write_text("from a file\nwith lines\n")

    assert "give a task: sanduk change run --repo PATH --task" in sanduk(*where).err
    assert sanduk(*where, "--task", "x", "--task-file", str(file)).code == 2
    assert sanduk(*where, "--task-file", str(tmp_path / "none")).code == 2
    assert sanduk(*where, "--task", "").code == 2
    assert not Change.objects.exists()
    assert sanduk(*where, "--task-file", str(file)).code == 0
    assert Change.objects.get().task == "from a file\nwith lines\n"
    assert "--repo" in sanduk("run", "--task", "x").err


@pytest.mark.parametrize(
    ("state", "outcome", "code"),
    [("failed", "timed_out", 124), ("failed", "budget_exhausted", 4), ("failed", "cancelled", 130),
     ("failed", "succeeded", 1), ("unchanged", "succeeded", 0)],
)  # fmt: skip
def test_the_exit_code_is_the_runs_where_it_failed(
    sanduk, project, monkeypatch, state, outcome, code
):
    ends_as(monkeypatch, state, "for this reason", ended_run(outcome))

    said = sanduk("run", "--repo", str(project.path), *PI, "--task", "x")

    assert said.code == code
    assert said.out == f"change {Change.objects.get().uid} {state}: for this reason\n"


def test_one_that_failed_before_its_run_is_1(sanduk, project, monkeypatch):
    ends_as(monkeypatch, "failed", "no room", None)

    assert sanduk("run", "--repo", str(project.path), *PI, "--task", "x").code == 1


@pytest.mark.parametrize("worker", [True, False])
def test_detached_it_is_left_to_a_worker_or_to_a_process_of_its_own(
    sanduk, project, monkeypatch, worker
):
    beside: list[str] = []
    monkeypatch.setattr("changes.handover.give", lambda uid: worker)
    monkeypatch.setattr("changes.handover.beside", beside.append)

    said = sanduk("run", "--repo", str(project.path), *PI, "--task", "x", "--detach")

    uid = Change.objects.get().uid
    assert said.out == f"{uid}\n"
    assert beside == ([] if worker else [uid])


def test_a_dry_run_tells_and_leaves_nothing(sanduk, project: Project):
    (project.path / "notes").write_text("mine")
    said = sanduk("run", "--repo", str(project.path), *PI, "--task", "x", "--dry-run")

    assert said.code == 0
    assert f"repository:  {project.path}\nbase:        {project.base[:12]}, 1 commit\n" in said.out
    assert "left out:    1 untracked path (notes)\n" in said.out
    assert "agent:       pi" in said.out
    assert "workdir" not in said.out
    told = sanduk(
        "run", "--repo", str(project.path), *PI, "--task", "x", "--dry-run", "--json"
    ).data
    assert (told["agent"], told["base"], told["history"]) == ("pi", project.base, 1)
    assert told["left_out"] == ["1 untracked path (notes)"]
    assert not Change.objects.exists()
    assert not base.directory_of("x").parent.exists()


def test_a_flag_goes_before_the_repositorys_rules_and_these_before_the_environment(
    sanduk, project: Project, made, settings
):
    settings.SANDUK_AGENT, settings.SANDUK_PROVIDER = "opencode", "rehearsal"
    settings.SANDUK_DEFAULT_MODE = "key-safe"
    where = ("run", "--repo", str(project.path), "--task", "x")

    def kept() -> tuple[str, str]:
        change = Change.objects.latest("pk")
        return change.agent, change.order["mode"]

    assert sanduk(*where).code == 0
    assert kept() == ("opencode", "key-safe")
    project.rule('agent = "pi"\nprovider = "rehearsal"\nmode = "sealed"\n')
    assert sanduk(*where).code == 0
    assert kept() == ("pi", "sealed")
    assert sanduk(*where, "--agent", "hermes", "--provider", "rehearsal").code == 0
    assert kept() == ("hermes", "sealed")
    # the recipe of a repository says whose it is
    project.rule('recipe = "codex"\n')
    assert sanduk(*where, "--provider", "rehearsal").code == 0
    assert kept()[0] == "codex"
    assert "recipe codex is for agent codex" in sanduk(*where, *PI).err


def test_who_says_that_there_is_a_browser_goes_the_same_way(
    sanduk, project: Project, made, settings
):
    where = ("run", "--repo", str(project.path), "--task", "x", *PI)

    def image(*flags: str) -> str:
        return str(sanduk(*where, *flags, "--dry-run", "--json").data["image"])

    def kept(*flags: str) -> bool | None:
        assert sanduk(*where, *flags).code == 0
        browser: bool | None = Change.objects.latest("pk").order["browser"]
        return browser

    plain, with_one = image(), image("--browser")
    assert plain != with_one
    settings.SANDUK_BROWSER = True
    assert (image(), kept()) == (with_one, None)
    project.rule("browser = false\n")
    assert (image(), kept()) == (plain, False)
    assert (image("--browser"), kept("--browser")) == (with_one, True)
    project.rule("browser = true\n")
    assert (image(), image("--no-browser")) == (with_one, plain)
    # what is used as it is has the one it has
    assert image("--image", "mine:1") == "mine:1"


def test_rules_that_cannot_be_read_start_nothing(sanduk, project: Project):
    project.rule('agnet = "pi"\n')

    said = sanduk("run", "--repo", str(project.path), *PI, "--task", "x")

    assert said.code == 2
    assert "did you mean agent?" in said.err
    assert not Change.objects.exists()


# -- shell ----------------------------------------------------------------------------------------
def test_a_persons_own_session_goes_to_the_same_gate(sanduk, project: Project, monkeypatch):
    def session(uid: str, tell: Any = None) -> Change:
        change = Change.objects.get(uid=uid)
        assert Change.objects.claim(change.pk, OWNER, 30.0)
        project.attempt(change, {"by_hand.txt": "hi\n"})
        return Change.objects.select_related("repository", "attempt", "run").get(uid=uid)

    monkeypatch.setattr("changes.making.session", session)

    said = sanduk("shell", "--repo", str(project.path), "--agent", "pi", "--no-network", "-q")

    [change] = Change.objects.all()
    assert said.code == 0
    assert said.out.startswith(f"change {change.uid} is in review: 1 file")
    assert (change.kind, change.task) == ("shell", "a session at a terminal")
    assert change.order["shell"] in ("tty", "pipe")
    assert (change.order["no_network"], change.order["timeout_s"]) == (True, 12 * 3600)


# -- batch ----------------------------------------------------------------------------------------
def test_the_tasks_of_a_batch_come_from_flags_and_from_a_file(
    sanduk, project, monkeypatch, tmp_path: Path
):
    file = tmp_path / "tasks"
    file.write_text("# what is to be done\n\n  second \nthird\n")
    seen: list[Batch] = []

    def run(batch: Batch, on_end: Any) -> list[Change]:
        seen.append(batch)
        changes = list(Change.objects.filter(batch=batch.uid).order_by("pk"))
        for change in changes:
            assert Change.objects.claim(change.pk, OWNER, 30.0)
            project.attempt(change, {"new.py": f"{change.pk}\n"})
            change.refresh_from_db()
            on_end(change)
        return changes

    monkeypatch.setattr("changes.batch.run", run)
    where = ("batch", "--repo", str(project.path), *PI, "--task", "first")

    said = sanduk(*where, "--tasks-file", str(file), "--max-parallel", "3", "--total-budget", "2")

    assert said.code == 0, said.err
    [batch] = seen
    assert (batch.max_parallel, batch.total_budget_usd) == (3, 2.0)
    tasks = list(Change.objects.order_by("pk").values_list("task", flat=True))
    assert tasks == ["first", "second", "third"]
    assert len(said.out.splitlines()) == 3
    assert "3 tasks, 3 at a time" in said.err
    one, two, three = Change.objects.order_by("pk")
    for first, second in ((one, two), (one, three), (two, three)):
        assert f"{first} conflicts with {second} in new.py: land one of them" in said.err
    listed = sanduk("list", "--batch", batch.uid, "--json").data
    assert {each["batch"] for each in listed} == {batch.uid}
    assert len(sanduk(*where, "--json").data) == 1


def test_a_batch_of_which_one_failed_is_1(sanduk, project, monkeypatch):
    def run(batch: Batch, on_end: Any) -> list[Change]:
        changes = list(Change.objects.filter(batch=batch.uid))
        for change in changes:
            assert Change.objects.drop(change.pk, "no room")
            change.refresh_from_db()
            on_end(change)
        return changes

    monkeypatch.setattr("changes.batch.run", run)

    said = sanduk("batch", "--repo", str(project.path), *PI, "--task", "x", "-q")

    assert (said.code, said.out) == (1, f"change {Change.objects.get().uid} failed: no room\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "there is no task"),
        (("--tasks-file", "/nowhere"), "--tasks-file /nowhere cannot be read"),
        (("--task", "x", "--max-parallel", "0"), "it takes a whole number"),
        (("--task", "x", "--total-budget", "-1"), "--total-budget"),
        (("--task", "x", "--agent", "nobody"), "nobody"),
    ],
)
def test_a_batch_that_cannot_be_meant_leaves_no_row(sanduk, project, words, said):
    answer = sanduk("batch", "--repo", str(project.path), *PI, *words)

    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err
    assert not Change.objects.exists()
    assert not Batch.objects.exists()


def test_a_detached_batch_needs_a_worker(sanduk, project, monkeypatch):
    monkeypatch.setattr("changes.batch.give", lambda batch: False)
    where = ("batch", "--repo", str(project.path), *PI, "--task", "x", "--detach")

    said = sanduk(*where)

    assert said.code == 2
    assert "no worker is up" in said.err
    assert Change.objects.get().state == "failed"
    monkeypatch.setattr("changes.batch.give", lambda batch: True)
    assert sanduk(*where).out == f"{Batch.objects.latest('pk').uid}\n"


def test_asking_is_what_decides_and_not_the_command(sanduk, project, monkeypatch):
    """Everything a page asks for goes the same way."""
    from runs.refusal import Refusal

    def ask(*words: Any, **options: Any) -> Change:
        raise Refusal("not today")

    monkeypatch.setattr(asking, "ask", ask)

    said = sanduk("run", "--repo", str(project.path), *PI, "--task", "x")

    assert (said.code, said.err.splitlines()[-1]) == (2, "sanduk: not today")
