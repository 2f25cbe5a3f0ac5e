"""The handlers against the real command lines, each in its own image, with no network.

What is started is exactly what `launch` says; what the model was sent is read from its requests.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import recipes
from relay import Provider, get_provider
from runs.agents import get_agent, opencode
from runs.agents.base import ARGV_ELEMENT_BYTES, Agent, Request, Result, Trace
from tests.runs.agents.shapes import ANTHROPIC, OPENAI, REHEARSAL, RELAY, TOKEN

pytestmark = pytest.mark.engine

RECORDER = Path(__file__).with_name("recorder.py")
UID = "4242:4242"
PLAIN = Request(model="some-model")
TMPFS = ("--tmpfs", "/work:mode=1777")
GEMINI = get_provider("gemini")
ANY = {"gemini": GEMINI}  # the others speak to the providers of the tests
AGENTS = ("claude", "codex", "pi", "opencode", "gemini", "hermes")
TASKS = {
    "a long one": "\n".join(f"{n}: read the file and count its lines" for n in range(25_000)),
    "a leading dash": "--version please\n\n- and -x too",
    "quotes": 'She said "it\'s `fine`" $HOME \\ \\n\r\nline two\n\n\t@tab ünï – 漢字 \U0001f600',
    "a leading at": "@/etc/passwd what is in it",
    "a leading bang": "!ls -la",
}


@dataclass(frozen=True, slots=True)
class Ended:
    code: int
    errors: str
    lines: list[Trace]
    result: Result | None
    bodies: list[dict[str, Any]]
    names: list[str]  # that it looked up
    probes: list[str]  # what it asked for besides its model


def docker(*words: str, **more: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["docker", *words], check=False, capture_output=True, **more)


@pytest.fixture(scope="session")
def engine() -> None:
    if docker("version").returncode:
        pytest.skip("no docker daemon answers")


def image_of(agent: Agent, directory: Path) -> tuple[str, recipes.Recipe]:
    """The tag of the agent's image, built where it is not there yet."""
    recipe = recipes.load(agent.recipe)
    context = recipes.render(recipe)
    tag = recipes.image_tag(context, {})
    if docker("image", "inspect", tag).returncode:
        context.write(directory)
        built = docker(
            *("build", "-q", "-t", tag, "-f", str(directory / "Containerfile"), str(directory)),
            env={**os.environ, "DOCKER_BUILDKIT": "0"},
        )
        assert built.returncode == 0, built.stderr.decode()[-2000:]
    return tag, recipe


def run(
    agent: Agent,
    task: str,
    directory: Path,
    *,
    provider: Provider = REHEARSAL,
    request: Request = PLAIN,
    answer: dict[str, Any] | None = None,
    env: dict[str, str] | None = None,
    work: Path | None = None,
) -> Ended:
    """Run the agent's real command line in its image, with the recorder as its model."""
    agent.check(request, provider)
    agent.check_task(task)
    launched = agent.launch(request, provider, task=task, root=RELAY, credential=TOKEN)
    (directory / "build").mkdir()
    tag, recipe = image_of(agent, directory / "build")
    record = directory / "record"
    record.mkdir()
    record.chmod(0o777)
    resolver = directory / "resolv.conf"
    resolver.write_text("nameserver 127.0.0.1\noptions timeout:1 attempts:1\n")
    inside = {
        **launched.env,
        "HOME": recipe.home,
        "ANSWER": json.dumps(answer or {}),
        **(env or {}),
    }
    done = docker(
        *("run", "--rm", "-i", "--init", "--network", "none", "--cap-drop", "ALL"),
        *("--user", UID, "--group-add", "0", "--label", "sanduk.install=test-agents"),
        *(word for name in inside for word in ("--env", name)),
        *(("--mount", f"type=bind,source={work},target=/work") if work else TMPFS),
        *("--workdir", "/work"),
        *("--mount", f"type=bind,source={resolver},target=/etc/resolv.conf,readonly"),
        *("--mount", f"type=bind,source={RECORDER},target=/recorder.py,readonly"),
        *("--mount", f"type=bind,source={record},target=/record"),
        *("--entrypoint", "python3", tag, "/recorder.py", *recipe.entrypoint, *launched.argv),
        input=(launched.before_task + task).encode() if launched.task_on_stdin else b"",
        env={**os.environ, **inside},
        timeout=120,
    )
    reader = agent.reader()
    lines = [line for record_ in records(done.stdout) for line in reader.record(record_)]
    bodies = [json.loads(path.read_bytes()) for path in sorted(record.glob("*.json"))]
    names, probes = (
        path.read_text().splitlines() if (path := record / kind).exists() else []
        for kind in ("names", "probes")
    )
    return Ended(
        done.returncode, done.stderr.decode(), lines, reader.result(), bodies, names, probes
    )


def records(output: bytes) -> Iterator[dict[str, Any]]:
    for line in output.splitlines():
        found = json.loads(line)
        assert isinstance(found, dict)
        yield found


def strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings(inner)


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS.keys())
@pytest.mark.parametrize("name", AGENTS)
def test_the_task_reaches_the_model_complete_and_unaltered(name, task, tmp_path):
    if name == "hermes":  # it takes an argument
        task = task[: ARGV_ELEMENT_BYTES - 1000]
    ended = run(get_agent(name), task, tmp_path, provider=ANY.get(name, REHEARSAL))

    assert ended.code == 0, ended.errors
    assert task in set(strings(ended.bodies[0]))
    assert ended.names == []
    assert ended.lines[-1] == Trace("text", "Finished.")
    assert ended.result is not None
    assert ended.result.ok
    assert ended.result.text == "Finished."
    assert ended.result.tally.input_tokens == 10
    assert ended.result.tally.output_tokens == 5


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("name", AGENTS)
def test_a_refused_call_is_a_failure_in_words(name, tmp_path):
    provider = ANY.get(name, REHEARSAL)
    ended = run(get_agent(name), "Count.", tmp_path, provider=provider, answer={"status": 403})

    assert ended.result is not None
    assert not ended.result.ok
    assert "403" in ended.result.error
    assert "the recorder refuses" in ended.result.error
    assert "{" not in ended.result.error
    assert not ended.result.rate_limited


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("name", ["claude", "codex"])  # pi tries for 15 s; its words are the same
def test_a_rate_limit_is_told_as_one(name, tmp_path):
    ended = run(
        get_agent(name),
        "Count.",
        tmp_path,
        answer={"status": 429},
        env={"CLAUDE_CODE_MAX_RETRIES": "0"},
    )

    assert ended.result is not None
    assert ended.result.rate_limited


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(
    ("name", "provider", "request_", "where", "effort"),
    [
        ("claude", ANTHROPIC, Request(effort="max"), ("output_config", "effort"), "max"),
        ("codex", OPENAI, Request(effort="minimal"), ("reasoning", "effort"), "minimal"),
        ("pi", OPENAI, Request(effort="max"), ("reasoning_effort",), "max"),
        ("opencode", OPENAI, Request(effort="xhigh"), ("reasoning_effort",), "xhigh"),
        (
            "opencode",
            ANTHROPIC,
            Request("m", effort="max"),
            ("output_config", "effort"),
            "max",
        ),
    ],
)
def test_the_effort_reaches_the_model(name, provider, request_, where, effort, tmp_path):
    ended = run(get_agent(name), "Count.", tmp_path, provider=provider, request=request_)

    found: Any = ended.bodies[0]
    for key in where:
        found = found[key]
    assert found == effort


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(("mode", "waits"), [("dontAsk", True), (None, False)])
def test_claude_waits_for_a_person_only_where_its_last_act_was_refused(mode, waits, tmp_path):
    ended = run(
        get_agent("claude"),
        "Count.",
        tmp_path,
        request=Request(permission_mode=mode),
        answer={"tool": "Bash", "input": {"command": "touch seen", "description": "Touch"}},
    )

    assert Trace("tool", "Bash", '{"command": "touch seen", "description": "Touch"}') in ended.lines
    assert ended.result is not None
    assert ended.result.ok
    assert ended.result.needs_input is waits


@pytest.mark.usefixtures("engine")
def test_claude_tells_its_turn_limit_in_words(tmp_path):
    ended = run(
        get_agent("claude"),
        "Count.",
        tmp_path,
        request=Request(max_turns=1, allowed_tools="Bash,Read", bare=True),
        answer={"tool": "Bash", "input": {"command": "true", "description": "Nothing"}},
    )

    assert ended.result is not None
    assert not ended.result.ok
    assert "turns (1)" in ended.result.error


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(
    ("name", "tools"), [("pi", ["read", "ls"]), ("opencode", ["read", "bash"])]
)
def test_only_the_tools_that_are_allowed_are_offered(name, tools, tmp_path):
    ended = run(get_agent(name), "Count.", tmp_path, request=Request(allowed_tools=",".join(tools)))

    assert {tool["function"]["name"] for tool in ended.bodies[0]["tools"]} == set(tools)


@pytest.mark.usefixtures("engine")
def test_opencodes_tools_are_called_as_the_refusals_say(tmp_path):
    ended = run(get_agent("opencode"), "Count.", tmp_path)

    offered = {tool["function"]["name"] for tool in ended.bodies[0]["tools"]}
    assert offered <= set(opencode.TOOLS)


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("bare", [False, True])
def test_a_bare_opencode_reads_no_file_of_the_workspace(bare, tmp_path):
    work = tmp_path / "work"
    for kind in (".agents", ".claude", ".opencode"):
        skill = work / kind / "skills" / "mine" / "SKILL.md"
        skill.parent.mkdir(parents=True)
        skill.write_text("---\nname: mine\ndescription: of the workspace\n---\nDo.\n")
    (work / "AGENTS.md").write_text("Words of the workspace.\n")
    request = Request(model="m", bare=bare)

    ended = run(get_agent("opencode"), "Count.", tmp_path, request=request, work=work)

    asked = json.dumps(ended.bodies[0])
    assert ("of the workspace" in asked) is not bare


@pytest.mark.usefixtures("engine")
def test_hermes_asks_the_relay_for_nothing_but_its_list_of_models(tmp_path):
    ended = run(get_agent("hermes"), "Count.", tmp_path)

    assert set(ended.probes) <= {"GET /v1/models", "GET /models"}


@pytest.mark.usefixtures("engine")
def test_gemini_makes_no_call_of_its_own_when_it_is_told_the_model(tmp_path):
    ended = run(get_agent("gemini"), "Count.", tmp_path, provider=GEMINI)

    assert len(ended.bodies) == 1


@pytest.mark.usefixtures("engine")
def test_the_scripted_agent_does_what_its_task_says(tmp_path):
    script = """
        ok=false
        curl -sSf -o /dev/null -H "Authorization: Bearer $RELAY_TOKEN" \\
            -d '{"model": "any", "hello": "there"}' "$RELAY_URL/chat/completions" && ok=true
        echo '{"type": "text", "text": "asked"}'
        printf '{"type": "result", "ok": %s}' $ok
        exit 3
    """

    ended = run(get_agent("scripted"), script, tmp_path)

    assert ended.bodies == [{"model": "any", "hello": "there"}]
    assert ended.lines == [Trace("text", "asked")]
    assert ended.result == Result(ok=True)
    assert ended.code == 3


def test_one_task_is_longer_than_an_argument_may_be():
    assert len(TASKS["a long one"]) > 1_000_000
