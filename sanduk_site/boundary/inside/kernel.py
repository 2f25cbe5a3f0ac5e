"""What the kernel would let a program do."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import socket
import stat

from .box import Box, Untried, status

USUAL_DEVICES = {
    "null", "zero", "full", "random", "urandom", "tty", "console", "ptmx", "fuse", "net/tun",
}  # fmt: skip
REFUSED = (errno.EPERM, errno.EACCES, errno.ENOSYS)
CALLS = {
    "x86_64": {
        "add_key": 248, "bpf": 321, "perf_event_open": 298, "userfaultfd": 323,
        "io_uring_setup": 425, "unshare": 272, "setns": 308, "kexec_load": 246, "mount": 165,
    },
    "aarch64": {
        "add_key": 217, "bpf": 280, "perf_event_open": 241, "userfaultfd": 282,
        "io_uring_setup": 425, "unshare": 97, "setns": 268, "kexec_load": 104, "mount": 40,
    },
}  # fmt: skip
FAMILIES = {"AF_PACKET": 17, "AF_ALG": 38, "AF_VSOCK": 40, "AF_BLUETOOTH": 31}
NEW_USER, NEW_MOUNTS = 0x10000000, 0x00020000


def privileges(box: Box) -> list[str]:
    facts, reached = status(), []
    if os.geteuid() == 0 or os.getuid() == 0:
        reached.append("it runs as uid 0")
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        if int(facts.get(name, "0"), 16):
            reached.append(f"{name} is {facts[name]}")
    if facts.get("NoNewPrivs", "1") != "1":
        reached.append("a set-uid program may gain rights")
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setuid(0) == 0 and os.geteuid() == 0:
        reached.append("setuid(0) succeeds")
    os.makedirs("/tmp/boundary-mount", exist_ok=True)
    if libc.mount(b"none", b"/tmp/boundary-mount", b"tmpfs", 0, None) == 0:
        reached.append("a file system can be mounted")
    # a namespace of a kernel of its own is none of the host's
    if not box.order["own_kernel"] and new_namespace(libc):
        reached.append("a new user namespace can be made")
    for path in (
        "/proc/sysrq-trigger",
        "/proc/sys/kernel/core_pattern",
        "/proc/sys/kernel/modprobe",
        "/sys/kernel/uevent_helper",
    ):
        try:
            os.close(os.open(path, os.O_WRONLY))
            reached.append(f"{path} can be written")
        except OSError:
            pass
    return reached


def new_namespace(libc: ctypes.CDLL) -> bool:
    child = os.fork()
    if child == 0:
        os._exit(0 if libc.unshare(NEW_USER | NEW_MOUNTS) == 0 else 1)
    return os.waitpid(child, 0)[1] == 0


def seccomp(box: Box) -> list[str]:
    reached = []
    if box.order["own_kernel"]:
        raise Untried("this runtime has a kernel of its own, which filters what reaches the host's")
    numbers = CALLS.get(platform.machine())
    if status().get("Seccomp") != "2":
        reached.append("no filter of system calls is on")
    if numbers is None:
        raise Untried(f"the numbers of system calls on {platform.machine()} are not known here")
    libc = ctypes.CDLL(None, use_errno=True)
    for name, number in numbers.items():
        ctypes.set_errno(0)
        got = libc.syscall(number, *map(ctypes.c_long, (0x7FFFFFFF, 0, 0, 0, 0, 0)))
        if got >= 0 or ctypes.get_errno() not in REFUSED:
            reached.append(f"the system call {name} is let in")
    for name, number in FAMILIES.items():
        try:
            socket.socket(number, socket.SOCK_STREAM if number != 17 else socket.SOCK_DGRAM).close()
            reached.append(f"a socket of {name} opens")
        except OSError:
            pass
    return reached


def devices(box: Box) -> list[str]:
    reached = []
    for folder, folders, found in os.walk("/dev"):
        folders[:] = [name for name in folders if name not in ("pts", "shm", "mqueue")]
        for name in found:
            path = os.path.join(folder, name)
            mode = os.lstat(path).st_mode
            known = os.path.relpath(path, "/dev") in USUAL_DEVICES
            if stat.S_ISBLK(mode) or (stat.S_ISCHR(mode) and not known):
                reached.append(f"the device {path} is there")
    try:
        os.mknod("/tmp/boundary-device", stat.S_IFBLK | 0o600, os.makedev(8, 0))
        os.unlink("/tmp/boundary-device")
        reached.append("a device can be made")
    except OSError:
        pass
    return reached


def limits(box: Box) -> list[str]:
    def read(*paths: str) -> str:
        for path in paths:
            try:
                return open(f"/sys/fs/cgroup/{path}").read().strip()
            except OSError:
                continue
        return ""

    found = {
        "processes": read("pids.max", "pids/pids.max"),
        "memory": read("memory.max", "memory/memory.limit_in_bytes"),
    }
    known = {what: limit for what, limit in found.items() if limit}
    if not known:
        raise Untried("the limits cannot be read in here")
    return [
        f"there is no limit on {what}"
        for what, limit in known.items()
        if limit == "max" or int(limit) > 1 << 60
    ]
