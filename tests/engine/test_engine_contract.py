"""What every engine promises, against real ones: docker, podman, and podman without root."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from runs.engines.base import BuildFailed, EngineError, Mount
from tests.engine.engine_fixtures import IMAGE, Bench, require_build

pytestmark = [pytest.mark.engine, pytest.mark.anyio]


async def test_ready_tells_who_the_engine_is(bench: Bench):
    facts = await bench.engine.ready()

    assert facts.version[0].isdigit()
    assert facts.operating_system.strip()
    assert facts.identity == (await bench.engine.ready()).identity


async def test_this_machine_is_found_to_be_local_within_two_seconds(bench: Bench):
    started = time.monotonic()
    await bench.engine.require_local(await bench.engine.ready())

    assert time.monotonic() - started < 2


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


async def test_running_out_of_memory_is_told_by_flag_and_code(bench: Bench):
    if "memory" in (await bench.engine.ready()).missing_limits:
        pytest.skip("this engine cannot limit memory here (rootless on cgroups v1)")
    spec = bench.spec("python3", "-c", "x = b'x' * 2**30; print(len(x))", memory="32m")
    out, _, state = await bench.finished(spec)

    assert out == b""
    assert (state.exit_code, state.oom_killed) == (137, True)


async def test_a_child_out_of_memory_does_not_look_like_the_main_process(bench: Bench):
    if "memory" in (await bench.engine.ready()).missing_limits:
        pytest.skip("this engine cannot limit memory here (rootless on cgroups v1)")
    script = """python3 -c "x = b'x' * 2**30"; echo child $?"""
    out, _, state = await bench.finished(bench.spec("sh", "-c", script, memory="32m"))

    assert b"child 137" in out
    assert state.exit_code == 0


async def test_limits_and_hardening_are_on_every_container(bench: Bench):
    script = "grep -E '^(CapEff|CapBnd|NoNewPrivs|Seccomp):' /proc/self/status"
    out, _, _ = await bench.finished(bench.spec("sh", "-c", script))
    facts = dict(line.split(":\t") for line in out.decode().splitlines())

    assert int(facts["CapEff"], 16) == 0
    assert int(facts["CapBnd"], 16) == 0
    assert facts["NoNewPrivs"] == "1"
    assert facts["Seccomp"] == "2"


async def test_the_pids_limit_holds(bench: Bench):
    if "pids" in (await bench.engine.ready()).missing_limits:
        pytest.skip("this engine cannot limit processes here (rootless on cgroups v1)")
    script = "for i in $(seq 60); do sleep 5 & done; wait"
    _, err, _ = await bench.finished(bench.spec("sh", "-c", script, pids=20))

    assert b"fork" in err


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

        assert 0.9 < took < 8
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

        assert time.monotonic() - started < 8
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


@pytest.mark.parametrize(
    "name", ["plain", "with space", "a,b", "c:d", 'e"f', "g=h", "i'j", 'k",m:n=o p', "ünï", "-x"]
)
async def test_any_path_can_be_mounted(bench: Bench, name: str):
    source = bench.make(name)
    (source / "note").write_text(name)
    mount = Mount(str(source), f"/mnt/{name}")
    out, err, state = await bench.finished(bench.spec("cat", f"/mnt/{name}/note", mounts=(mount,)))

    assert (out.decode(), err, state.exit_code) == (name, b"", 0)


async def test_a_read_only_mount_cannot_be_written(bench: Bench):
    source = bench.make("work")
    spec = bench.spec("touch", "/work/new", mounts=(Mount(str(source), "/work"),))
    _, err, state = await bench.finished(spec)

    assert b"Read-only" in err
    assert state.exit_code == 1
    assert list(source.iterdir()) == []


async def test_files_in_a_mount_belong_to_the_user_given(bench: Bench):
    source = bench.make("work")
    mount = Mount(str(source), "/work", read_only=False)
    script = "id -u; id -g; id -G; touch new"
    out, err, state = await bench.finished(
        bench.spec("sh", "-c", script, mounts=(mount,), workdir="/work", extra_groups=(0,))
    )
    found = (source / "new").stat()

    assert (err, state.exit_code) == (b"", 0)
    assert out.decode().split() == [str(bench.uid), str(bench.gid), str(bench.gid), "0"]
    assert (found.st_uid, found.st_gid) == (bench.uid, bench.gid)


async def test_a_missing_mount_source_is_refused_and_not_made(bench: Bench):
    source = bench.ground / "missing"
    spec = bench.spec("true", mounts=(Mount(str(source), "/work"),))
    try:
        _, err, _ = await bench.finished(spec)  # podman looks when it starts
    except EngineError as exc:
        err = str(exc).encode()

    assert b"missing" in err
    assert not os.access(source, os.F_OK)


async def test_root_and_tmpfs_are_as_ordered(bench: Bench):
    script = "touch /tmp/ok && echo tmp; touch /var/tmp/no || echo read-only"
    spec = bench.spec("sh", "-c", script, read_only_root=True, tmpfs=("/tmp:rw,size=1m",))
    out, _, _ = await bench.finished(spec)

    assert out == b"tmp\nread-only\n"


async def test_no_network_means_loopback_only_and_no_ipv6(bench: Bench):
    script = "cut -d: -f1 /proc/net/dev | tail -n +3; cat /proc/net/if_inet6; cat /proc/net/route"
    out, _, _ = await bench.finished(bench.spec("sh", "-c", script))

    assert out.split()[0] == b"lo"
    assert b"eth" not in out
    assert b"00000000000000000000000000000001" not in out


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


async def test_proxies_of_this_host_do_not_enter_a_sealed_container(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    (tmp_path / "config.json").write_text(
        '{"proxies": {"default": {"httpProxy": "http://user:canary@127.0.0.1:9"}}}'
    )
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    monkeypatch.setenv("http_proxy", "http://user:canary@127.0.0.1:9")
    out, _, _ = await bench.finished(bench.spec("env"))

    assert b"canary" not in out


async def test_a_missing_image_names_the_command_that_makes_it(bench: Bench):
    with pytest.raises(EngineError, match=r"no-such-image:1 is not there: run `sanduk build`"):
        await bench.engine.create(bench.spec("true", image="no-such-image:1"))

    assert await bench.engine.image("no-such-image:1") is None


async def test_root_is_refused(bench: Bench):
    for user in ("0:0", "0:1000", "", "root", "1000"):
        with pytest.raises(EngineError, match="uid"):
            await bench.engine.create(bench.spec("true", user=user))


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
        await bench.engine.build(
            str(context),
            tag,
            labels=bench.labels,
            build_args={"WORD": "care"},
            on_line=lines.append,
        )
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
    with pytest.raises(BuildFailed) as caught:
        await bench.engine.build(
            str(context),
            "sanduk-engine-test:broken",
            labels=bench.labels,
            build_args={},
            on_line=lambda line: None,
        )

    assert any("the cause is here\\x1b[2J" in line for line in caught.value.lines)
    assert str(caught.value).startswith("building sanduk-engine-test:broken failed: ")
    assert "\n" not in str(caught.value)
    assert await bench.engine.image("sanduk-engine-test:broken") is None


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


@contextlib.asynccontextmanager
async def running(
    bench: Bench, script: str
) -> AsyncIterator[tuple[str, asyncio.subprocess.Process]]:
    """A container running a shell script that has said its first line, `up`."""
    container = await bench.engine.create(bench.spec("sh", "-c", script))
    process = await bench.engine.start_attached(container)
    try:
        assert await asyncio.wait_for(process.stdout.readline(), 20) == b"up\n"
        yield container, process
    finally:
        await bench.engine.remove([container])
        await asyncio.wait_for(process.communicate(), 20)
