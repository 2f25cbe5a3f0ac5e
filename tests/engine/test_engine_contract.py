"""What every engine promises, against real ones: how containers run, end and are found."""

from __future__ import annotations

import asyncio
import os
import time

import pytest

from runs.engines.base import EngineError
from tests.engine.engine_fixtures import IMAGE, Bench, running
from tests.pace import stretched

pytestmark = [pytest.mark.engine, pytest.mark.anyio]


async def test_ready_tells_who_the_engine_is(bench: Bench):
    facts = await bench.engine.ready()

    assert facts.version[0].isdigit()
    assert facts.operating_system.strip()
    assert facts.identity == (await bench.engine.ready()).identity


async def test_this_machine_is_found_to_be_local_within_two_seconds(bench: Bench):
    started = time.monotonic()
    await bench.engine.ready()
    await bench.engine.require_local()

    assert time.monotonic() - started < stretched(2)


async def test_a_container_runs_and_its_streams_stay_apart(bench: Bench):
    out, err, state = await bench.finished(bench.spec("sh", "-c", "echo to out; echo to err >&2"))

    assert (out, err) == (b"to out\n", b"to err\n")
    assert (state.status, state.exit_code, state.oom_killed) == ("exited", 0, False)


async def test_two_hundred_thousand_lines_arrive_without_loss(bench: Bench):
    script = "for i in range(200_000): print(f'line {i:06d} ' + 'x' * 40)"
    out, _, state = await bench.finished(bench.spec("python3", "-c", script))

    assert out == b"".join(b"line %06d %s\n" % (i, b"x" * 40) for i in range(200_000))
    assert state.exit_code == 0


async def test_the_output_of_an_instant_exit_is_never_lost(bench: Bench):
    for n in range(8):
        out, _, state = await bench.finished(bench.spec("echo", f"gone {n}"))

        assert out == f"gone {n}\n".encode()
        assert (state.status, state.exit_code) == ("exited", 0)


@pytest.mark.parametrize("code", [1, 3, 127, 143])
async def test_the_exit_code_is_the_one_of_the_process(bench: Bench, code: int):
    _, _, state = await bench.finished(bench.spec("sh", "-c", f"exit {code}"))

    assert (state.status, state.exit_code) == ("exited", code)


async def test_a_command_that_is_not_there_ends_with_a_failure(bench: Bench):
    _, err, state = await bench.finished(bench.spec("no-such-program"))

    assert state.status == "exited"
    assert state.exit_code in (1, 127)  # catatonit, podman's init, says 1
    assert b"no-such-program" in err or b"No such file" in err


async def test_a_container_that_only_was_created_has_no_exit_code(bench: Bench):
    container = await bench.engine.create(bench.spec("true"))
    state = await bench.engine.inspect(container)

    assert len(container) == 64
    assert state is not None
    assert (state.id, state.status, state.exit_code) == (container, "created", None)
    assert state.pid is None


async def test_a_running_container_tells_its_process_on_this_host(bench: Bench):
    async with running(bench, "echo up; sleep 60") as (container, _):
        state = await bench.engine.inspect(container)

        assert state is not None
        assert (state.status, state.exit_code) == ("running", None)
        assert state.pid is not None
        assert os.access(f"/proc/{state.pid}", os.F_OK)


async def test_stop_lets_a_process_end_by_itself(bench: Bench):
    script = 'trap "echo bye; exit 5" TERM; echo up; while :; do sleep 0.1; done'
    async with running(bench, script) as (container, process):
        await bench.engine.stop(container, grace_s=10)
        state = await bench.engine.inspect(container)

        assert await process.stdout.read() == b"bye\n"
        assert state is not None
        assert (state.status, state.exit_code) == ("exited", 5)


async def test_stop_kills_after_the_grace_and_not_before(bench: Bench):
    async with running(bench, 'trap "" TERM; echo up; while :; do sleep 0.1; done') as (
        container,
        _,
    ):
        started = time.monotonic()
        await bench.engine.stop(container, grace_s=1)
        took = time.monotonic() - started
        state = await bench.engine.inspect(container)

        assert 0.9 < took < stretched(8)
        assert state is not None
        assert (state.status, state.exit_code) == ("exited", 137)


async def test_stopping_what_is_gone_or_never_ran_is_no_error(bench: Bench):
    container = await bench.engine.create(bench.spec("true"))
    await bench.engine.stop(container, grace_s=1)
    await bench.engine.remove([container])
    await bench.engine.stop(container, grace_s=1)

    assert await bench.engine.inspect(container) is None


async def test_remove_ends_running_containers_at_once_and_forgives_missing_ones(bench: Bench):
    async with running(bench, 'trap "" TERM; echo up; while :; do sleep 0.1; done') as (
        container,
        _,
    ):
        started = time.monotonic()
        await bench.engine.remove([container, "0" * 64])
        await bench.engine.remove([container])

        assert time.monotonic() - started < stretched(8)
        assert await bench.engine.inspect(container) is None


async def test_containers_are_found_by_all_their_labels_only(bench: Bench):
    labels = {**bench.labels, "sanduk.note": "a,b=c,sanduk.run=forged"}
    container = await bench.engine.create(bench.spec("true", labels=labels))
    other = {**bench.labels, "sanduk.install": "somebody-else"}
    await bench.engine.create(bench.spec("true", labels=other))
    (row,) = await bench.engine.containers(bench.labels)

    assert row.id == container
    assert labels.items() <= row.labels.items()
    assert row.image.endswith(IMAGE)
    assert await bench.engine.containers({**bench.labels, "sanduk.run": "forged"}) == []


async def test_nothing_is_listed_without_a_label(bench: Bench):
    with pytest.raises(EngineError, match="none was given"):
        await bench.engine.containers({})


async def test_a_container_joins_the_network_of_another(bench: Bench):
    async with running(bench, "echo up; sleep 60") as (link, _):
        state = await bench.engine.inspect(link)
        spec = bench.spec(
            "readlink", "/proc/self/ns/net", network=f"container:{link}", share_userns_of=link
        )
        agent = await bench.engine.create(spec)
        process = await bench.engine.start_attached(agent)
        out, err = await process.communicate()

        assert err == b""
        assert out.decode().strip() == os.readlink(f"/proc/{state.pid}/ns/net")  # noqa: PTH115
        await bench.engine.remove([link, agent])  # the one that others live in comes first
        assert await bench.engine.containers(bench.labels) == []


async def test_output_can_be_followed_again_after_the_client_died(bench: Bench):
    script = "echo up; i=0; while [ $i -lt 40 ]; do i=$((i+1)); echo line $i; sleep 0.1; done"
    async with running(bench, script) as (container, first):
        first.kill()
        await first.wait()
        again = await bench.engine.reattach(container)
        out, _ = await again.communicate()
        lines = out.decode().rstrip().splitlines()  # podman ends with an empty line
        numbers = [int(line.split()[1]) for line in lines]

        assert numbers == list(range(numbers[0], 41))
        state = await bench.engine.inspect(container)
        assert state is not None
        assert state.exit_code == 0


async def test_the_removal_script_needs_nobody_and_catches_a_late_create(bench: Bench):
    async with running(bench, "echo up; sleep 60") as (container, _):
        script = bench.engine.removal_script(bench.labels)
        undertaker = await asyncio.create_subprocess_exec("sh", "-c", script)
        await asyncio.sleep(0.7)
        late = await bench.engine.create(bench.spec("true"))
        code = await asyncio.wait_for(undertaker.wait(), 30)

        assert code == 0
        assert "\n" not in script
        assert await bench.engine.inspect(container) is None
        assert await bench.engine.inspect(late) is None


async def test_the_removal_script_leaves_what_is_not_ours(bench: Bench):
    other = {**bench.labels, "sanduk.install": "somebody-else"}
    container = await bench.engine.create(bench.spec("true", labels=other))
    undertaker = await asyncio.create_subprocess_exec(
        "sh", "-c", bench.engine.removal_script(bench.labels)
    )
    await undertaker.wait()

    assert await bench.engine.inspect(container) is not None
