"""A ContainerSpec as the words docker and podman share. Pure: nothing is started here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from runs.engines.base import ContainerSpec, EngineError, Mount
from runs.engines.process import printable

SECCOMP_PROFILE = Path(__file__).with_name("seccomp.json")
IPV6_OFF = "net.ipv6.conf.all.disable_ipv6=1"


def create_arguments(
    spec: ContainerSpec, *, ipv6_in_kernel: bool, selinux: bool, processors: int
) -> list[str]:
    """The options of `create` that both engines understand, without the image and its command.

    Every container gets the same hardening, whatever the spec says. Of this machine:
    `ipv6_in_kernel`: the sysctl that turns IPv6 off exists (without it the container would not
    start); `selinux`: it is on, and would forbid the mounts; `processors`: how many there are
    (docker refuses a cpu limit above them).
    """
    words = ["--pull", "never", *label_arguments(spec.labels), "--network", spec.network]
    words += ["--cap-drop", "ALL", "--security-opt", "no-new-privileges"]
    words += ["--security-opt", f"seccomp={SECCOMP_PROFILE}", "--init"]
    words += ["--security-opt", "label=disable"] if selinux else []
    words += ["--pids-limit", str(spec.pids), "--memory", spec.memory]
    words += ["--memory-swap", spec.memory, "--cpus", f"{min(spec.cpus, processors):g}"]
    words += ["--user", checked_user(spec.user)]
    for group in spec.extra_groups:
        words += ["--group-add", str(group)]
    if ipv6_in_kernel and not joins_a_container(spec):
        words += ["--sysctl", IPV6_OFF]  # a joined namespace is another container's to set
    words += ["--interactive"] if spec.interactive else []
    words += ["--tty"] if spec.tty else []
    words += ["--read-only"] if spec.read_only_root else []
    for target in spec.tmpfs:
        words += ["--tmpfs", target]
    for mount in spec.mounts:
        words += ["--mount", mount_argument(mount)]
    words += ["--workdir", spec.workdir] if spec.workdir else []
    for name, value in spec.env.items():
        words += ["--env", f"{name}={value}"]
    words += ["--entrypoint", spec.entrypoint] if spec.entrypoint is not None else []
    return words


def label_arguments(labels: Mapping[str, str]) -> list[str]:
    return [word for pair in _pairs(labels) for word in ("--label", pair)]


def label_filters(labels: Mapping[str, str]) -> list[str]:
    """Filters that must all match. Without a label every container of the host would match."""
    if not labels:
        raise EngineError("containers are only ever looked up by label, and none was given")
    return [word for pair in _pairs(labels) for word in ("--filter", f"label={pair}")]


def joins_a_container(spec: ContainerSpec) -> bool:
    return spec.network.startswith("container:")


def has_no_way_out(spec: ContainerSpec) -> bool:
    return spec.network == "none" or joins_a_container(spec)


def checked_user(user: str) -> str:
    """`user` if it is "uid:gid" in numbers and not root: root in a container with a bind mount
    can leave a set-uid file on the host, capabilities or not."""
    uid, _, gid = user.partition(":")
    if not (uid.isascii() and uid.isdigit() and gid.isascii() and gid.isdigit()):
        raise EngineError(f"a container's user is given as uid:gid, not as {printable(user)!r}")
    if int(uid) == 0:
        raise EngineError("a container never runs as uid 0")
    return user


def mount_argument(mount: Mount) -> str:
    """A bind mount in the CSV dialect of `--mount`: any path but one with control characters."""
    fields = ["type=bind", f"src={mount.source}", f"dst={mount.target}"]
    if mount.read_only:
        fields.append("readonly")
    for path in (mount.source, mount.target):
        if not path.startswith("/"):
            raise EngineError(f"a mount needs an absolute path, not {printable(path)!r}")
        if any(ord(c) < 0x20 or c == "\x7f" for c in path):
            raise EngineError(f"a mount's path has control characters: {printable(path)}")
    return ",".join(_csv_field(field) for field in fields)


def _csv_field(field: str) -> str:
    if any(c in field for c in ',"'):
        return '"' + field.replace('"', '""') + '"'
    return field


def _pairs(labels: Mapping[str, str]) -> Iterator[str]:
    return (f"{name}={value}" for name, value in labels.items())
