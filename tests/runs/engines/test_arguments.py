"""The words a container is created with."""

from __future__ import annotations

import csv
import itertools
from dataclasses import replace

import pytest

from runs.engines import docker as docker_module
from runs.engines.arguments import create_arguments, label_filters, mount_argument
from runs.engines.base import BuildSpec, ContainerSpec, EngineError, Mount
from runs.engines.building import build_arguments
from runs.engines.docker import Docker
from runs.engines.podman import Podman

SPEC = ContainerSpec(
    image="image:1", argv=("run",), labels={"sanduk.run": "u1"}, user="1000:1000", cpus=4
)


def words(spec: ContainerSpec = SPEC, *, ipv6: bool = True, selinux: bool = False) -> list[str]:
    return create_arguments(spec, ipv6_in_kernel=ipv6, selinux=selinux, processors=2)


def pairs(spec: ContainerSpec = SPEC, **options: bool) -> list[tuple[str, str]]:
    found = words(spec, **options)
    return list(itertools.pairwise(found))


@pytest.mark.parametrize(
    "pair",
    [
        ("--pull", "never"),
        ("--label", "sanduk.run=u1"),
        ("--network", "none"),
        ("--cap-drop", "ALL"),
        ("--security-opt", "no-new-privileges"),
        ("--pids-limit", "1024"),
        ("--memory", "4g"),
        ("--memory-swap", "4g"),
        ("--cpus", "2"),
        ("--user", "1000:1000"),
        ("--sysctl", "net.ipv6.conf.all.disable_ipv6=1"),
    ],
)
def test_every_container_is_hardened(pair: tuple[str, str]):
    assert pair in pairs()


def test_every_container_has_an_init_and_our_seccomp_profile():
    assert "--init" in words()
    assert any(word.endswith("seccomp.json") for word in words())


def test_nothing_is_ever_mounted_with_v():
    spec = replace(SPEC, mounts=(Mount("/a", "/b"),))

    assert not {"-v", "--volume"} & set(words(spec))


def test_ipv6_is_left_alone_where_a_namespace_is_joined_or_the_kernel_has_none():
    joined = replace(SPEC, network="container:abc")

    assert "--sysctl" not in words(joined)
    assert "--sysctl" not in words(ipv6=False)


def test_labels_are_off_only_where_selinux_is_on():
    assert ("--security-opt", "label=disable") in pairs(selinux=True)
    assert ("--security-opt", "label=disable") not in pairs()


@pytest.mark.parametrize(
    "user", ["", "0:0", "00:5", "root:root", "1000", "1000:", "-1:5", "1:x", "١:1"]
)
def test_only_a_numeric_user_that_is_not_root_is_taken(user: str):
    with pytest.raises(EngineError, match="uid"):
        words(replace(SPEC, user=user))


@pytest.mark.parametrize("path", ["/a b", "/a,b", '/a"b', '/a",b', "/a:b=c", "/ä", "/a'", "/a\\b"])
def test_a_mount_is_read_back_from_its_csv_as_it_was(path: str):
    (fields,) = csv.reader([mount_argument(Mount(path, f"/t{path}"))])

    assert fields == ["type=bind", f"src={path}", f"dst=/t{path}", "readonly"]


def test_a_writable_mount_does_not_say_readonly():
    assert mount_argument(Mount("/a", "/b", read_only=False)) == "type=bind,src=/a,dst=/b"


@pytest.mark.parametrize("path", ["a", "", "./a", "/a\nb", "/a\x00b", "/a\rb", "/a\x7f"])
def test_a_mount_with_a_relative_path_or_control_characters_is_refused(path: str):
    with pytest.raises(EngineError):
        mount_argument(Mount(path, "/b"))
    with pytest.raises(EngineError):
        mount_argument(Mount("/b", path))


def test_a_search_without_labels_is_refused():
    with pytest.raises(EngineError, match="by label"):
        label_filters({})


def test_docker_caps_the_log_and_chooses_the_runtime():
    found = Docker().create_words(replace(SPEC, oci_runtime="runsc"))

    assert found[0] == "create"
    assert " ".join(found).endswith(
        "--log-driver json-file --log-opt max-size=10m --log-opt max-file=1 --runtime runsc"
    )


def test_docker_blanks_proxies_only_where_they_cannot_work(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(docker_module, "_client_sets_proxies", lambda: True)

    assert "https_proxy=" in Docker().create_words(SPEC)
    assert "https_proxy=" not in Docker().create_words(replace(SPEC, network="default"))


def test_podman_names_the_runtime_before_its_verb():
    found = Podman().create_words(replace(SPEC, oci_runtime="crun"))

    assert found[:3] == ["--runtime", "crun", "create"]


def test_rootless_podman_keeps_the_user_and_joins_the_links_namespace(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    link = Podman().create_words(SPEC)
    agent = Podman().create_words(replace(SPEC, share_userns_of="abc"))

    assert link[link.index("--userns") + 1] == "keep-id"
    assert agent[agent.index("--userns") + 1] == "container:abc"


def test_rootful_podman_maps_nobody(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("os.geteuid", lambda: 0)

    assert "--userns" not in Podman().create_words(replace(SPEC, share_userns_of="abc"))


def test_a_build_has_its_file_its_name_its_labels_and_its_arguments():
    spec = BuildSpec(
        context="/c", tag="mine:1", labels={"a": "b"}, build_args={"WORD": "x=y"}, no_cache=True
    )
    expected = "--file /c/Containerfile --tag mine:1 --label a=b --build-arg WORD=x=y --no-cache"

    assert build_arguments(spec) == expected.split()
    assert build_arguments(replace(spec, file="/elsewhere/F"))[1] == "/elsewhere/F"
    assert "--no-cache" not in build_arguments(replace(spec, no_cache=False))
