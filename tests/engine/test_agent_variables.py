"""`--agent-key-env` and `--agent-base-url-env` with the real agents, sealed."""

from __future__ import annotations

import json

import pytest

from tests.engine.running import Installation

pytestmark = pytest.mark.engine


@pytest.mark.parametrize(
    ("agent", "variable"),
    [
        ("claude", "ANTHROPIC_AUTH_TOKEN"),  # it sends that one as a Bearer token
        ("codex", "MY_KEY"),
        ("hermes", "MY_KEY"),
        ("opencode", "MY_KEY"),
        ("pi", "MY_KEY"),
    ],
)
def test_an_agent_finds_its_key_under_another_name(
    docker: Installation, agent_images: None, agent: str, variable: str
):
    words = ("--agent", agent, "--provider", "rehearsal", "-w", str(docker.work), "--json")
    done = docker.sanduk("run", "-q", *words, "--agent-key-env", variable, "Look.", limit_s=120)
    assert done.code == 0, done
    run = json.loads(done.out)

    assert run["outcome"] == "succeeded"
    assert run["calls"]["refused"] == 0
    docker.nothing_left()


def test_the_container_has_the_two_under_the_names_that_were_given(docker: Installation):
    script = """
        test -z "$RELAY_TOKEN$RELAY_URL" && curl -sf -o /dev/null "$URL/models" \\
            -H "Authorization: Bearer $TOKEN" && echo '{"type": "result", "ok": true}'
        exit
    """
    done = docker.run(script, "--agent-key-env", "TOKEN", "--agent-base-url-env", "URL")

    assert (done.code, done.err) == (0, ""), done
    assert docker.row["outcome"] == "succeeded"


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--agent-key-env", "A B"), "--agent-key-env 'A B' is no name of a variable"),
        (("--agent-base-url-env", "1"), "--agent-base-url-env '1' is no name of a variable"),
        (("--agent-key-env", "X", "--agent-base-url-env", "X"), "both say X"),
        (("--agent-key-env", ""), "--agent-key-env: its value is empty"),
    ],
)
def test_names_that_mean_nothing_are_refused(docker: Installation, flags, words):
    done = docker.sanduk("run", "-q", "--agent", "pi", "--provider", "rehearsal", *flags, "x")

    assert done.code == 2
    assert words in done.line
