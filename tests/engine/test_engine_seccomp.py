"""The seccomp profile: what agents need works, and what it closes is open without it."""

from __future__ import annotations

import json
import platform
from dataclasses import replace

import pytest

from runs.engines.arguments import SECCOMP_PROFILE
from tests.engine.engine_fixtures import IMAGE, Bench, told
from tests.engine.running import AGENTS

pytestmark = [pytest.mark.engine, pytest.mark.anyio]

SOCKETS = """
import socket
for family, kind in (("AF_UNIX", 1), ("AF_INET", 1), ("AF_INET6", 1), ("AF_NETLINK", 3),
                     ("AF_VSOCK", 1), ("AF_ALG", 5), ("AF_PACKET", 3), ("AF_BLUETOOTH", 3)):
    try:
        socket.socket(getattr(socket, family), kind)
        print(family, "open")
    except OSError as error:
        print(family, error.errno)
"""

# Numbers of the x86_64 table; the names are what the kernel calls them.
FORBIDDEN = {
    "unshare": (272, 0x10000000),
    "setns": (308, -1, 0),
    "mount": (165, 0, 0, 0, 0, 0),
    "bpf": (321, 0, 0, 0),
    "keyctl": (250, 0, 0),
    "add_key": (248, 0, 0, 0, 0, 0),
    "userfaultfd": (323, 0),
    "perf_event_open": (298, 0, 0, -1, -1, 0),
    "io_uring_setup": (425, 1, 0),
    "kexec_load": (246, 0, 0, 0, 0),
    "init_module": (175, 0, 0, 0),
    "reboot": (169, 0, 0, 0, 0),
    "swapon": (167, 0, 0),
    "open_by_handle_at": (304, -1, 0, 0),
    "socket AF_VSOCK": (41, 40, 1, 0),
    "netlink other than routing": (41, 16, 3, 12),
    "clone with a new user namespace": (56, 0x10000000 | 17, 0, 0, 0, 0),
    "process_vm_writev": (311, 1, 0, 0, 0, 0, 0),
}
CALLS = """
import ctypes, errno, json, sys
libc = ctypes.CDLL(None, use_errno=True)
for name, call in json.loads(sys.argv[1]).items():
    ctypes.set_errno(0)
    result = libc.syscall(*map(ctypes.c_long, call))
    print(name, errno.errorcode.get(ctypes.get_errno(), "allowed"), sep=": ", flush=True)
"""
COMPAT = """
import ctypes, mmap
code = bytes.fromhex("53b814000000cd805bc3")  # push rbx; mov eax, 20; int 0x80; pop rbx; ret
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(code)
address = ctypes.addressof(ctypes.c_char.from_buffer(page))
print("pid", ctypes.CFUNCTYPE(ctypes.c_long)(address)(), flush=True)
"""
WORK = """
import concurrent.futures, hashlib, multiprocessing, os, socket, sqlite3, subprocess, tempfile

with concurrent.futures.ThreadPoolExecutor(8) as pool:
    assert sum(pool.map(len, ["abc"] * 50)) == 150
with multiprocessing.get_context("fork").Pool(2) as pool:
    assert pool.map(abs, [-1, -2]) == [1, 2]
with multiprocessing.get_context("spawn").Pool(1) as pool:
    assert pool.map(abs, [-3]) == [3]
with tempfile.TemporaryDirectory() as folder:
    database = sqlite3.connect(folder + "/db")
    database.execute("pragma journal_mode = wal")
    database.execute("create table t (x)")
    database.commit()
    database.close()
    os.symlink("db", folder + "/link")
    os.mkfifo(folder + "/fifo")
server = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(server.getsockname())
client.close()
server.close()
assert subprocess.run(["sh", "-c", "ls / | sort | head -1"], capture_output=True).returncode == 0
assert subprocess.run(["setpriv", "--no-new-privs", "true"]).returncode == 0
assert len(hashlib.sha256(os.urandom(8)).hexdigest()) == 64
print("worked")
"""
NODE = """
const { Worker } = require('worker_threads');
const { execFileSync } = require('child_process');
const os = require('os'), fs = require('fs'), net = require('net');
fs.watch('/tmp').close();
os.networkInterfaces();
execFileSync('sh', ['-c', 'true']);
const server = net.createServer((s) => s.end('hi')).listen(0, '127.0.0.1', () => {
  net.connect(server.address().port).on('data', () => {}).on('close', () => {
    server.close();
    new Worker("require('worker_threads').parentPort.postMessage('worked')", { eval: true })
      .on('message', (m) => console.log(m));
  });
});
"""
GIT = """
cd /tmp && git init -q r && cd r && echo x > f && git add f
git -c user.name=n -c user.email=e@example.org commit -qm one
cd /tmp && git clone -q r s && git -C s gc -q && git -C s log --format=%s
"""


on_docker = pytest.mark.parametrize("bench", ["docker"], indirect=True)


def unprotected(*argv: str, profile: str = "") -> str:
    """What a command prints in a container that has all our protection but the profile."""
    options = ["--network", "none", "--cap-drop", "ALL", "--user", "1000:1000"]
    options += ["--label", "sanduk.install=test-unprotected"]
    options += ["--security-opt", f"seccomp={profile}"] if profile else []
    return told("docker", "run", "--rm", *options, IMAGE, *argv).stdout


async def test_only_the_four_needed_socket_families_open(bench: Bench):
    out, err, _ = await bench.finished(bench.spec("python3", "-c", SOCKETS))
    families = dict(line.split() for line in out.decode().splitlines())

    assert err == b""
    assert [name for name, answer in families.items() if answer == "open"] == [
        "AF_UNIX", "AF_INET", "AF_INET6", "AF_NETLINK",
    ]  # fmt: skip


@on_docker
async def test_vsock_opens_under_the_default_profile_of_this_daemon(bench: Bench):
    if "AF_VSOCK open" not in unprotected("python3", "-c", SOCKETS, profile="unconfined"):
        pytest.skip("this kernel has no vsock")
    if "AF_VSOCK open" not in unprotected("python3", "-c", SOCKETS):
        pytest.skip("this daemon's own profile closes vsock too")
    out, _, _ = await bench.finished(bench.spec("python3", "-c", SOCKETS))

    assert b"AF_VSOCK open" not in out


@pytest.mark.skipif(platform.machine() != "x86_64", reason="numbers of x86_64")
async def test_what_reaches_for_the_kernel_is_refused(bench: Bench):
    calls = json.dumps(FORBIDDEN)
    out, err, _ = await bench.finished(bench.spec("python3", "-c", CALLS, calls))
    answers = dict(line.split(": ") for line in out.decode().splitlines())

    assert err == b""
    assert set(answers) == set(FORBIDDEN)
    assert {name: said for name, said in answers.items() if said != "EPERM"} == {}


@on_docker
@pytest.mark.skipif(platform.machine() != "x86_64", reason="numbers of x86_64")
async def test_without_the_profile_namespaces_and_keys_are_in_reach(bench: Bench):
    calls = json.dumps({name: FORBIDDEN[name] for name in ("unshare", "userfaultfd", "keyctl")})
    out = unprotected("python3", "-c", CALLS, calls, profile="unconfined")

    assert "unshare: allowed" in out
    assert "keyctl: EPERM" not in out


@pytest.mark.skipif(platform.machine() != "x86_64", reason="numbers of x86_64")
async def test_clone3_looks_absent_so_that_libc_falls_back(bench: Bench):
    calls = json.dumps({"clone3": (435, 0, 0)})
    out, _, _ = await bench.finished(bench.spec("python3", "-c", CALLS, calls))

    assert out == b"clone3: ENOSYS\n"


@on_docker
@pytest.mark.skipif(platform.machine() != "x86_64", reason="machine code of x86_64")
async def test_the_32_bit_door_past_the_filter_is_shut(bench: Bench):
    open_door = unprotected("python3", "-c", COMPAT, profile="unconfined")
    if not open_door.startswith("pid "):
        pytest.skip("this kernel has no 32-bit calls")
    out, _, state = await bench.finished(bench.spec("python3", "-c", COMPAT))

    assert out == b""
    assert state.exit_code == 128 + 31  # SIGSYS


async def test_python_does_its_work(bench: Bench):
    out, err, state = await bench.finished(bench.spec("python3", "-c", WORK))

    assert (out, err, state.exit_code) == (b"worked\n", b"", 0)


@on_docker
async def test_node_does_its_work(bench: Bench):
    if await bench.engine.image("node:22-slim") is None:
        pytest.skip("Docker has no image node:22-slim")
    spec = replace(bench.spec("node", "-e", NODE), image="node:22-slim")
    out, err, state = await bench.finished(spec)

    assert (out, err, state.exit_code) == (b"worked\n", b"", 0)


@on_docker
async def test_git_and_the_agents_run(bench: Bench):
    ran = []
    for agent in AGENTS:
        tags = told("docker", "image", "ls", "--format", "{{.Repository}}:{{.Tag}}",
                    f"sanduk-{agent}").stdout.split()  # fmt: skip
        for tag in tags[:1]:
            for script, said in ((f"{agent} --version", ""), (GIT, "one\n")):
                spec = bench.spec("-c", script, image=tag, entrypoint="/bin/sh",
                                   env={"HOME": "/tmp"})  # fmt: skip
                out, err, state = await bench.finished(spec)

                assert (state.exit_code, tag) == (0, tag), err
                assert out.decode().endswith(said)
            ran.append(agent)
    if not ran:
        pytest.skip("no image of an agent has been built yet")


@on_docker
async def test_socat_forwards_for_the_link(bench: Bench):
    tags = told("docker", "image", "ls", "--format", "{{.Repository}}:{{.Tag}}", "sanduk-link")
    if not tags.stdout.split():
        pytest.skip("the link's image has not been built yet")
    script = (
        "socat TCP-LISTEN:8080,bind=127.0.0.1,fork,reuseaddr,nodelay EXEC:'echo through' & "
        "for n in 1 2 3 4 5 6 7 8 9; do socat -u TCP:127.0.0.1:8080 - && break; sleep 0.2; done"
    )
    spec = bench.spec("-c", script, image=tags.stdout.split()[0], entrypoint="/bin/sh")
    out, _, _ = await bench.finished(spec)

    assert out == b"through\n"


DOORS = """
acct add_key bpf chroot clock_settime clone clone3 create_module delete_module fanotify_init
finit_module fsmount fsopen init_module io_uring_setup ioperm iopl kcmp kexec_file_load kexec_load
keyctl lookup_dcookie mbind mount mount_setattr move_mount move_pages name_to_handle_at nfsservctl
open_by_handle_at open_tree perf_event_open personality pivot_root process_vm_readv
process_vm_writev ptrace quotactl reboot request_key set_mempolicy setdomainname sethostname setns
settimeofday socket socketcall socketpair stime swapoff swapon syslog umount umount2 unshare uselib
userfaultfd vhangup vm86 vm86old
"""


def test_the_profile_is_an_allow_list_without_the_known_doors():
    profile = json.loads(SECCOMP_PROFILE.read_text())
    always = {
        name
        for rule in profile["syscalls"]
        if rule["action"] == "SCMP_ACT_ALLOW" and not rule.get("args") and not rule.get("includes")
        for name in rule["names"]
    }

    assert profile["defaultAction"] == "SCMP_ACT_ERRNO"
    assert always.isdisjoint(DOORS.split())
    assert "architectures" not in profile  # then only the native one: no 32-bit calls
    assert "archMap" not in profile
