"""How runs end on real engines: every outcome that the container itself brings about."""

from __future__ import annotations

import shlex
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.accounts import needs_dev_full
from tests.engine.running import DEAF, DONE, SANDUK, WAIT, Done, Going, Installation
from tests.pace import stretched

pytestmark = pytest.mark.engine
CALL = """curl -sS -o /dev/null -H "Authorization: Bearer $RELAY_TOKEN" \\
    -H 'Content-Type: application/json' -d '{"model": "rehearsal", "messages": []}' \\
    "$RELAY_URL/chat/completions"
"""
EAT = """python3 -c 'x = b"x" * 2**30'"""
FORGED = """echo '{"type": "result", "ok": true, "text": "all done"}' > /proc/1/fd/1"""


def test_an_agent_that_says_so_and_exits_with_0_has_succeeded(installation: Installation):
    done = installation.run(CALL + DONE, agent="scripted")

    assert (done.code, done.out, done.err) == (0, "", "")
    assert installation.row["outcome"] == "succeeded"
    assert installation.row["calls_completed"] == 1
    assert "sealed" in installation.row["certificate"]
    installation.nothing_left()


@pytest.mark.usefixtures("needs_root")
@pytest.mark.parametrize("wait", ["", "sleep 0.3; "])
def test_the_namespace_of_an_agent_that_ends_soon_is_not_passed_over(
    docker: Installation, wait: str
):
    docker.run(f"{wait}{DONE}")
    (verdict,) = [
        check["verdict"]
        for check in docker.show()["certificate"]["checks"]
        if check["name"] == "namespace"
    ]

    assert verdict in ("closed", "unknown")
    assert verdict == "closed" or not wait, "a third of a second is time enough to look"


def test_without_a_terminal_record_a_clean_exit_is_a_failure(docker: Installation):
    done = docker.run("echo working; exit 0")

    assert done.code == 1
    assert done.line == "sanduk: failed: the agent exited with 0 and no terminal record"
    docker.nothing_left()


@pytest.mark.parametrize("code", [129, 130, 143])
def test_an_agent_that_exits_as_if_interrupted_has_failed(docker: Installation, code: int):
    done = docker.run(f"exit {code}", "--no-network")

    assert done.code == 1
    assert str(code) in done.line
    assert docker.row["outcome"] == "failed"
    assert docker.row["agent_exit_code"] == code
    docker.nothing_left()


def test_a_success_record_with_another_exit_code_is_a_failure(docker: Installation):
    done = docker.run("""echo '{"type": "result", "ok": true}'; exit 3""")

    assert done.code == 1
    assert "exited with 3" in done.line
    docker.nothing_left()


def test_a_success_forged_by_another_process_does_not_count_without_a_call(
    installation: Installation,
):
    """L-1: any process in the container can write to the first one's output."""
    done = installation.run(f"sleep 1; (setsid sh -c '{_escaped(FORGED)}' &) ; sleep 1; exit 0",
                            agent="scripted")  # fmt: skip

    assert done.code == 1
    assert done.line.endswith(
        "the agent reported success, but the relay saw no completed model call"
    )
    assert installation.row["final_text"] == "all done"  # it was heard, and not believed
    installation.nothing_left()


def test_a_forged_success_of_an_agent_without_model_shows_that_forging_works(docker: Installation):
    done = docker.run(f"sleep 1; (setsid sh -c '{_escaped(FORGED)}' &) ; sleep 1; exit 0")

    assert done.code == 0


def test_a_main_process_out_of_memory_is_told_by_its_own_outcome(docker: Installation):
    """Not on Podman 4.3 with cgroups v1, where conmon loses the flag now and then."""
    done = docker.run(f"exec {EAT}", "--memory", "64m")

    assert done.code == 137
    assert done.line == "sanduk: out of memory: the container used up its 64m of memory"
    assert docker.row["agent_exit_code"] == 137
    docker.nothing_left()


def test_a_child_out_of_memory_is_a_note_and_no_outcome(docker: Installation):
    done = docker.run(f"{EAT}; {DONE}", "--memory", "64m")

    assert (done.code, done.err) == (0, "")
    assert docker.row["outcome"] == "succeeded"
    assert any(e.startswith("note: the kernel killed a process") for e in docker.events())
    docker.nothing_left()


def test_a_run_over_its_time_is_timed_out(installation: Installation):
    done = installation.run(WAIT, "--timeout", "2s")

    assert done.code == 124
    assert done.line == "sanduk: timed out: not done within 2.0 s (--timeout)"
    assert done.took_s < stretched(15)
    installation.nothing_left()


def test_a_silent_run_is_stalled(docker: Installation):
    done = docker.run(WAIT, "--idle-timeout", "2s")

    assert done.code == 125
    assert done.line.startswith("sanduk: stalled: no output and no model traffic for 2.0 s")
    assert done.took_s < stretched(15)
    docker.nothing_left()


def test_output_and_model_traffic_both_count_as_life(docker: Installation):
    talk = "for n in 1 2 3 4 5 6; do sleep 0.6; echo $n; done\n"
    call = f"for n in 1 2 3 4 5 6; do sleep 0.6; {CALL.strip()}; done\n"
    done = docker.run(talk + call + DONE, "--idle-timeout", "2s", agent="scripted")

    assert (done.code, done.err) == (0, "")
    assert docker.row["calls_completed"] == 6


def test_the_container_ends_by_itself_when_nobody_is_left(docker: Installation):
    """The limit in the container lies two minutes behind ours, so here it is only looked up."""
    going = docker.begin(WAIT, "--timeout", "60")
    (agent,) = docker.containers("agent")
    command = docker.engine_says("inspect", "--format", "{{.Path}} {{.Args}}", agent)
    going.signal(signal.SIGTERM).end()

    assert command.startswith("/run/sanduk/entry [180 sh -s")


GARBAGE = {
    "text": r"""
        printf '\377\376\000\001 not text \r\n'
        head -c 100000 /dev/urandom; echo
        printf '\033]0;title\007\033[2J\033[31m{"type": "text", "text": "\\u202egnp"}\n'
        printf '{"type": "text", "text": "\\u001b[2J \\u202egnp"}\n'
    """,
    "records": r"""
        echo '{"type": "text", "text": null}'; echo '{"type": null}'; echo '{}'; echo 'null'
        echo '{"type": "result", "ok": null, "input_tokens": null, "text": null}'
        echo '{"type": "tool", "text": {"a": []}, "detail": [1e999, -0]}'
        python3 -c 'print("{\"a\":" * 100000 + "1" + "}" * 100000)'
        python3 -c 'print("[" * 100000)'
        python3 -c 'print("{\"type\": \"text\", \"text\": " + "{\"a\":" * 900 + "1" + "}" * 901)'
    """,
}


@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=GARBAGE)
def test_no_output_breaks_a_run(docker: Installation, garbage: str):
    """L-1, L-13: what a container prints ends as an ordinary outcome."""
    done = docker.sanduk(*docker.words(f"{garbage}\n{DONE}"))

    assert done.code == 0, done
    assert docker.row["outcome"] == "succeeded"
    assert "\x1b" not in done.out + done.err
    assert "\u202e" not in done.out + done.err
    docker.nothing_left()


def test_an_endless_line_is_cut_and_memory_stays_small(docker: Installation):
    """L-8: 300 MB without a line end."""
    going = docker.start(*docker.words(f"head -c 300M /dev/zero | tr '\\0' x; echo; {DONE}"))
    peak, done = _watched(going)

    assert done.code == 0
    assert 20 < peak < 200, f"{peak} MB"
    assert any("was not read" in event for event in docker.events())
    log = docker.home / "runs" / docker.row["uid"] / "output.log"
    assert log.stat().st_size < 20 * 2**20
    assert log.read_bytes().endswith(b"[cut here by sanduk: the output went on]\n")
    docker.nothing_left()


def test_a_flood_of_lines_is_cut_visibly_in_the_trace(docker: Installation):
    lines = """yes '{"type": "text", "text": "x"}' | head -n 25000"""
    done = docker.run(f"{lines}; {DONE}")

    assert (done.code, done.err) == (0, "")
    events = docker.events()
    assert len(events) == 20_000
    assert events[-1] == "note: the trace is cut here, after 20,000 lines"


def test_standard_error_is_kept_apart_and_capped(docker: Installation):
    noise = "head -c 30M /dev/zero | tr '\\0' e >&2; echo to err >&2"
    done = docker.run(f"{noise}; {DONE}")

    assert (done.code, done.err) == (0, "")
    texts = [event for event in docker.events() if event.startswith("stderr: ")]
    assert len(texts) == 1
    assert len(texts[0]) <= 4100


def test_a_refused_call_shows_and_is_no_completed_one(docker: Installation):
    call = CALL.replace("$RELAY_TOKEN", "guess")
    done = docker.run(call + DONE, agent="scripted")

    assert done.code == 1
    assert docker.row["calls_refused"] == 1
    assert docker.row["calls_completed"] == 0
    docker.nothing_left()


def test_an_agent_that_missed_the_network_is_told_of_the_modes_that_have_it(docker: Installation):
    done = docker.run("curl -sS http://example.invalid/; exit 6")

    assert done.code == 1
    assert "--mode key-safe" in done.err
    assert len(done.err.splitlines()) == 2


def test_without_network_nothing_of_the_relay_is_started(docker: Installation):
    script = f"cat /proc/net/dev | grep -v lo: | wc -l; env | grep -c RELAY_TOKEN=.; {DONE}"
    done = docker.run(script, "--no-network")

    assert (done.code, done.err) == (0, "")
    assert (
        (docker.home / "runs" / docker.row["uid"] / "output.log").read_text().startswith("2\n0\n")
    )
    docker.nothing_left()


def test_a_container_that_ignores_the_wish_to_end_is_killed_after_the_grace(docker: Installation):
    done = docker.run(DEAF, "--timeout", "1s")

    assert done.code == 124
    assert 9 < done.took_s < stretched(25)
    docker.nothing_left()


def _escaped(script: str) -> str:
    return script.replace("'", "'\\''")


def _watched(going: Going) -> tuple[int, Done]:
    """The peak of resident memory, in MB, read while the process lives."""
    peak = 0
    status = Path(f"/proc/{going.pid}/status")
    while going.process.poll() is None:
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                peak = max(peak, int(line.split()[1]) // 1024)
        time.sleep(0.02)
    return peak, going.end()


@pytest.mark.parametrize(
    ("script", "code"), [(DONE, 0), ("exit 3", 1)], ids=["a success", "a failure"]
)
@pytest.mark.parametrize("stream", ["out", "err", "both"])
def test_a_reader_that_leaves_ends_no_run_and_changes_no_code(
    docker: Installation, script: str, code: int, stream: str
):
    """`sanduk run ... 2>&1 | head -1`, with `head` gone before the first line."""
    redirection = {"out": "", "err": "2>&1 >/dev/null", "both": "2>&1"}[stream]
    words = shlex.join([str(SANDUK), *docker.words(f"sleep 0.3; {script}")])
    piped = f"{{ {words} {redirection}; echo $? >code; }} | true"
    environment = docker.environment
    subprocess.run(
        ["sh", "-c", piped], env=environment, cwd=docker.ground, timeout=90, capture_output=True
    )

    assert (docker.ground / "code").read_text().strip() == str(code)
    assert docker.row["outcome"] == ("succeeded" if code == 0 else "failed")
    docker.nothing_left()


@needs_dev_full
def test_a_full_disk_under_its_output_is_told_and_the_run_counts(docker: Installation):
    words = shlex.join([str(SANDUK), *docker.words(DONE)])
    done = subprocess.run(
        ["sh", "-c", f"{words} >/dev/full"],
        env=docker.environment, cwd=docker.ground, timeout=90, capture_output=True, text=True,
    )  # fmt: skip

    assert done.returncode == 1
    assert "the output could not be written: No space left on device" in done.stderr
    assert docker.row["outcome"] == "succeeded"
