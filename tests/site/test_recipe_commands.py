"""`sanduk recipe`, `sanduk kit`, `list kits` and `build --dry-run` as a person meets them."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from recipes import host_architecture

ROOT = Path(__file__).parents[2]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    config, state = str(tmp_path / "config"), str(tmp_path / "state")
    return {**kept, "SANDUK_HOME": state, "PYTHONPATH": str(ROOT), "XDG_CONFIG_HOME": config}


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """Where the user's recipes and kits are."""
    return tmp_path / "config" / "sanduk"


@pytest.fixture
def sanduk(tmp_path: Path, environment: dict[str, str]):
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "sanduk_site", *words],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return done

    return run


def test_a_first_recipe_passes_its_own_check_and_is_listed(sanduk, own: Path, tmp_path: Path):
    made = sanduk("recipe", "new", "mine", "--inherits", "pi")
    checked = sanduk("recipe", "check", "mine")

    assert made.stdout == f"{own}/recipes/mine.json\n"
    assert "sanduk recipe check mine" in made.stderr
    assert (checked.returncode, checked.stderr) == (0, "")
    assert checked.stdout.startswith("mine: agent pi, image sanduk-mine:")
    assert "mine" in sanduk("list", "recipes").stdout
    assert not (tmp_path / "state").exists(), "it keeps no state"


def test_a_first_kit_passes_its_own_check_and_is_pinned_by_a_recipe(sanduk, own: Path):
    made = sanduk("kit", "new", "lint")
    checked = sanduk("kit", "check", "lint")
    [row] = [
        row for row in json.loads(sanduk("list", "kits", "--json").stdout) if row["name"] == "lint"
    ]

    assert made.stdout == f"{own}/kits/lint/kit.json\n"
    assert (checked.returncode, checked.stdout) == (0, f"lint@{row['sha256']}\n")
    pin = json.loads(checked.stderr.partition("by: ")[2])
    sanduk("recipe", "new", "mine")
    recipe = own / "recipes" / "mine.json"
    recipe.write_text(json.dumps({**json.loads(recipe.read_text()), "kits": [pin]}))
    assert f"kit lint@{row['sha256']}" in sanduk("recipe", "check", "mine").stdout


def test_a_pin_is_renewed_after_showing_what_changed(sanduk, own: Path):
    sanduk("kit", "new", "lint")
    sanduk("recipe", "new", "mine")
    recipe = own / "recipes" / "mine.json"
    text = recipe.read_text().replace(
        '"env"', f'"kits": [{{"name": "lint", "sha256": "{"0" * 64}"}}],\n  "env"'
    )
    recipe.write_text(text)

    refused = sanduk("recipe", "check", "mine")
    shown = sanduk("kit", "pin", "mine")
    assert "sanduk kit pin" in refused.stderr
    assert refused.returncode == 2
    assert (shown.returncode, recipe.read_text()) == (1, text)
    assert f'-  "kits": [{{"name": "lint", "sha256": "{"0" * 64}"}}],' in shown.stdout
    assert "nothing was written; --yes" in shown.stderr

    done = sanduk("kit", "pin", "mine", "--yes")
    assert done.returncode == 0
    assert recipe.read_text() != text
    assert recipe.read_text().replace(sha_of(done.stdout), "0" * 64) == text
    assert sanduk("recipe", "check", "mine").returncode == 0
    assert "nothing to change" in sanduk("kit", "pin", "mine").stderr


def sha_of(diff: str) -> str:
    [line] = [line for line in diff.splitlines() if line.startswith("+  ")]
    return line.split('"')[-2]


@pytest.mark.parametrize(("answer", "written"), [(b"y\n", True), (b"\n", False)])
def test_on_a_terminal_it_asks(environment, own: Path, sanduk, answer: bytes, written: bool):
    sanduk("recipe", "new", "mine")
    recipe = own / "recipes" / "mine.json"
    recipe.write_text(recipe.read_text().replace('"LESS": "-R"', '"HOME": "/x"'))
    ours, theirs = pty.openpty()
    try:
        with subprocess.Popen(
            [sys.executable, "-m", "sanduk_site", "recipe", "fix", "mine"],
            env=environment, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        ) as process:  # fmt: skip
            os.write(ours, answer)
            _, told = process.communicate(timeout=60)
    finally:
        os.close(ours)
        os.close(theirs)
    assert b"write this? [y/N]" in told
    assert ("HOME" not in recipe.read_text()) is written
    assert process.returncode == (0 if written else 1)


def test_everything_that_is_not_built_is_named_with_its_line_and_mended(sanduk, own: Path):
    sanduk("recipe", "new", "mine", "--inherits", "pi")
    recipe = own / "recipes" / "mine.json"
    document = json.loads(recipe.read_text())
    document["sections"] = [
        {"name": "n", "type": "npm", "install": ["left-pad@1"], "flags": ["--registry=https://x"]}
    ]
    recipe.write_text(json.dumps(document, indent=2))

    checked, built = sanduk("recipe", "check", "mine"), sanduk("build", "-r", "mine", "--dry-run")
    assert checked.returncode == 1
    assert f"$.sections[0].install[0] (line {line_of(recipe, 'left-pad')})" in checked.stderr
    assert f"$.sections[0].flags[0] (line {line_of(recipe, '--registry')})" in checked.stderr
    assert built.returncode == 2
    assert f"sanduk recipe fix {recipe} --exact left-pad@1.2.3" in built.stderr

    left = sanduk("recipe", "fix", "mine", "--yes")
    assert left.returncode == 1
    assert "left to you" in left.stderr
    assert sanduk("recipe", "fix", "mine", "--exact", "left-pad@1.3.0", "--yes").returncode == 0
    assert sanduk("build", "-r", "mine", "--dry-run").returncode == 0


def line_of(path: Path, word: str) -> int:
    return next(n for n, line in enumerate(path.read_text().splitlines(), 1) if word in line)


def test_list_kits_marks_what_no_hash_covers(sanduk, own: Path):
    sanduk("kit", "new", "odd")
    path = own / "kits" / "odd" / "kit.json"
    tools = [{"name": "r", "type": "run", "lines": ["true"]}]
    path.write_text(json.dumps({
        "name": "odd", "tools": tools, "hook": True, "egress": True, "agents": {"pi": {}},
    }))  # fmt: skip
    (own / "kits" / "broken").mkdir()
    (own / "kits" / "broken" / "kit.json").write_text('{"tools": null}')

    rows = {row["name"]: row for row in json.loads(sanduk("list", "kits", "--json").stdout)}
    assert rows["odd"]["marks"] == "hook; egress; run; agents: pi"
    assert rows["toolchain"]["marks"] == "apt"
    assert rows["docs"]["tools"] == "d2, officecli"
    assert rows["broken"]["description"].startswith("cannot be used: ")
    assert "broken" in sanduk("list", "kits").stdout


def test_a_dry_build_prints_the_tag_the_resolved_recipe_the_files_and_the_containerfile(sanduk):
    done = sanduk("build", "-r", "claude-docs", "--kit", "toolchain", "--dry-run")

    assert (done.returncode, done.stderr) == (0, "")
    first, _, rest = done.stdout.partition("\n")
    recipe, end = json.JSONDecoder().raw_decode(rest)
    assert first.startswith("# image: sanduk-claude-docs:")
    assert [(kit["name"], kit["pinned"]) for kit in recipe["kits"]] == [
        ("docs", True),
        ("toolchain", False),
    ]
    assert "# build context: skills/d2/SKILL.md\n" in rest[end:]
    assert "\nFROM docker.io/library/node:22-slim\n" in rest[end:]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["build", "--containerfile", "C", "-r", "pi"], "--containerfile excludes --agent,"),
        (["build", "--containerfile", "nowhere"], "--containerfile nowhere: there is no such file"),
        (["build", "--containerfile", ".", "--dry-run"], "--containerfile .: this is a directory"),
        (["build", "-i", "x"], "-i names what --containerfile builds"),
        (["build", "--agent", "pi", "-r", "claude"], "recipe claude is for agent claude, not pi"),
        (["build", "--kit", "nowhere"], "kit nowhere: there is none; known are browser, docs"),
        (["recipe", "check"], "recipe check needs a NAME or a PATH"),
        (["recipe", "check", "nowhere"], "recipe nowhere: there is none"),
        (["recipe", "new", "claude"], "recipe claude is shipped with sanduk"),
        (["recipe", "new", "A"], "recipe 'A': a name has lower-case letters"),
        (["recipe", "new", "x", "--inherits", "nowhere"], "recipe nowhere: there is none"),
        (["recipe", "fix", "claude"], "is shipped with sanduk; copy it under another name"),
        (["recipe", "fix", "claude", "--exact", "x"], "--exact x: give it as PACKAGE@1.2.3"),
        (["kit", "new", "docs"], "kit docs is shipped with sanduk"),
        (["kit", "check"], "kit check needs a NAME or a PATH"),
        (["kit", "pin", "claude-docs"], "is shipped with sanduk; copy it under another name"),
        (["recipe", "new", "x", "--json"], "--json goes with check, not with new"),
        (["recipe", "fix", "x", "--json"], "--json goes with check, not with fix"),
        (["kit", "new", "x", "--json"], "--json goes with check, not with new"),
        (["kit", "pin", "x", "--json"], "--json goes with check, not with pin"),
        (["recipe", "mend", "x"], "invalid choice: 'mend'"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_sentence(sanduk, words: list[str], said: str):
    done = sanduk(*words)

    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def test_what_is_there_already_is_not_overwritten(sanduk, own: Path):
    for words in (["recipe", "new", "mine"], ["kit", "new", "lint"]):
        assert sanduk(*words).returncode == 0
        again = sanduk(*words)
        assert again.returncode == 2
        assert "is there already" in again.stderr


@pytest.mark.parametrize("of", ["recipe", "kit"])
def test_the_format_is_printed_as_json_schema(sanduk, of: str):
    assert json.loads(sanduk(of, "schema").stdout)["title"] == f"A {of} of sanduk"


def test_a_check_is_told_as_json_with_every_problem(sanduk, own: Path):
    sanduk("kit", "new", "lint")
    path = own / "kits" / "lint" / "kit.json"
    told = json.loads(sanduk("kit", "check", "lint", "--json").stdout)
    assert (told["kit"]["name"], told["problems"]) == ("lint", [])
    assert told["pin"] == {"name": "lint", "sha256": told["kit"]["sha256"]}

    document = json.loads(path.read_text())
    del document["tools"][0]["sha256"]
    path.write_text(json.dumps({**document, "env": {"HOME": "/x"}}))
    done = sanduk("kit", "check", "lint", "--json")
    assert done.returncode == 1
    home, copied = json.loads(done.stdout)["problems"]
    assert home.endswith(f"sanduk recipe fix {path}")
    assert copied.endswith(f"sanduk kit pin {path}")
    assert sanduk("recipe", "fix", str(path), "--yes").returncode == 0
    assert sanduk("kit", "pin", str(path), "--yes").returncode == 0
    assert sanduk("kit", "check", "lint").returncode == 0

    sanduk("recipe", "new", "mine", "--inherits", "pi")
    told = json.loads(sanduk("recipe", "check", "mine", "--json").stdout)
    assert told["recipe"]["agent"] == "pi"
    assert told["image"].startswith("sanduk-mine:")
    assert told["problems"] == []


def put(own: Path, name: str, **keys: Any) -> Path:
    """One of the user's recipes, upon pi."""
    path = own / "recipes" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"name": name, "inherits": "pi", **keys}))
    return path


def test_half_a_character_is_refused_by_every_command(sanduk, own: Path):
    path = put(own, "half", env={"A": "\ud800"})
    for words in (["recipe", "check", "half"], ["build", "-r", "half"], ["recipe", "fix", "half"]):
        done = sanduk(*words)
        assert done.returncode == 2
        assert f"{path}: $.env.A: half a character" in done.stderr


def test_recipes_that_cannot_be_read_leave_the_list_standing(sanduk, own: Path):
    put(own, "c0")
    for number in range(1, 40):
        put(own, f"c{number}", inherits=f"c{number - 1}")
    (own / "recipes" / "dangling.json").symlink_to("nowhere")
    os.mkfifo(own / "recipes" / "pipe.json")
    (own / "recipes" / "Bad Name.json").write_text("{}")
    put(own, "unpinned", kits=[{"name": "docs"}])
    put(own, "unseen", description="zero\u200bwidth")

    done = sanduk("list", "recipes", "--json")
    rows = json.loads(done.stdout)
    told = {row["name"]: row["description"] for row in rows}
    assert done.returncode == 0
    assert told["c20"] == told["pi"]
    assert "c39.json: $.inherits: a chain of more than 32 recipes" in told["c39"]
    assert told["dangling"].endswith("dangling.json is no regular file")
    assert told["pipe"].endswith("pipe.json is no regular file")
    assert told["unpinned"].endswith(f"sanduk kit pin {own}/recipes/unpinned.json")
    assert told["unseen"] == "zero\\u200bwidth"
    assert "Bad Name.json: 'Bad Name' is no name" in told["!"]


def test_a_misspelt_agent_is_told_by_check_and_build(sanduk, own: Path):
    path = put(own, "odd", agent="nope")
    said = f"{path}: $.agent: there is no agent nope here; known are claude, codex,"
    for words in (["recipe", "check", "odd"], ["build", "-r", "odd", "--dry-run"]):
        done = sanduk(*words)
        assert done.returncode == 0
        assert said in done.stderr
    [warning] = json.loads(sanduk("recipe", "check", "odd", "--json").stdout)["warnings"]
    assert warning.startswith(said)
    for shipped in ("link", "pi"):
        assert sanduk("recipe", "check", shipped).stderr == ""


@pytest.mark.parametrize(
    ("agents", "said"),
    [
        ({"pi": {}, "nope": {}}, "$.agents.nope: there is no agent nope here; known are claude,"),
        ({}, "$.agents: it suits no agent; without the key it suits every agent"),
    ],
)
def test_a_kit_for_an_agent_that_is_none_is_told(sanduk, own: Path, agents, said: str):
    path = own / "kits" / "odd" / "kit.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"name": "odd", "agents": agents}))

    checked = sanduk("kit", "check", "odd")
    assert checked.returncode == 0
    assert f"{path}: {said}" in checked.stderr
    [warning] = json.loads(sanduk("kit", "check", "odd", "--json").stdout)["warnings"]
    assert warning.startswith(f"{path}: {said}")


@pytest.mark.parametrize(
    "words", [["build"], ["run", "--provider", "rehearsal", "look"]], ids=["build", "run"]
)
def test_a_kit_that_is_used_tells_of_agents_that_are_none(sanduk, own: Path, words: list[str]):
    for name, agents in (("odd", {"pi": {}, "nope": {}}), ("wrong", {"nope": {}})):
        path = own / "kits" / name / "kit.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps({"name": name, "agents": agents}))
    use = [words[0], "--dry-run", "--agent", "pi", *words[1:], "--kit"]
    warned, refused = sanduk(*use, "odd"), sanduk(*use, "wrong")

    said = f"sanduk: {own}/kits/odd/kit.json: $.agents.nope: there is no agent nope here; known"
    assert (warned.returncode, warned.stderr.count(said)) == (0, 1)
    assert refused.returncode == 2
    assert refused.stderr == "sanduk: --kit wrong: kit wrong suits nope, not pi\n"


def test_a_download_that_is_not_for_this_machine_is_told_by_check(sanduk, own: Path):
    here = host_architecture()
    other = "arm64" if here == "amd64" else "amd64"
    artifacts = {other: {"url": "https://x.invalid/b", "sha256": "0" * 64}}
    tool = {"name": "b", "type": "binary", "artifacts": artifacts}
    recipe = put(own, "far", sections=[tool])
    kit = own / "kits" / "far" / "kit.json"
    kit.parent.mkdir(parents=True)
    kit.write_text(json.dumps({"name": "far", "tools": [tool]}))

    said = (
        f"[0].artifacts: nothing for {here}; there is {other}; "
        f"this machine is {here}: it is not built here"
    )
    assert f"{recipe}: $.sections{said}" in sanduk("recipe", "check", "far").stderr
    assert f"{kit}: $.tools{said}" in sanduk("kit", "check", "far").stderr
    for of in ("recipe", "kit"):
        assert said in json.loads(sanduk(of, "check", "far", "--json").stdout)["warnings"][0]
