"""What the relay allows, through the command and with the real agents."""

from __future__ import annotations

import pytest

from tests.engine.running import DONE, Installation

pytestmark = pytest.mark.engine
CALL = 'curl -s -o /dev/null -w "%{http_code}" -H "Authorization: Bearer $RELAY_TOKEN"'


@pytest.mark.parametrize("agent", ["pi", "codex", "claude"])
def test_a_run_under_a_budget_ends_cleanly_when_it_is_used_up(docker: Installation, agent: str):
    """The first call uses up the 400 tokens: nothing is left for the second."""
    words = ("--agent", agent, "--provider", "rehearsal", "--token-budget", "400", "look around")
    done = docker.sanduk("run", "-q", "-w", str(docker.work), *words, limit_s=120)

    row = docker.row
    assert (done.code, row["outcome"]) == (4, "budget_exhausted"), done
    assert "the budget is used up" in done.err
    assert row["spent_tokens"] in (440, 444)  # the protocols' numbers differ
    assert row["calls_completed"] == 1
    docker.nothing_left()


def test_a_model_that_is_not_allowed_is_refused_with_the_flag_that_would_allow_it(
    docker: Installation,
):
    done = docker.run(
        f'{CALL} -d \'{{"model":"dear"}}\' $RELAY_URL/chat/completions; {DONE}',
        "--allow-model",
        "cheap",
    )
    call = docker.show()["relay_calls"][0]

    assert done.code == 1  # no call was completed
    assert (call["status"], call["refusal"]) == (403, "allow-model")
    assert docker.row["calls_refused"] == 1


def test_the_number_of_calls_can_be_limited(docker: Installation):
    body = '{"model":"rehearsal","messages":[]}'
    call = f"{CALL} -d '{body}' $RELAY_URL/chat/completions"
    docker.run(f"{call}; {call}; {DONE}", "--max-calls", "1")

    assert [each["status"] for each in docker.show()["relay_calls"]] == [200, 429]


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--mode", "open", "--budget", "1"), "open runs have no relay"),
        (("--mode", "key-safe", "--allow-host", "example.com"), "a door in a sealed run"),
        (("--budget", "nan"), "above 0"),
        (("--budget-strict",), "need --budget"),
        (("--allow-host", "*.example.com"), "no wildcards"),
        (("--allow-host", "127.0.0.1"), "127.0.0.1"),
        (("--max-calls", "0"), "above 0"),
        (("--allow-path", "/../x"), "--allow-path"),
    ],
)
def test_rules_that_mean_nothing_are_refused(docker: Installation, flags, words):
    done = docker.sanduk("run", "--agent", "pi", "--provider", "rehearsal", *flags, "x")

    assert done.code == 2
    assert words in done.err
    assert "Traceback" not in done.err


def test_without_the_flag_there_is_no_door(docker: Installation):
    docker.run(f"env | grep -ci proxy; (echo > /dev/tcp/127.0.0.1/3128) 2>&1; {DONE}")

    assert docker.show()["egress_attempts"] == []


def test_a_host_that_is_not_listed_is_refused_and_told(docker: Installation):
    done = docker.run(
        f"curl -s -m 5 https://unlisted.invalid/; {DONE}", "--allow-host", "listed.invalid"
    )
    (attempt,) = docker.show()["egress_attempts"]

    assert (attempt["host"], attempt["port"], attempt["allowed"]) == (
        "unlisted.invalid", 443, False,
    )  # fmt: skip
    assert attempt["flag"] == "--allow-host unlisted.invalid:443"
    assert "--allow-host unlisted.invalid:443" in done.err


def test_a_listed_name_of_this_machine_is_no_way_in(docker: Installation):
    docker.run(f"curl -s -m 5 https://localhost:8443/; {DONE}", "--allow-host", "localhost:8443")
    (attempt,) = docker.show()["egress_attempts"]

    assert not attempt["allowed"]
    assert attempt["reason"]
