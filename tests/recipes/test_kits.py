"""Kits: what a kit.json may say, what is pinned by it, and which go together."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recipes import Recipe, RecipeError, image_tag, load, load_kit, render
from recipes.schema import parse_kit
from tests.recipes.conftest import Write, WriteKit, apt, held, pinned, sha

SHA = "0" * 64
SKILLS = ".agents/skills"


def refusal(spec: Path, **options: Any) -> str:
    with pytest.raises(RecipeError) as caught:
        load(str(spec), **options)
    return str(caught.value)


def kit_refusal(**keys: Any) -> str:
    with pytest.raises(RecipeError) as caught:
        parse_kit(json.dumps({"name": "k", **keys}).encode(), "k/kit.json")
    return str(caught.value)


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ({"tools": None}, "$.tools: expected list, got null"),
        ({"skills": 5}, "$.skills: expected list, got whole number"),
        ({"env": []}, "$.env: expected object, got list"),
        ({"egress": "yes"}, "$.egress: expected true or false, got string"),
        ({"hook": 1}, "$.hook: expected true or false, got whole number"),
        ({"provides": "x"}, "$.provides: expected list, got string"),
        ({"agents": {"pi": {"setup": ["id"]}}}, "$.agents.pi.setup[0]: expected list"),
        ({"agents": {"pi": {"setup": [[]]}}}, "$.agents.pi.setup[0]: expected list that is not"),
        ({"agents": {"pi": {"run": []}}}, "$.agents.pi: object contains unknown field run"),
        ({"kits": []}, "$: object contains unknown field kits"),
        ({"version": "1"}, "$: object contains unknown field version"),
        ({"tools": [{"name": "t", "type": "rpm"}]}, "$.tools[0].type: invalid value 'rpm'"),
        ({"skills": [{"path": "s"}]}, "$.skills[0]: a skill has either path and files, or name,"),
        (
            {"skills": [{"name": "s", "url": "https://x.invalid/", "sha256": SHA, "path": "s"}]},
            "$.skills[0]: a skill has either path and files, or name,",
        ),
        ({"skills": [{"path": "s/..", "files": {"a": SHA}}]}, "$.skills[0].path: expected a rel"),
        (
            {"skills": [{"path": "s", "files": {"../a": SHA}}]},
            '$.skills[0].files["../a"] (a key): exp',
        ),
        (
            {"skills": [{"path": "s", "files": {"a": "1"}}]},
            "$.skills[0].files.a: expected a SHA",
        ),
        (
            {"skills": [{"path": "S s", "files": {"a": SHA}}]},
            "$.skills[0]: a skill's directory has",
        ),
        (
            {"skills": [{"name": "s", "url": "http://x.invalid/", "sha256": SHA}]},
            "$.skills[0].url: expected an https:// address",
        ),
        ({"tools": [apt("t"), apt("t")]}, "$.tools[1].name: t is there twice"),
        (
            {"skills": [held("s")[0], {"name": "s", "url": "https://x.invalid/", "sha256": SHA}]},
            "$.skills[1].name: s is there twice",
        ),
    ],
)
def test_k3_a_wrong_kit_is_refused_with_its_place(keys: dict[str, Any], sentence: str) -> None:
    assert kit_refusal(**keys).startswith(f"k/kit.json: {sentence}")


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: (
    st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["name", "tools", "skills", "path", "files", "agents", "setup", "x"]),
        inner,
        max_size=4,
    )
), max_leaves=12))  # fmt: skip
def test_k3_any_json_gives_a_kit_or_a_refusal(document: Any) -> None:
    try:
        parse_kit(json.dumps(document).encode(), "kit.json")
    except RecipeError as error:
        assert str(error).startswith("kit.json: ")  # noqa: PT017


def test_every_key_of_the_format_is_read(write_kit: WriteKit) -> None:
    skill, files = held("s")
    path = write_kit(
        "k",
        files,
        **{"$schema": 5},
        description="d",
        tools=[apt("t")],
        skills=[skill, {"name": "f", "url": "https://x.invalid/f", "sha256": SHA}],
        env={"A": "1"},
        agents={"pi": {"setup": [["id", "-u"]]}},
        egress=True,
        provides=["p"],
        hook=True,
    )
    kit = load_kit(str(path.parent))
    assert (kit.name, kit.sha256, kit.pinned) == ("k", sha(path), False)
    assert [skill.name for skill in kit.skills] == ["s", "f"]
    assert kit.agents == {"pi": (("id", "-u"),)}
    assert kit.marks == ("hook", "egress", "apt", "agents: pi")


def test_a_kit_is_called_as_its_directory(write_kit: WriteKit) -> None:
    path = write_kit("k")
    path.write_text('{"name": "other"}')
    with pytest.raises(RecipeError, match=r"\$\.name: other is not its directory's name; .* k"):
        load_kit(str(path))


# -- pins ------------------------------------------------------------------------------------------


def test_a_pin_that_does_not_fit_names_the_pinning_recipe_both_hashes_and_the_file(
    write: Write, write_kit: WriteKit
) -> None:
    kit = write_kit("k", tools=[apt("t")])
    base = write("base", kits=[{"path": "kits/k", "sha256": SHA}])
    child = write("child", complete=False, inherits="./base.json")
    said = refusal(child)
    assert said.startswith(f"{base}: $.kits[0].sha256: recipe base pins kit k at {SHA}, but {kit} ")
    assert f"has {sha(kit)}" in said
    assert said.endswith(f"sanduk kit pin {base}")


def test_a_child_may_pin_an_inherited_kit_anew(write: Write, write_kit: WriteKit) -> None:
    kit = write_kit("k", tools=[apt("t")])
    write("base", kits=[{"path": "kits/k", "sha256": SHA}])
    child = write("child", complete=False, inherits="./base.json", kits=[pinned(kit)])
    assert [each.sha256 for each in load(str(child)).kits] == [sha(kit)]


def test_formatting_of_a_kit_counts(write: Write, write_kit: WriteKit) -> None:
    kit = write_kit("k")
    path = write("x", kits=[pinned(kit)])
    load(str(path))
    kit.write_text(kit.read_text() + " ")
    assert "but" in refusal(path)


def test_a_removed_kit_need_not_be_there(write: Write) -> None:
    write("base", kits=[{"path": "kits/gone", "sha256": SHA}])
    child = write("child", complete=False, inherits="./base.json", remove={"kits": ["gone"]})
    assert load(str(child)).kits == ()


def test_a_missing_kit_is_named_with_its_place(write: Write) -> None:
    path = write("x", kits=[{"name": "nowhere", "sha256": SHA}])
    said = refusal(path)
    assert said.startswith(
        f"{path}: $.kits[0]: kit nowhere: there is none; known are browser, docs, "
    )


def test_k4_a_kit_removed_on_one_side_of_a_diamond_stays_removed(
    write: Write, write_kit: WriteKit
) -> None:
    write("base", kits=[pinned(write_kit("k"))])
    write("lean", complete=False, inherits="./base.json", remove={"kits": ["k"]})
    write("other", complete=False, inherits="./base.json")
    for order in (["lean", "other"], ["other", "lean"]):
        both = write("both", complete=False, inherits=[f"./{name}.json" for name in order])
        assert load(str(both)).kits == ()


# -- what goes together ----------------------------------------------------------------------------


def two(write: Write, write_kit: WriteKit, one: Any, other: Any, **keys: Any) -> Path:
    kits = []
    for name, more in (("one", one), ("other", other)):
        files = more.pop("files", {})
        kits.append(pinned(write_kit(name, files, **more)))
    return write("x", kits=kits, **keys)


def test_two_kits_that_provide_the_same_are_refused(write: Write, write_kit: WriteKit) -> None:
    path = two(write, write_kit, {"provides": ["a", "b"]}, {"provides": ["c", "b"]})
    assert refusal(path).startswith(f"{path}: $.kits[1]: kits one and other both provide b;")


def test_two_kits_with_one_skill_are_refused(write: Write, write_kit: WriteKit) -> None:
    skill, files = held("s")
    fetched = {"name": "s", "url": "https://x.invalid/", "sha256": SHA}
    path = two(write, write_kit, {"skills": [skill], "files": files}, {"skills": [fetched]})
    assert "kits one and other both hold a skill s" in refusal(path)


def test_two_kits_that_disagree_on_a_variable_are_refused_unless_the_recipe_decides(
    write: Write, write_kit: WriteKit
) -> None:
    env = ({"env": {"A": "1", "B": "1"}}, {"env": {"A": "1", "B": "2"}})
    path = two(write, write_kit, *map(dict, env))
    assert "kits one and other set B to different values" in refusal(path)
    decided = two(write, write_kit, *map(dict, env), env={"B": "3"})
    text = render(load(str(decided))).containerfile
    assert 'A="1"' in text
    assert 'B="3"' in text
    assert 'B="1"' not in text


def test_a_kit_for_other_agents_is_refused(write: Write, write_kit: WriteKit) -> None:
    path = write("x", kits=[pinned(write_kit("k", agents={"claude": {}, "codex": {}}))])
    assert refusal(path) == f"{path}: $.kits[0]: kit k suits claude, codex, not pi"


def test_kits_of_the_command_line_are_checked_like_the_recipes_own(
    write: Write, write_kit: WriteKit
) -> None:
    kit = write_kit("k", agents={"claude": {}})
    assert refusal(write("x"), kits=[str(kit)]) == "--kit k: kit k suits claude, not pi"
    both = write("y", kits=[pinned(write_kit("l"))])
    assert "there is already a kit l" in refusal(both, kits=[str(write_kit("l"))])
    assert [kit.pinned for kit in load(str(both), kits=[str(write_kit("m"))]).kits] == [True, False]


# -- what is built ---------------------------------------------------------------------------------


def everything(write: Write, write_kit: WriteKit) -> Recipe:
    skill, files = held("s")
    script = "#!/bin/sh\n"
    files = {**files, "skills/s/more/a.txt": "more\n", "tool": script}
    skill["files"]["more/a.txt"] = sha("more\n")
    kit = write_kit(
        "k",
        files,
        tools=[
            {"name": "late", "type": "run", "lines": ["echo kit"], "user": "agent"},
            {"name": "tool", "type": "copy", "from": "tool", "to": "/opt/t", "sha256": sha(script)},
        ],
        skills=[skill, {"name": "f", "url": "https://x.invalid/f", "sha256": SHA}],
        env={"A": "kit"},
        agents={"pi": {"setup": [["sh", "-c", "echo $HOME"]]}, "codex": {"setup": [["no"]]}},
    )  # fmt: skip
    return load(
        str(
            write(
                "x",
                sections=[
                    apt("a"),
                    {"name": "own", "type": "run", "lines": ["echo own"], "user": "agent"},
                ],
                kits=[pinned(kit)],
                instructions={"text": "Be brief."},
                env={"B": "$A"},
            )
        )
    )


def test_a_kit_is_rendered_in_its_order(write: Write, write_kit: WriteKit) -> None:
    recipe = everything(write, write_kit)
    made = render(recipe, instructions_file=".pi/AGENTS.md", skills_dir=SKILLS)
    expected = [
        "FROM debian:trixie-slim",
        "no-install-recommends a",
        'COPY ["files/k/tool", "/opt/t"]',
        "agent-user.sh agent /home/agent",
        'COPY ["skills/s/SKILL.md", "/usr/local/share/sanduk/skills/s/SKILL.md"]',
        'COPY ["skills/s/more/a.txt", "/usr/local/share/sanduk/skills/s/more/a.txt"]',
        "RUN sh -eu /usr/local/share/sanduk/steps/k-skill-f.sh",
        "place-skills.sh /usr/local/share/sanduk/skills /home/agent .agents/skills agent",
        'USER agent\nENV HOME="/home/agent"',
        'A="kit"',
        'B="$A"',
        "USER agent:0",
        "RUN umask 0002 && sh -eu /usr/local/share/sanduk/steps/k-late.sh",
        'RUN ["sh", "-c", "echo $HOME"]',
        "RUN umask 0002 && sh -eu /usr/local/share/sanduk/steps/x-own.sh",
        "open-home.sh /home/agent",
        "WORKDIR /work",
        f'sanduk.kits="k@{recipe.kits[0].sha256}"',
        'ENTRYPOINT ["sh"]',
    ]
    places = [made.containerfile.find(text) for text in expected]
    assert -1 not in places, expected[places.index(-1)]
    assert places == sorted(places)
    assert '"no"' not in made.containerfile
    copied = [
        json.loads(line[5:])[0]
        for line in made.containerfile.splitlines()
        if line.startswith("COPY ")
    ]
    assert sorted(copied) == sorted(made.files)


def test_the_label_of_several_kits_joins_them_by_commas(write: Write, write_kit: WriteKit) -> None:
    path = two(write, write_kit, {}, {})
    one, other = (kit.sha256 for kit in load(str(path)).kits)
    assert f'sanduk.kits="one@{one},other@{other}"' in render(load(str(path))).containerfile


def test_k1_whatever_file_of_a_kit_changes_the_tag_changes(
    write: Write, write_kit: WriteKit
) -> None:
    tools = [{"name": "t", "type": "copy", "from": "t", "to": "/opt/t"}]
    kit = write_kit("k", {"t": "one"}, tools=tools)

    def tag() -> str:
        return image_tag(render(load(str(write("x")), kits=[str(kit)])), {})

    before = tag()
    (kit.parent / "t").write_text("two")
    assert tag() != before


def test_k1_a_pinned_kit_does_not_copy_what_it_does_not_pin(
    write: Write, write_kit: WriteKit
) -> None:
    tools = [{"name": "t", "type": "copy", "from": "t", "to": "/opt/t"}]
    kit = write_kit("k", {"t": "one"}, tools=tools)
    path = write("x", kits=[pinned(kit)])
    recipe = load(str(path))  # it parses, as it did before
    with pytest.raises(RecipeError) as caught:
        render(recipe)
    said = str(caught.value)
    assert said.startswith(f"{kit}: $.tools[0] (line 1): a pinned kit gives the sha256 of the file")
    assert said.endswith(f"sanduk kit pin {path}")


def test_k1_an_edited_file_of_a_pinned_kit_is_refused_with_both_hashes(
    write: Write, write_kit: WriteKit
) -> None:
    tools = [{"name": "t", "type": "copy", "from": "t", "to": "/opt/t", "sha256": sha("one")}]
    kit = write_kit("k", {"t": "one"}, tools=tools)
    path = write("x", kits=[pinned(kit)])
    render(load(str(path)))
    (kit.parent / "t").write_text("two")
    said = refusal(path)
    assert f"{kit}: $.tools[0].sha256: t has another content: SHA-256 {sha('one')} is" in said
    assert sha("two") in said
    assert said.endswith(f"sanduk kit pin {kit}")


def test_k2_a_kit_s_versions_and_flags_are_held_to_the_same_rules(
    write: Write, write_kit: WriteKit
) -> None:
    tools = [{"name": "n", "type": "npm", "install": ["a@1"]}]
    kit = write_kit("k", tools=tools)
    recipe = load(str(write("x", kits=[pinned(kit)])))
    with pytest.raises(RecipeError) as caught:
        render(recipe)
    assert str(caught.value) == (
        f"{kit}: $.tools[0].install[0] (line 1): a@1 may be several versions; give one exactly, "
        f"like a@1.2.3; mend it with: sanduk recipe fix {kit} --exact a@1.2.3"
    )


def test_a_kit_s_download_for_another_architecture_is_refused(
    write: Write, write_kit: WriteKit
) -> None:
    artifacts = {"arm64": {"url": "https://x.invalid/", "sha256": SHA}}
    kit = write_kit("k", tools=[{"name": "b", "type": "binary", "artifacts": artifacts}])
    recipe = load(str(write("x", kits=[pinned(kit)])))
    with pytest.raises(RecipeError, match=r"\$\.tools\[0\]\.artifacts: nothing for amd64"):
        render(recipe, arch="amd64")
    assert "k-b.sh" in render(recipe, arch="arm64").containerfile


def test_skills_for_an_agent_that_reads_none_are_refused_unless_the_kit_places_them(
    write: Write, write_kit: WriteKit
) -> None:
    skill, files = held("s")
    path = write("x", kits=[pinned(write_kit("k", files, skills=[skill]))])
    with pytest.raises(RecipeError, match="where pi reads skills is not known"):
        render(load(str(path)))
    setup = [["cp", "-R", "/usr/local/share/sanduk/skills/s", "/home/agent/s"]]
    own = write_kit("own", files, skills=[skill], agents={"pi": {"setup": setup}})
    made = render(load(str(write("y", kits=[pinned(own)]))))
    assert "place-skills.sh" not in made.containerfile
    assert f"RUN {json.dumps(setup[0])}" in made.containerfile


def test_a_kit_may_not_set_the_home(write: Write, write_kit: WriteKit) -> None:
    recipe = load(str(write("x", kits=[pinned(write_kit("k", env={"HOME": "/x"}))])))
    with pytest.raises(RecipeError, match=r"\$\.env\.HOME .*it follows from the recipe's home"):
        render(recipe)
