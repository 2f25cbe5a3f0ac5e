"""Nothing that this host runs or obeys lies where an agent can write."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from assistants import arriving, destinations
from assistants.delivery.kinds import CommandSettings, FileSettings
from assistants.models import Assistant, Destination
from runs.refusal import Refusal
from tests.accounts import ORDINARY
from tests.assistants.waking import assistant_in, gate_of, runs, woken

pytestmark = pytest.mark.django_db
__all__ = ["runs"]

FILE = 'agent = "pi"\nprovider = "rehearsal"\napproval = true\n'


@pytest.fixture(autouse=True)
def state(tmp_path: Path, settings) -> Path:
    settings.SANDUK_HOME = tmp_path / "state"
    return settings.SANDUK_HOME


def laid_out(place: Path, toml: str = "") -> Path:
    for name in ("workspace", "reports"):
        (place / name).mkdir(parents=True)
    if os.geteuid() == 0:
        os.chown(place / "workspace", ORDINARY, ORDINARY)
    (place / "brief.md").write_text("look around")
    (place / "assistant.toml").write_text(FILE + toml)
    return place


def script(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    "source", [".", "..", "reports", "workspace/..", "link", "../ground/daily"]
)
@pytest.mark.parametrize("way", ['mounts = ["{}:/x:rw"]', 'args = ["--mount", "{}:/x:rw"]',
                                 'args = ["--mount={}:/x:rw"]'])  # fmt: skip
def test_its_own_directory_is_lent_for_reading_only(tmp_path, source, way):
    place = laid_out(tmp_path / "ground" / "daily", way.format(source))
    (place / "link").symlink_to("../daily/reports")
    if source.startswith("../ground"):
        (tmp_path / "ground" / "ground").symlink_to(".")

    key = way.split()[0]
    with pytest.raises(Refusal, match=rf"line 4: {key}: its agent could .*directory of daily itse"):
        arriving.add(place)
    assert not Assistant.objects.exists()

    (place / "assistant.toml").write_text(FILE + way.format(source).replace(":rw", ""))
    if source != "..":
        assert arriving.add(place).created


def test_a_part_of_its_workspace_may_be_lent_for_writing(tmp_path):
    place = laid_out(tmp_path / "ground" / "daily", 'mounts = ["workspace/part:/x:rw"]')
    (place / "workspace" / "part").mkdir()

    assert arriving.add(place).created


@pytest.mark.parametrize("target", [".", "..", "reports"])
def test_a_workspace_that_leads_to_what_is_trusted_is_refused(tmp_path, target):
    place = laid_out(tmp_path / "ground" / "daily")
    (place / "workspace").rmdir()
    (place / "workspace").symlink_to(target)

    with pytest.raises(Refusal, match=r"its agent could (write in|change it)"):
        arriving.add(place)


@pytest.mark.parametrize("source", ["one", "one/workspace", "."])
def test_the_directory_of_another_assistant_is_out_of_reach(tmp_path, source):
    arriving.add(laid_out(tmp_path / "ground" / "one"))
    lent = tmp_path / "ground" / source
    place = laid_out(tmp_path / "two", f'mounts = ["{lent}:/x:rw"]')

    with pytest.raises(Refusal, match="change the directory of assistant one"):
        arriving.add(place)


def test_one_that_arrives_where_another_ones_agent_writes_is_refused(tmp_path):
    (tmp_path / "shared").mkdir()
    arriving.add(laid_out(tmp_path / "one", f'mounts = ["{tmp_path}/shared:/x:rw"]'))

    for place in (tmp_path / "shared" / "two", tmp_path / "one" / "workspace" / "two"):
        with pytest.raises(Refusal, match=r"(agent|directory) of assistant one"):
            arriving.add(laid_out(place))


@pytest.mark.parametrize(
    "argv", [("{tool}",), ("sh", "{tool}"), ("{link}",), ("sh", "-c", "cat >/dev/null; '{tool}'")]
)
@pytest.mark.parametrize("first", ["destination", "assistant"])
def test_what_a_destination_runs_is_out_of_reach(tmp_path, argv, first):
    tool, link = script(tmp_path / "tools" / "send"), tmp_path / "links" / "send"
    link.parent.mkdir()
    link.symlink_to("/bin/true")
    lent = link.parent if argv == ("{link}",) else tool.parent
    command = CommandSettings(argv=tuple(each.format(tool=tool, link=link) for each in argv))
    place = laid_out(tmp_path / "one", f'mounts = ["{lent}:/x:rw"]')

    if first == "assistant":
        arriving.add(place)
        with pytest.raises(Refusal, match=r"destination ops: .* the agent of assistant one could"):
            destinations.add("ops", "command", command, timeout_s=10)
        assert not Destination.objects.exists()
    else:
        destinations.add("ops", "command", command, timeout_s=10)
        with pytest.raises(Refusal, match=r"mounts: .*change a file of the destination ops"):
            arriving.add(place)


def test_the_file_of_a_destination_is_out_of_reach_before_it_is_there(tmp_path):
    (tmp_path / "log").mkdir()
    arriving.add(laid_out(tmp_path / "one", f'mounts = ["{tmp_path}/log:/x:rw"]'))

    with pytest.raises(Refusal, match=r"destination log: .*/log/items lies in"):
        destinations.add("log", "file", FileSettings(f"{tmp_path}/log/items"), timeout_s=10)


def test_what_its_image_is_made_of_is_out_of_reach(tmp_path):
    place = laid_out(tmp_path / "one", 'recipe = "workspace/own.json"')

    with pytest.raises(Refusal, match="change what its image is made of"):
        arriving.add(place)


@pytest.mark.django_db(transaction=True)
def test_what_came_into_reach_meanwhile_is_found_before_the_gate_runs(tmp_path, runs):
    (tmp_path / "data").mkdir()
    one = assistant_in(tmp_path / "ground", mounts=(f"{tmp_path}/data:/x:rw",), gate="gate")
    gate_of(one, f"touch {tmp_path}/ran")
    (tmp_path / "data").rmdir()
    (tmp_path / "data").symlink_to(one.directory)

    ended = woken(one)

    assert (ended.outcome, runs.seen) == ("broken", [])
    assert "could write in" in ended.reason
    assert "the directory of daily itself" in ended.reason
    assert not (tmp_path / "ran").exists()
