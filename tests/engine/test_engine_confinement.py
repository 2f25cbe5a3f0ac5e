"""What a container may use and see, on every engine: limits, mounts, users, no network."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from runs.engines.base import EngineError, Mount
from tests.engine.engine_fixtures import Bench

pytestmark = [pytest.mark.engine, pytest.mark.anyio]


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


async def test_root_is_refused(bench: Bench):
    for user in ("0:0", "0:1000", "", "root", "1000"):
        with pytest.raises(EngineError, match="uid"):
            await bench.engine.create(bench.spec("true", user=user))
