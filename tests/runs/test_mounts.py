"""Directories lent to a run: the grammar, and what may not be covered."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from runs import mounts
from runs.engines.base import Mount
from runs.mounts import parse, parse_all
from runs.refusal import Refusal

HOME = "/home/agent"


@pytest.fixture
def host(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


@pytest.fixture
def state(tmp_path: Path) -> Path:
    (tmp_path / "sanduk").mkdir()
    return tmp_path / "sanduk"


@pytest.mark.parametrize(("ending", "read_only"), [("", True), (":ro", True), (":rw", False)])
def test_a_mount_is_read_only_unless_it_says_rw(host, state, ending, read_only):
    assert parse(f"{host}:/data{ending}", home=HOME, state=state) == Mount(
        str(host), "/data", read_only
    )


@pytest.mark.parametrize("name", ["a,b", "a:b", "a=b", "a b", "a,readonly=false", "ü", "ro", "-v"])
def test_a_host_path_of_any_characters_is_taken_as_it_is(tmp_path, state, name):
    """C-7: a comma injected mount options, a colon broke the grammar."""
    (tmp_path / name).mkdir()

    found = parse(f"{tmp_path}/{name}:/data:rw", home=HOME, state=state)

    assert found == Mount(f"{tmp_path}/{name}", "/data", read_only=False)


def test_a_link_is_resolved(tmp_path, host, state):
    (tmp_path / "link").symlink_to(host)

    assert parse(f"{tmp_path}/link:/data", home=HOME, state=state).source == str(host)


def test_a_tilde_is_this_accounts_home(host, state, monkeypatch):
    monkeypatch.setenv("HOME", str(host.parent))

    assert parse("~/data:/data", home=HOME, state=state).source == str(host)


@pytest.mark.parametrize(
    "written", ["/data/", "/data/.", "/./data", "//data", "///data", "/x/../data", "/../data"]
)
def test_a_destination_is_normalised(host, state, written):
    assert parse(f"{host}:{written}", home=HOME, state=state).target == "/data"


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("/", "hide the whole image"),
        ("//", "hide the whole image"),
        ("/.", "hide the whole image"),
        ("/x/..", "hide the whole image"),
        ("/work", "workspace"),
        ("//work", "workspace"),
        ("/./work", "workspace"),
        ("/x/../work", "workspace"),
        ("/work/", "workspace"),
        ("/work/sub", "workspace"),
        ("/work/../work/sub", "workspace"),
        (HOME, "home"),
        ("/home", "home"),
        (f"{HOME}/.config", "home"),
        ("/home/./agent", "home"),
        ("/run/sanduk", "lies in /run"),
        ("/run/sanduk/env", "lies in /run"),
        ("/run", "lies in /run"),
        ("/etc/passwd", "lies in /etc"),
        ("/etc", "lies in /etc"),
        ("/proc", "lies in /proc"),
        ("/sys/fs", "lies in /sys"),
        ("/dev/shm", "lies in /dev"),
        ("/usr/bin", "lies in /usr"),
        ("/bin", "lies in /bin"),
        ("/lib64", "lies in /lib64"),
    ],
)
def test_a_destination_that_covers_what_is_ours_is_refused(host, state, target, why):
    """C-7: `/./work`, `//work`, `/x/../work`, the home and the rest."""
    with pytest.raises(Refusal, match=why):
        parse(f"{host}:{target}:rw", home=HOME, state=state)


@pytest.mark.parametrize("target", ["/workshop", "/home/agents", "/homes", "/data/work", "/runs"])
def test_a_destination_that_only_begins_alike_is_taken(host, state, target):
    assert parse(f"{host}:{target}", home=HOME, state=state).target == target


@pytest.mark.parametrize(
    "text", ["", ":", "/data", "{host}", "{host}:", ":/data", "{host}:data", "{host}:./data",
             "{host}:ro", "{host}:/data:RW", "{host}:/data:ro:rw", "{host}:/da\nta", "{host}:/d\0"]
)  # fmt: skip
def test_what_is_not_of_the_grammar_is_refused(host, state, text):
    with pytest.raises(Refusal, match="--mount"):
        parse(text.format(host=host), home=HOME, state=state)


@pytest.mark.parametrize("name", ["missing", "file", "loop", "x" * 300])
def test_a_source_that_is_no_directory_is_refused(tmp_path, state, name):
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")

    with pytest.raises(Refusal, match="no directory"):
        parse(f"{tmp_path}/{name}:/data", home=HOME, state=state)


def test_the_home_of_an_account_that_does_not_exist_is_refused(state):
    with pytest.raises(Refusal, match="no such home directory"):
        parse("~nobody-of-that-name/x:/data", home=HOME, state=state)


def test_the_whole_host_is_refused(state):
    with pytest.raises(Refusal, match="whole host"):
        parse("/:/data", home=HOME, state=state)


@pytest.mark.parametrize("which", ["itself", "below", "above", "link"])
def test_our_own_state_directory_is_refused(tmp_path, state, which):
    (state / "runs").mkdir()
    (tmp_path / "link").symlink_to(state)
    source = {
        "itself": state,
        "below": state / "runs",
        "above": tmp_path,
        "link": tmp_path / "link",
    }[which]

    with pytest.raises(Refusal, match="state directory"):
        parse(f"{source}:/data", home=HOME, state=state)


def test_a_state_directory_that_is_a_link_is_still_recognised(tmp_path, state):
    (tmp_path / "elsewhere").symlink_to(state)

    with pytest.raises(Refusal, match="state directory"):
        parse(f"{state}:/data", home=HOME, state=tmp_path / "elsewhere")


def test_a_state_directory_that_does_not_exist_yet_is_recognised(host):
    with pytest.raises(Refusal, match="state directory"):
        parse(f"{host}:/data", home=HOME, state=host / "sanduk")


@pytest.mark.parametrize(
    "place", ["docker.sock", "podman.sock", "podman/podman.sock", "docker/docker.sock"]
)
def test_a_directory_with_an_engines_socket_is_refused(
    tmp_path_factory, host, state, place, monkeypatch
):
    (host / place).parent.mkdir(exist_ok=True)
    monkeypatch.chdir((host / place).parent)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(Path(place).name)

        with pytest.raises(Refusal, match="engine's socket"):
            parse(f"{host}:/data", home=HOME, state=state)


def test_a_file_that_is_only_called_like_an_engines_socket_is_no_reason(host, state):
    (host / "docker.sock").touch()

    assert parse(f"{host}:/data", home=HOME, state=state)


@pytest.mark.parametrize(
    ("first", "second"),
    [("/data", "/data"), ("/data", "/data/sub"), ("/data/sub", "/data"), ("/data", "//data/")],
)
def test_two_mounts_may_not_share_a_destination_or_lie_in_each_other(host, state, first, second):
    with pytest.raises(Refusal, match="collides"):
        parse_all([f"{host}:{first}", f"{host}:{second}"], home=HOME, state=state)


def test_several_mounts_stay_in_their_order(host, state):
    found = parse_all([f"{host}:/b:rw", f"{host}:/a"], home=HOME, state=state)

    assert [m.target for m in found] == ["/b", "/a"]
    assert mounts.described(found) == [f"{host} at /b (rw)", f"{host} at /a (ro)"]
