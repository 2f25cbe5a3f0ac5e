"""The Containerfile, the files beside it, what is not built, and the tag."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from recipes import BuildContext, RecipeError, image_tag, load, recipe_names, render
from tests.recipes.conftest import Write, apt

SHA = "0123456789abcdef" * 4
SHIPPED = ("claude", "codex", "gemini", "hermes", "link", "opencode", "pi")


def context(path: Path, **options: Any) -> BuildContext:
    return render(load(str(path)), **options)


def downloads(**extra: Any) -> dict[str, Any]:
    return {
        arch: {"url": f"https://x.invalid/{arch}?a=b'c", "sha256": SHA, **extra}
        for arch in ("amd64", "arm64")
    }


def test_the_instructions_stand_in_their_order(write: Write, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("x")
    made = context(
        write(
            "x",
            sections=[
                {"name": "late", "type": "run", "lines": ["echo late"], "user": "agent"},
                apt("a", "git=1:2.3"),
                {"name": "n", "type": "npm", "install": ["@a/b@1.2.3"]},
                {"name": "p", "type": "pip", "install": ["six==1.17.0"], "flags": ["--no-deps"]},
                {"name": "f", "type": "copy", "from": "f", "to": "/opt/f"},
                {"name": "early", "type": "run", "lines": ["echo early", "id"]},
            ],
            instructions={"text": "Be brief."},
            env={"PATH": "/x:$PATH", "Q": 'a "b" \\c'},
        ),
        instructions_file=".pi/agent/AGENTS.md",
    )
    expected = [
        "FROM debian:trixie-slim",
        "apt-get install --yes --no-install-recommends git=1:2.3",
        "@a/b@1.2.3",
        "RUN pip install --no-cache-dir --no-deps six==1.17.0",
        'COPY ["files/x/f", "/opt/f"]',
        "RUN sh -eu /usr/local/share/sanduk/steps/x-early.sh",
        "ARG AGENT_UID=1000",
        'agent /home/agent "$AGENT_UID" "$AGENT_GID" /usr/local/share/sanduk/instructions.md '
        ".pi/agent/AGENTS.md",
        'LABEL sanduk.agent-uid="$AGENT_UID"',
        'ENV HOME="/home/agent"',
        'PATH="/x:$PATH"',
        'Q="a \\"b\\" \\\\c"',
        "USER agent:0",
        "RUN umask 0002 && sh -eu /usr/local/share/sanduk/steps/x-late.sh",
        "open-home.sh /home/agent",
        "USER agent\nWORKDIR /work",
        'LABEL sanduk.recipe="x" sanduk.kits="" sanduk.home="/home/agent"',
        'ENTRYPOINT ["sh"]',
    ]
    places = [made.containerfile.find(text) for text in expected]
    assert -1 not in places, expected[places.index(-1)]
    assert places == sorted(places)
    assert made.files["steps/x-early.sh"].content == b"#!/bin/sh\necho early\nid\n"
    assert made.files["instructions.md"].content == b"Be brief.\n"


def test_every_copied_file_is_in_the_context_and_nothing_else(write: Write) -> None:
    for name in SHIPPED:
        made = render(load(name))
        lines = made.containerfile.splitlines()
        copied = [json.loads(line[5:])[0] for line in lines if line.startswith("COPY ")]
        assert sorted(copied) == sorted(made.files)


def test_written_files_have_their_modes_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        render(load("pi")).write(tmp_path)
    finally:
        os.umask(before)
    wrapper = tmp_path / "files" / "pi" / "wrapper"
    assert stat.S_IMODE(wrapper.stat().st_mode) == 0o755
    assert stat.S_IMODE((tmp_path / "Containerfile").stat().st_mode) == 0o644
    assert wrapper.read_bytes().startswith(b"#!/bin/sh\n")


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        (
            {"sections": [{"name": "n", "type": "npm", "install": ["a@1"]}]},
            ".install[0] (line 1): a@1 may",
        ),
        ({"sections": [{"name": "n", "type": "npm", "install": ["a@1.x"]}]}, "a@1.x may"),
        ({"sections": [{"name": "n", "type": "npm", "install": ["a@1.2.3,b"]}]}, "may be several"),
        ({"sections": [{"name": "n", "type": "pip", "install": ["a==1,<2"]}]}, "may be several"),
        (
            {"sections": [
                {"name": "n", "type": "npm", "install": ["a@1.2.3"],
                 "flags": ["--no-audit", "--registry=https://x.invalid"]}
            ]},
            ".flags[1] (line 1): --registry=https://x.invalid is not allowed",
        ),
        (
            {"sections": [
                {"name": "n", "type": "npm", "install": ["a@1.2.3"], "flags": ["--reg=x"]}
            ]},
            "--reg=x is not allowed",
        ),
        (
            {"sections": [
                {"name": "n", "type": "pip", "install": ["a==1"], "flags": ["--extra-index=x"]}
            ]},
            "--extra-index=x is not allowed",
        ),
        ({"user": "root"}, "$.user (line 1): an agent never runs as root"),
        ({"home": "/usr/share"}, "$.home (line 1): /usr/share belongs to the system"),
        ({"home": "/work/home"}, "$.home (line 1): /work/home belongs to the system"),
        ({"env": {"HOME": "/x"}}, "$.env.HOME (line 1): it follows from $.home"),
        ({"instructions": {"text": "x"}}, "$.instructions: pi reads no instructions file"),
    ],
)  # fmt: skip
def test_k2_k5_what_loads_but_is_not_built_is_refused_with_its_place(
    write: Write, keys: dict[str, Any], sentence: str
) -> None:
    path = write("x", **keys)
    recipe = load(str(path))
    with pytest.raises(RecipeError) as caught:
        render(recipe)
    assert str(caught.value).startswith(f"{path}: $.")
    assert sentence in str(caught.value)


def test_a_refusal_names_the_file_an_inherited_section_stands_in(write: Write) -> None:
    base = write("base", sections=[{"name": "n", "type": "npm", "install": ["a@1"]}])
    child = write("child", complete=False, inherits="./base.json")
    with pytest.raises(RecipeError, match=rf"{base}: \$\.sections\[0\]\.install\[0\]"):
        context(child)


def test_two_sections_kept_under_one_name_are_refused(write: Write) -> None:
    run = {"type": "run", "lines": ["true"]}
    write("a", sections=[{"name": "b-c", **run}])
    path = write("a-b", complete=False, inherits="./a.json", sections=[{"name": "c", **run}])
    with pytest.raises(RecipeError, match=r"kept as steps/a-b-c\.sh"):
        context(path)


def test_a_missing_download_is_refused_before_the_build(write: Write) -> None:
    path = write(
        "x",
        sections=[{
            "name": "d", "type": "binary", "artifacts": {"arm64": downloads()["arm64"]},
        }],
    )  # fmt: skip
    with pytest.raises(RecipeError, match=r"artifacts: nothing for amd64; there is arm64"):
        context(path, arch="amd64")
    assert "d.sh" in context(path, arch="arm64").containerfile


@pytest.mark.parametrize(
    "section",
    [
        {"type": "binary", "artifacts": downloads()},
        {"type": "binary", "artifacts": downloads(member="d-1.0/bin/d"), "path": "/opt/a b/d"},
        {
            "type": "archive",
            "artifacts": downloads(strip=1),
            "dest": "/opt/d",
            "links": {"/usr/local/bin/d": "bin/d"},
        },
    ],
)
def test_the_script_of_a_download_is_valid_shell_and_quotes_what_it_was_given(
    write: Write, section: dict[str, Any], tmp_path: Path
) -> None:
    made = context(write("x", sections=[{"name": "d", **section}]))
    script = made.files["steps/x-d.sh"].content
    assert subprocess.run(["sh", "-n"], input=script, check=False).returncode == 0
    assert b"'https://x.invalid/amd64?a=b'\"'\"'c'" in script


def test_a_tag_names_the_recipe_and_twelve_digits() -> None:
    name, _, digest = image_tag(render(load("pi")), {}).partition(":")
    assert name == "sanduk-pi"
    assert len(digest) == 12
    assert int(digest, 16) >= 0


def test_formatting_and_description_do_not_change_the_tag(write: Write) -> None:
    first = image_tag(context(write("x", sections=[apt("a")])), {})
    path = write("x", sections=[{**apt("a"), "description": "new"}], description="new")
    path.write_text(json.dumps(json.loads(path.read_text()), indent=8))
    assert image_tag(context(path), {}) == first


def test_whatever_the_build_reads_changes_the_tag(write: Write, tmp_path: Path) -> None:
    copied = tmp_path / "f"
    copied.write_text("one")
    section = {"name": "f", "type": "copy", "from": "f", "to": "/opt/f"}

    def tag(args: dict[str, str] | None = None, base: str | None = None, **keys: Any) -> str:
        keys = {"sections": [section], **keys}
        return image_tag(context(write("x", **keys)), args or {}, base)

    tags = [
        tag(),
        tag(env={"A": "1"}),
        tag({"AGENT_UID": "1001"}),
        tag(base="sha256:1"),
        tag(base="sha256:2"),
        tag(sections=[{**section, "mode": "0600"}]),
    ]
    copied.write_text("two")
    tags.append(tag())
    copied.chmod(0o755)
    tags.append(tag())
    assert len(set(tags)) == len(tags)


def test_the_tag_of_a_shipped_recipe_is_found_in_ten_milliseconds() -> None:
    load("pi")
    best = min(_seconds() for _ in range(5))
    assert best < 0.010


def _seconds() -> float:
    started = time.perf_counter()
    image_tag(render(load("pi")), {})
    return time.perf_counter() - started


def test_every_shipped_recipe_renders_for_both_architectures() -> None:
    assert set(SHIPPED) <= set(recipe_names())
    for name in SHIPPED:
        recipe = load(name)
        assert recipe.name == recipe.agent == name
        assert render(recipe, arch="amd64") == render(recipe, arch="arm64")


def test_recipes_are_read_without_django() -> None:
    code = "import sys, recipes; recipes.load('pi'); sys.exit('django' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
