"""The directory a run works in, what else it is lent, and what comes out of it."""

from __future__ import annotations

import json
import os
import stat
import subprocess
from pathlib import Path

import pytest

from tests.engine.running import DONE, WAIT, Installation, installed

pytestmark = pytest.mark.engine
OWN = "what a person wrote\n"


def given(made: Installation, name: str = "work", uid: int = 1000) -> Path:
    """A directory that belongs to the account an agent will have."""
    folder = made.ground / name
    folder.mkdir()
    if os.geteuid() == 0:
        os.chown(folder, uid, uid)
    return folder


# -- the workdir -----------------------------------------------------------------------------------


def test_a_missing_workdir_is_made_for_somebody_who_is_not_root(docker: Installation):
    done = docker.run(f"id -u > who; {DONE}", "--workdir", str(docker.ground / "a" / "b"))
    made = docker.ground / "a" / "b"

    assert (done.code, done.err) == (0, "")
    assert (made / "who").read_text().strip() == str(made.stat().st_uid) != "0"


@pytest.mark.usefixtures("needs_root")
def test_a_workdir_of_roots_is_refused_with_the_command_that_helps(docker: Installation):
    docker.work.mkdir()
    done = docker.run(DONE)
    owner = docker.work.stat().st_uid
    mend = done.line.split("give it away with: ")[1]
    subprocess.run(mend, shell=True, check=True)  # noqa: S602 - the words of the refusal
    again = docker.run(DONE)

    assert done.code == 2
    assert owner == 0  # nothing is chowned silently
    assert again.code == 0
    docker.nothing_left()


@pytest.mark.usefixtures("needs_root")
def test_the_agent_is_the_workdirs_owner(installation: Installation):
    given(installation, uid=4321)
    done = installation.run(f'echo "$(id -u):$(id -g) $(whoami)" > who; {DONE}')

    assert done.code == 0, done
    assert (installation.work / "who").read_text() == "4321:4321 agent\n"
    assert (installation.work / "who").stat().st_uid == 4321
    installation.nothing_left()


def test_a_link_to_a_workdir_is_followed_once_and_named(docker: Installation):
    real = given(docker, "real")
    docker.work.symlink_to(real)
    done = docker.run(f"echo here > file; {DONE}")

    assert done.code == 0, done
    assert (real / "file").read_text() == "here\n"
    assert docker.row["workspace"] == str(real)


@pytest.mark.parametrize("name", ["a file", "nested"])
def test_a_workdir_that_is_none(docker: Installation, name: str):
    (docker.ground / name).write_text("")
    place = docker.ground / name if name == "a file" else docker.ground / name / "below"
    done = docker.run(DONE, "--workdir", str(place))

    assert done.code == 2
    assert name in done.line


def test_the_container_cannot_leave_a_set_uid_root_file(docker: Installation):
    done = docker.run(f"cp /bin/sh sh; chmod 4755 sh; chown 0 sh 2>/dev/null; {DONE}")
    facts = (docker.work / "sh").stat()

    assert done.code == 0
    assert not (facts.st_uid == 0 and facts.st_mode & stat.S_ISUID)


def test_a_state_directory_of_two_hundred_characters(docker: Installation):
    deep = docker.ground / ("h" * 100) / ("o" * 100)
    docker.environment["SANDUK_HOME"] = str(deep)
    done = docker.run(DONE)

    assert len(str(deep)) > 200
    assert (done.code, done.err) == (0, "")
    assert stat.S_IMODE(deep.stat().st_mode) == 0o700
    docker.nothing_left()


# -- the report ------------------------------------------------------------------------------------


def test_a_persons_own_report_survives(docker: Installation):
    """L-7: beside the new one when there is one, in its own place when there is none."""
    work = given(docker)
    (work / "REPORT.md").write_text(OWN)
    without = docker.run(DONE)
    kept = (work / "REPORT.md").read_text()
    with_one = docker.run(f"echo new > REPORT.md; {DONE}")
    (aside,) = work.glob("REPORT.before-*.md")

    assert without.code == with_one.code == 0
    assert kept == OWN
    assert (work / "REPORT.md").read_text() == "new\n"
    assert aside.read_text() == OWN
    assert aside.name in with_one.line
    assert docker.row["report"] == "new\n"


def test_a_directory_called_report_is_moved_aside(docker: Installation):
    """L-7: an agent that made one must not break every later run."""
    first = docker.run(f"mkdir REPORT.md; echo x > REPORT.md/inside; {DONE}")
    state = docker.row["report_state"]
    second = docker.run(f"echo fine > REPORT.md; {DONE}")
    (aside,) = docker.work.glob("REPORT.before-*.md")

    assert first.code == second.code == 0
    assert state == "refused"
    assert "no regular file" in first.line
    assert docker.row["report"] == "fine\n"
    assert (aside / "inside").read_text() == "x\n"


STRANGE = {
    "link": ("ln -s /etc/shadow REPORT.md", "refused"),
    "link-to-itself": ("ln -s REPORT.md REPORT.md", "refused"),
    "link-out": ("ln -s ../../../../../../etc/passwd REPORT.md", "refused"),
    "pipe": ("mkfifo REPORT.md", "refused"),
    "huge": ("echo start > REPORT.md; truncate -s 2G REPORT.md", "cut"),
    "latin": (r"printf 'caf\351 \377\000 end\n' > REPORT.md", "saved"),
    "empty": (": > REPORT.md", "saved"),
}


@pytest.mark.parametrize(("script", "state"), STRANGE.values(), ids=STRANGE)
def test_a_strange_report_ends_as_an_ordinary_run(docker: Installation, script: str, state: str):
    """L-8, 3.12: nothing is followed, nothing is read without a bound."""
    copy = docker.ground / "copy.md"
    done = docker.run(f"{script}; {DONE}", "-o", str(copy))
    row = docker.row

    assert done.code == 0, done
    assert row["outcome"] == "succeeded"
    assert row["report_state"] == state
    assert "root:" not in row["report"]
    assert "\0" not in row["report"]
    if state == "refused":
        assert row["report"] == ""
        assert not copy.exists()
    if state == "cut":
        assert row["report_bytes"] == 2**31
        assert len(copy.read_text()) < 2.2 * 2**20
        assert "[cut here by sanduk" in row["report"][-200:]
    docker.nothing_left()


def test_a_missing_report_is_said_and_is_no_failure(docker: Installation):
    words = [w for w in docker.words(DONE, "-q") if w != "--no-report-instruction"]
    done = docker.sanduk(*words)

    assert done.code == 0
    assert done.line == "sanduk: report: missing"
    assert docker.row["report_state"] == "missing"


# -- mounts ----------------------------------------------------------------------------------------

NAMES = ["plain", "with space", "a,b", "c:d", 'e"f', "g=h", "readonly,dst=x"]


def test_mounts_of_any_name_are_read_only_unless_they_say_rw(installation: Installation):
    """C-7: commas, colons, equals signs and quotes are parts of names."""
    flags: list[str] = []
    lines = []
    for number, name in enumerate(NAMES):
        for kind in ("ro", "rw"):
            folder = given(installation, f"{name} {kind}")
            (folder / "note").write_text(f"{name} {kind}")
            target = f"/data/{number}{kind}"
            flags += ["--mount", f"{folder}:{target}" + (":rw" if kind == "rw" else "")]
            lines.append(f"cat {target}/note; echo; touch {target}/new 2>/dev/null; echo $?")
    done = installation.run("\n".join([*lines, DONE]), *flags)
    log = installation.home / "runs" / installation.row["uid"] / "output.log"
    said = log.read_text().splitlines()[: 4 * len(NAMES)]

    assert (done.code, done.err) == (0, "")
    assert said == [w for name in NAMES for w in (f"{name} ro", "1", f"{name} rw", "0")]
    for name in NAMES:
        assert not (installation.ground / f"{name} ro" / "new").exists()
        assert (installation.ground / f"{name} rw" / "new").exists()
    installation.nothing_left()


@pytest.mark.usefixtures("needs_root")
@pytest.mark.parametrize(("uid", "groups"), [(1000, "1000"), (4242, "4242 0")])
def test_the_group_root_is_given_only_where_the_image_was_built_for_another_uid(
    docker: Installation, uid: int, groups: str
):
    """Its rights count in lent directories too."""
    lent = docker.ground / "lent"
    lent.mkdir()
    (lent / "secret").write_text("of the group root")
    (lent / "secret").chmod(0o640)
    given(docker, uid=uid)
    script = f"id -G > groups; cat /data/secret > read 2>/dev/null; touch $HOME/x && {DONE}"
    done = docker.run(script, "--mount", f"{lent}:/data")

    assert (done.code, done.err) == (0, "")
    assert (docker.work / "groups").read_text().split() == groups.split()
    assert bool((docker.work / "read").read_text()) is (uid != 1000)


@pytest.mark.parametrize(
    "target", ["//work", "/x/../work", "/./work", "/work/in", "/", "/home", "/home/agent/x", "/etc"]
)
def test_a_mount_over_what_is_ours_is_refused(docker: Installation, target: str):
    """C-7: judged after normalising."""
    folder = given(docker, "lent")
    done = docker.run(DONE, "--mount", f"{folder}:{target}:rw")

    assert done.code == 2
    assert done.line.startswith("sanduk: --mount")
    assert not docker.work.exists()


# -- what comes out --------------------------------------------------------------------------------


def test_report_stats_and_json_all_tell_of_the_run(docker: Installation):
    copy, stats = docker.ground / "report.md", docker.ground / "stats.json"
    script = f"""echo hello > REPORT.md
echo '{{"type": "text", "text": "on it"}}'
{DONE}"""
    done = docker.run(script, "-o", str(copy), "--stats-file", str(stats), "--json")
    told, written = json.loads(done.out), json.loads(stats.read_text())

    assert (done.code, done.err) == (0, "")
    assert (copy.read_text(), stat.S_IMODE(copy.stat().st_mode)) == ("hello\n", 0o600)
    assert (written["exit"], written["ok"], written["error"]) == (0, True, None)
    assert written["run"] == told
    assert told["report"]["text"] == "hello\n"
    assert told["final_text"] == "done"
    assert told["outcome"] == "succeeded"


def test_stats_are_written_of_a_run_that_did_not_succeed(docker: Installation):
    """C-10."""
    stats = docker.ground / "stats.json"
    done = docker.run(WAIT, "--timeout", "1s", "--stats-file", str(stats))
    written = json.loads(stats.read_text())

    assert done.code == 124
    assert (written["exit"], written["ok"]) == (124, False)
    assert "--timeout" in written["error"]


@pytest.mark.parametrize("flag", ["-o", "--stats-file"])
def test_a_result_with_nowhere_to_go_is_refused_before_the_run(docker: Installation, flag: str):
    done = docker.run(DONE, flag, str(docker.ground / "nowhere" / "file"))

    assert done.code == 2
    assert "there is no directory" in done.line
    assert not docker.work.exists()


# -- tasks -----------------------------------------------------------------------------------------


def test_a_task_of_one_mebibyte_arrives_whole(installation: Installation):
    """L-17: on standard input; an argument could not carry it."""
    head = f"wc -c < /run/sanduk/stdin; sha256sum < /run/sanduk/stdin; {DONE}\n"
    task = head + "#" * (2**20 - len(head))
    words = installation.words("", "-q", "--task-file", "-")[:-2]
    done = installation.sanduk(*words, stdin=task.encode())
    log = installation.home / "runs" / installation.row["uid"] / "output.log"

    assert done.code == 0, done
    assert log.read_text().splitlines()[0] == str(2**20)
    assert installation.row["task"] == task
    installation.nothing_left()


@pytest.mark.parametrize("task", ["-x", "--help", "--mode open"])
def test_a_task_that_looks_like_a_flag_is_a_task_after_two_dashes(docker: Installation, task: str):
    done = docker.run(task, "--no-network")

    assert done.code == 1  # the shell finds no such command, which is the agent's failure
    assert docker.row["task"] == task


# -- keeping ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["success", "failure", "timeout", "ctrl-c"])
def test_a_kept_container_stays_stopped_until_clean(docker: Installation, how: str):
    """L-4."""
    flags = ("--keep", "--timeout", "2s" if how == "timeout" else "60s")
    if how == "ctrl-c":
        done = docker.begin(WAIT, *flags).signal(2).end()
    else:
        script = {"success": DONE, "failure": "exit 4"}.get(how, WAIT)
        done = docker.sanduk(*docker.words(script, *flags))
    row = docker.row
    kept = docker.containers()  # the link stays with it: podman removes neither alone
    running = docker.engine_says("inspect", "--format", "{{.State.Running}}", *kept)
    listed = json.loads(docker.sanduk("ps", "--json").out)
    docker.sanduk("stop")
    docker.run(DONE)
    docker.nothing_left(kept=2)
    spared = docker.containers()
    cleaned = docker.sanduk("clean")

    assert done.code == {"success": 0, "failure": 1, "timeout": 124, "ctrl-c": 130}[how]
    assert row["kept_container"] in kept
    assert sorted(kept) == sorted(spared)
    assert set(running.split()) == {"false"}
    assert "is kept, stopped; sanduk clean removes it" in done.err
    assert {each["run_state"] for each in listed} == {"kept"}
    assert cleaned.code == 0
    assert docker.rows()[0]["kept_container"] == ""
    docker.nothing_left()


def test_two_installations_on_one_daemon_never_touch_each_other(docker: Installation):
    """L-14: a user's own container of a likely name is spared as well."""
    with installed("docker") as other:
        going = docker.begin(WAIT)
        mine = sorted(docker.containers())
        own = docker.engine_says(
            "create", "--name", f"sanduk-db-{os.getpid()}", "--label", "sanduk.run=mine",
            "debian:trixie-slim", "true",
        )  # fmt: skip
        try:
            other.run(DONE)
            for words in (("ps",), ("stop",), ("clean",), ("clean", "--all")):
                assert other.sanduk(*words).code == 0
            assert sorted(docker.containers()) == mine
            assert going.process.poll() is None
            assert docker.engine_says("inspect", "--format", "{{.Id}}", own) == own
        finally:
            docker.engine_says("rm", "--force", own)
        assert going.signal(2).end().code == 130
        other.nothing_left()
        docker.nothing_left()
