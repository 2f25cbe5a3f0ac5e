"""Apple's `container`, as far as it can be tried without a Mac: what it is asked, and its answers.

The answers are of the shape that its documents give; no Mac has been here.
"""

from __future__ import annotations

import json
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

import recipes
from runs.engines.apple import Apple
from runs.engines.base import (
    BuildSpec,
    ContainerSpec,
    EngineError,
    EngineUnavailable,
    Mount,
)
from runs.plan import from_recipe
from tests.runs.engines.fake_cli import FakeCli

pytestmark = pytest.mark.anyio
LABELS = {"sanduk.install": "0123456789abcdef", "sanduk.run": "ab12"}
SPEC = ContainerSpec(
    image="sanduk-pi:abc",
    argv=("900", "pi", "-p"),
    labels={**LABELS, "sanduk.role": "agent"},
    entrypoint="/run/sanduk/entry",
    user="501:20",
    env={"HOME": "/home/node"},
    mounts=(Mount("/Users/me/work", "/work", read_only=False), Mount("/tmp/e", "/run/sanduk/env")),
    workdir="/work",
    network="default",
    memory="2g",
    cpus=2.5,
)
NAME = "sanduk-0123456789abcdef-ab12-agent"


def image(name: str = "docker.io/library/sanduk-pi:abc", user: str = "node") -> str:
    config = {"User": user, "Entrypoint": ["pi"], "Env": ["A=b=c"], "Labels": {"x": "y"}}
    variant = {"config": {"config": config, "created": "2026-01-01T00:00:00Z"}, "size": 7}
    return json.dumps([{"name": name, "index": {"digest": "sha256:1"}, "variants": [variant]}])


def container(name: str, status: str = "running", **labels: str) -> dict[str, object]:
    return {
        "configuration": {"id": name, "labels": labels, "image": {"reference": "sanduk-pi:abc"}},
        "status": status,
    }


@pytest.fixture
def cli(fake_cli: FakeCli, tmp_path: Path):
    """cli(case): `container` answers by this shell `case`, and notes what it was asked."""
    asked = tmp_path / "asked"

    def put(case: str) -> None:
        note = f'for w in "$@"; do printf "%s\\0" "$w"; done >> {asked}; echo >> {asked}'
        fake_cli("container", f'{note}\ncase "$*" in\n{case}\n*) ;;\nesac')

    def words() -> list[list[str]]:
        lines = asked.read_text().split("\0\n")
        return [line.split("\0") for line in lines if line]

    put.words = words  # type: ignore[attr-defined]
    return put


def says(text: str) -> str:
    return f"echo {shlex.quote(text)}"


async def test_a_container_is_created_in_apples_words(cli):
    cli(f"'image inspect'*) {says(image())} ;;")

    assert await Apple().create(SPEC) == NAME
    assert cli.words()[-1] == [
        "create", "--name", NAME,
        "--label", "sanduk.install=0123456789abcdef", "--label", "sanduk.run=ab12",
        "--label", "sanduk.role=agent",
        "--cap-drop", "ALL", "--init", "--cpus", "2", "--memory", "2g",
        "--mount", "type=bind,source=/Users/me/work,target=/work",
        "--mount", "type=bind,source=/tmp/e,target=/run/sanduk/env,readonly",
        "--workdir", "/work", "--env", "HOME=/home/node",
        "--entrypoint", "/run/sanduk/entry", "sanduk-pi:abc", "900", "pi", "-p",
    ]  # fmt: skip


async def test_a_network_a_terminal_and_a_closed_root_are_asked_for_when_ordered(cli):
    cli(f"'image inspect'*) {says(image())} ;;")
    spec = replace(
        SPEC, network="n", interactive=True, tty=True, read_only_root=True, tmpfs=("/tmp:size=1m",)
    )

    await Apple().create(spec)

    words = cli.words()[-1]
    assert words[words.index("--network") + 1] == "n"
    assert {"--interactive", "--tty", "--read-only"} <= set(words)
    assert words[words.index("--tmpfs") + 1] == "/tmp", "it takes no options"


@pytest.mark.parametrize(
    ("change", "answer", "said"),
    [
        ({"oci_runtime": "runsc"}, image(), "has no OCI runtimes to choose from"),
        ({"mounts": (Mount("/a,b", "/x"),)}, image(), "cannot mount a path with a comma"),
        ({}, image(user="root"), "runs as root, which is refused"),
        ({}, image(user=""), "runs as root, which is refused"),
        ({}, image(user="0:0"), "runs as root, which is refused"),
        # K-6: a name that merely ends so is another image
        ({}, image("my-sanduk-pi:abc"), "is not there: run `sanduk build`"),
        ({}, image("reg.example:5000/sanduk-pi:abc"), "is not there: run `sanduk build`"),
    ],
)
async def test_what_cannot_be_made_is_refused_before_it_is_asked_for(cli, change, answer, said):
    cli(f"'image inspect'*) {says(answer)} ;;")

    with pytest.raises(EngineError, match=said):
        await Apple().create(replace(SPEC, **change))
    asked = cli.words() if not change.get("oci_runtime") else []
    assert all(words[0] != "create" for words in asked)


@pytest.mark.parametrize("name", ["sanduk-pi:abc", "localhost/sanduk-pi:abc"])
async def test_an_image_is_known_by_its_exact_names(cli, name):
    cli(f"'image inspect'*) {says(image(name))} ;;")

    facts = await Apple().image("sanduk-pi:abc")

    assert facts is not None
    assert (facts.entrypoint, facts.env, facts.user) == (("pi",), {"A": "b=c"}, "node")


RUNNING = "'system status') echo 'apiserver is running' ;;"


@pytest.mark.parametrize(
    ("version", "known"),
    [
        ("container CLI version 1.2.0 (build: release)", "1.2.0"),
        ("container CLI version 1.10.3 (build: release, commit: 0.9.0)", "1.10.3"),
        ("2.0.0", "2.0.0"),
    ],
)
async def test_it_is_ready_from_1_2_0_on(cli, version, known):
    cli(f"{RUNNING} --version) {says(version)} ;;")

    assert (await Apple().ready()).version == known


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        (f"{RUNNING} --version) echo 'version 1.1.9' ;;", "1.1.9 is too old: 1.2.0 or newer"),
        (f"{RUNNING} --version) echo 'version 0.10.0' ;;", "0.10.0 is too old"),
        (f"{RUNNING} --version) echo 'a \\033[31mfine one' ;;", "does not tell its version"),
        # K-6: it says so with exit status 0
        ("'system status') echo 'apiserver is not running' ;;", "`container system start`"),
        ("'system status') exit 1 ;;", "`container system start`"),
    ],
)
async def test_what_is_too_old_or_down_is_told_with_what_helps(cli, answers, said):
    cli(answers)

    with pytest.raises(EngineUnavailable, match=said):
        await Apple().ready()


async def test_relayed_runs_are_refused_with_the_reason(cli):
    with pytest.raises(EngineUnavailable, match="no socket of this Mac can be mounted"):
        await Apple().require_local()
    assert Apple.shares_sockets is False


async def test_containers_are_found_by_all_of_their_labels(cli):
    listed = [
        container("a", **LABELS),
        container("b", **{**LABELS, "sanduk.run": "other"}),
        container("c", **{"sanduk.install": LABELS["sanduk.install"]}),
    ]
    cli(f"list*) {says(json.dumps(listed))} ;;")

    assert [row.id for row in await Apple().containers(LABELS)] == ["a"]
    with pytest.raises(EngineError, match="only ever looked up by label"):
        await Apple().containers({})


@pytest.mark.parametrize("answer", ["", "[", "{}", '[{"status": "running"}]', "ID IMAGE\na b"])
async def test_an_answer_that_cannot_be_read_never_looks_like_none(cli, answer):
    cli(f"list*) {says(answer)} ;;")

    with pytest.raises(EngineError, match="cannot be read"):
        await Apple().containers(LABELS)


async def test_the_exit_code_is_the_attached_commands(cli):
    ended = json.dumps([container(NAME, "stopped")])
    cli(f"'start --attach'*) exit 3 ;; inspect*) {says(ended)} ;;")
    apple = Apple()

    process = await apple.start_attached(NAME)
    await process.communicate()
    state = await apple.inspect(NAME)
    never = await Apple().inspect(NAME)

    assert state is not None
    assert (state.status, state.exit_code) == ("exited", 3)
    assert never is not None
    assert (never.status, never.started) == ("created", False)


async def test_what_is_gone_is_no_error(cli):
    gone = "echo 'Error: container not found' >&2; exit 1"
    cli(f"inspect*|stop*|delete*|'network delete'*) {gone} ;;")
    apple = Apple()

    assert await apple.inspect("x") is None
    await apple.stop("x", grace_s=1)
    await apple.remove(["x", "y"])
    await apple.remove_network("n")
    assert ["delete", "--force", "y"] in cli.words()


def test_the_undertaker_removes_by_name_and_nothing_else(cli, tmp_path: Path):
    others = ["sanduk-0123456789abcdef-ab12x-agent", "sanduk-other-ab12-agent", "mine"]
    cli(f"'list --all --quiet') printf '%s\\n' {NAME} {' '.join(others)} ;;")

    script = Apple().removal_script(LABELS).replace("sleep 0.5", "true")
    subprocess.run(["sh", "-c", script], check=True, timeout=30)

    deleted = {words[2] for words in cli.words() if words[0] == "delete"}
    assert deleted == {NAME}


@pytest.mark.parametrize("name", [*recipes.recipe_names()])
def test_every_file_is_copied_by_a_line_of_its_own(name: str):
    """The builder of Apple's 1.2.0 makes empty directories of copied ones."""
    _, built = from_recipe(name)
    assert built.context is not None
    lines = [line for line in built.context.containerfile.splitlines() if line.startswith("COPY")]

    copied = [json.loads(line.removeprefix("COPY ")) for line in lines]

    assert all(len(words) == 2 and words[0] in built.context.files for words in copied)
    assert {words[0] for words in copied} == set(built.context.files) - {"Containerfile"}


async def test_a_build_is_asked_for_in_its_words(cli, tmp_path: Path):
    cli("")
    labels = {"sanduk.role": "image"}
    spec = BuildSpec(context=str(tmp_path), tag="t:1", labels=labels, build_args={"A": "b"})

    await Apple().build(spec, lambda line: None)
    with pytest.raises(EngineError, match="cannot be told to pull"):
        await Apple().build(replace(spec, pull=True), lambda line: None)

    (words,) = cli.words()
    assert (words[0], words[-1]) == ("build", str(tmp_path))
    assert {"A=b", "t:1", "sanduk.role=image"} <= set(words)
