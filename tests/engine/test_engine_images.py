"""Images, on every engine: built, found by their name, or missing."""

from __future__ import annotations

import pytest

from runs.engines.base import BuildFailed, BuildSpec, EngineError
from tests.engine.engine_fixtures import IMAGE, Bench, require_build

pytestmark = [pytest.mark.engine, pytest.mark.anyio]


async def test_a_missing_image_names_the_command_that_makes_it(bench: Bench):
    with pytest.raises(EngineError, match=r"no-such-image:1 is not there: run `sanduk build`"):
        await bench.engine.create(bench.spec("true", image="no-such-image:1"))

    assert await bench.engine.image("no-such-image:1") is None


async def test_an_image_is_built_with_labels_and_found_by_its_exact_name(bench: Bench):
    require_build(bench)
    tag = f"sanduk-engine-test:{bench.labels['sanduk.run']}"
    context = bench.make("context")
    (context / "Containerfile").write_text(
        f'FROM {IMAGE}\nARG WORD\nRUN echo "built with $WORD" > /word\n'
        'ENV GREETING="a=b c"\nENTRYPOINT ["cat", "/word"]\nUSER 1000\n'
    )
    lines: list[str] = []
    try:
        spec = BuildSpec(
            context=str(context), tag=tag, labels=bench.labels, build_args={"WORD": "care"}
        )
        await bench.engine.build(spec, lines.append)
        facts = await bench.engine.image(tag)
        out, _, _ = await bench.finished(bench.spec(image=tag))
        shorter = await bench.engine.image(tag[:-1])
    finally:
        await bench.engine.call("image", "rm", "--force", tag)

    assert facts is not None
    assert facts.entrypoint == ("cat", "/word")
    assert facts.env["GREETING"] == "a=b c"
    assert facts.user == "1000"
    assert facts.size_bytes > 1_000_000
    assert bench.labels.items() <= facts.labels.items()
    assert out == b"built with care\n"
    assert any("echo" in line for line in lines)
    assert shorter is None


async def test_a_failing_build_shows_its_last_lines(bench: Bench):
    require_build(bench)
    context = bench.make("context")
    (context / "Containerfile").write_text(
        f"FROM {IMAGE}\nRUN printf 'the cause is \\033[31mhere\\033[2J\\n' && exit 3\n"
    )
    spec = BuildSpec(context=str(context), tag="sanduk-engine-test:broken", labels=bench.labels)
    with pytest.raises(BuildFailed) as caught:
        await bench.engine.build(spec, lambda line: None)

    assert any("the cause is here\\x1b[2J" in line for line in caught.value.lines)
    assert str(caught.value).startswith("building sanduk-engine-test:broken failed: ")
    assert "\n" not in str(caught.value)
    assert await bench.engine.image("sanduk-engine-test:broken") is None


async def test_images_are_found_by_all_of_their_labels_and_never_removed_under_a_container(
    bench: Bench,
):
    require_build(bench)
    tag = f"sanduk-engine-test:{bench.labels['sanduk.run']}-listed"
    context = bench.make("context")
    (context / "Containerfile").write_text(f"FROM {IMAGE}\nRUN echo {tag} > /word\n")
    engine = bench.engine
    try:
        spec = BuildSpec(context=str(context), tag=tag, labels=bench.labels)
        await engine.build(spec, lambda line: None)
        (row,) = await engine.list_images(bench.labels)
        others = await engine.list_images({**bench.labels, "sanduk.role": "another"})
        removed = await engine.remove_images({**bench.labels, "sanduk.role": "another"})
        container = await engine.create(bench.spec("true", image=tag))
        spared = not await engine.remove_image(tag)
        await engine.remove([container])
        gone = [await engine.remove_image(tag), await engine.remove_image(tag)]
        left = await engine.list_images(bench.labels)
    finally:
        await engine.call("image", "rm", "--force", tag)

    assert row.tags == (tag,)
    assert row.size_bytes > 1_000_000
    assert row.created.startswith("20")
    assert (others, removed) == ([], 0)
    assert spared
    assert gone == [True, True], "gone already is no error"
    assert left == []
