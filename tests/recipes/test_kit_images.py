"""A kit in an image that was really built: its tool, its skill, its setup, its labels."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from recipes import image_tag, load, render
from tests.recipes.conftest import Write, WriteKit, held, pinned, sha
from tests.recipes.test_images import ANY_UID, HARDENED, LABEL, build, docker, engine

pytestmark = pytest.mark.engine
__all__ = ["engine"]  # the fixture that skips where no Docker answers, and cleans up

TOOL = "#!/bin/sh\necho tool-works\n"
INSIDE = """
kit-tool
file --brief /bin/sh >/dev/null && echo apt-works
echo "$KIT_VARIABLE"
cat ~/.setup ~/.late
cat ~/.agents/skills/s/SKILL.md | head -2 | tail -1
sh ~/.agents/skills/s/bin/run.sh
echo x >~/.agents/skills/s/SKILL.md || echo skill-kept
touch ~/.agents/skills/s/new || echo directory-kept
chmod u+w ~/.agents/skills/s ~/.agents/skills/s/SKILL.md || echo rights-kept
mkdir ~/.agents/skills/own && echo more-may-come
"""


def test_a_kit_is_in_the_image_for_any_uid(
    write: Write, write_kit: WriteKit, tmp_path: Path
) -> None:
    skill, files = held("s")
    script = "echo script-runs\n"
    skill["files"]["bin/run.sh"] = sha(script)
    kit = write_kit(
        "k",
        {**files, "skills/s/bin/run.sh": script, "kit-tool": TOOL},
        tools=[
            {"name": "file", "type": "apt", "install": ["file"]},
            {
                "name": "tool", "type": "copy", "from": "kit-tool",
                "to": "/usr/local/bin/kit-tool", "mode": "0755", "sha256": sha(TOOL),
            },
            {"name": "late", "type": "run", "lines": ["echo late-ran >~/.late"], "user": "agent"},
        ],
        skills=[skill],
        env={"KIT_VARIABLE": "kit-value"},
        agents={"pi": {"setup": [["sh", "-c", "echo setup-$(id -un) >~/.setup"]]}},
    )  # fmt: skip
    recipe = load(str(write("kitted", kits=[pinned(kit)])))
    context = render(recipe, skills_dir=".agents/skills")
    tag = image_tag(context, {})
    build(context, tmp_path / "context", "--label", LABEL, "--tag", tag)

    home = ["--env", "HOME=/home/agent", "--entrypoint", "sh"]
    done = docker("run", *HARDENED, *ANY_UID, "--network", "none", *home, tag, "-c", INSIDE)
    assert done.stdout.split() == [
        "tool-works", "apt-works", "kit-value", "setup-agent", "late-ran", "name:", "s",
        "script-runs", "skill-kept", "directory-kept", "rights-kept",
        "more-may-come",
    ]  # fmt: skip
    # the image's own uid is no exception
    own = ["--user", "1000:1000", "--group-add", "0"]
    again = docker("run", *HARDENED, *own, "--network", "none", *home, tag, "-c", INSIDE)
    assert again.stdout == done.stdout
    labels = json.loads(docker("image", "inspect", tag).stdout)[0]["Config"]["Labels"]
    assert labels["sanduk.recipe"] == "kitted"
    assert labels["sanduk.kits"] == f"k@{sha(kit)}"


PROJECTS = """
cd /work
printf 'int main(void) { return 0; }' >a.c && gcc a.c -o a && ./a && echo c-works
mkdir go && cd go && printf 'package main\\nfunc main() { print("") }' >m.go
go mod init x 2>/dev/null && go build -o m . && ./m && echo go-works
cd .. && cargo init --quiet --vcs none rust && cd rust
cargo build --quiet --offline && ./target/debug/rust
cd .. && python3 -m venv v && v/bin/python -c 'print("python-works")'
"""


def test_the_toolchain_compiles_without_a_network_as_any_uid(write: Write, tmp_path: Path) -> None:
    context = render(load(str(write("tools")), kits=["toolchain"]))
    tag = image_tag(context, {})
    build(context, tmp_path / "context", "--label", LABEL, "--tag", tag)

    home = ["--env", "HOME=/home/agent", "--entrypoint", "sh"]
    done = docker("run", *HARDENED, *ANY_UID, "--network", "none", *home, tag, "-c", PROJECTS)
    assert done.stdout.splitlines() == ["c-works", "go-works", "Hello, world!", "python-works"]
