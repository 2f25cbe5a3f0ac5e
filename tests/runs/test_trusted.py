"""What the host runs or obeys is out of reach for every agent that may write."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from recipes import catalog
from runs import mounts, trusted, workspace
from runs.refusal import Refusal
from runs.trusted import Reach
from tests.accounts import needs_root


@pytest.fixture
def configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "ground" / "config"))
    place = tmp_path / "ground" / "config" / "sanduk"
    (place / "kits").mkdir(parents=True)
    return place


def lent(path: Path, ending: str, state: Path) -> None:
    mounts.parse(f"{path}:/data{ending}", home="/home/agent", state=state)


@pytest.mark.parametrize("below", ["..", ".", "kits", "../.."])
def test_recipes_and_kits_are_lent_for_reading_only(configuration, state, below):
    place = (configuration / below).resolve()

    lent(place, ":ro", state)
    with pytest.raises(Refusal, match="could change the recipes and kits of this account"):
        lent(place, ":rw", state)
    with pytest.raises(Refusal, match="could change the recipes and kits of this account"):
        workspace.check(str(place), state=state)


def test_recipes_that_are_not_there_yet_cannot_be_made_by_an_agent(tmp_path, state, monkeypatch):
    (tmp_path / "ground").mkdir()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "ground" / "none"))

    with pytest.raises(Refusal, match="recipes and kits"):
        lent(tmp_path / "ground", ":rw", state)


@pytest.mark.parametrize("place", [Path(mounts.__file__).parent, Path(catalog.__file__).parents[1]])
def test_sanduks_own_code_is_lent_for_reading_only(place, state):
    lent(place, ":ro", state)
    with pytest.raises(Refusal, match="sanduk's own code"):
        lent(place, ":rw", state)
    with pytest.raises(Refusal, match="sanduk's own code"):
        workspace.check(str(place), state=state)


@pytest.mark.parametrize("place", ["/usr/share", "/etc", "/var", "/opt", "~"])
def test_places_of_the_system_are_not_lent_for_writing(place, state):
    with pytest.raises(Refusal, match="no place for an agent to write in"):
        lent(Path(place).expanduser(), ":rw", state)


def test_a_directory_above_the_home_is_not_lent_for_writing(tmp_path, state, monkeypatch):
    (tmp_path / "homes" / "anna").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "homes" / "anna"))

    with pytest.raises(Refusal, match="no place for an agent to write in"):
        lent(tmp_path / "homes", ":rw", state)


def test_a_program_of_the_engines_is_out_of_reach(tmp_path, state, monkeypatch):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "docker").symlink_to("/bin/true")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")

    with pytest.raises(Refusal, match="could change the program docker"):
        lent(tmp_path / "bin", ":rw", state)


def test_an_ordinary_directory_is_lent_for_writing(tmp_path, configuration, state):
    (tmp_path / "ground" / "data").mkdir()

    lent(tmp_path / "ground" / "data", ":rw", state)


def test_each_link_on_the_way_counts(tmp_path):
    for name in ("real", "links", "more"):
        (tmp_path / name).mkdir()
    (tmp_path / "real" / "program").touch()
    (tmp_path / "more" / "second").symlink_to("../real")
    (tmp_path / "links" / "first").symlink_to(tmp_path / "more" / "second")
    way = tmp_path / "links" / "first" / "program"

    held = [name for name in ("real", "links", "more") if Reach(tmp_path / name).holds(way)]

    assert held == ["real", "links", "more"]
    assert not Reach(tmp_path / "elsewhere").holds(way)


def test_links_in_a_circle_end(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")

    assert Reach(tmp_path).holds(tmp_path / "a")
    assert not trusted.Reach(tmp_path / "other").holds(tmp_path / "a")


@needs_root
def test_a_bind_mount_of_a_place_is_that_place(tmp_path):
    (tmp_path / "trusted" / "inner").mkdir(parents=True)
    (tmp_path / "other").mkdir()
    script = (
        'mount --bind "$1/trusted" "$1/other" && "$2" -c "\n'
        "from pathlib import Path; from runs.trusted import Reach; import sys\n"
        "root = Path(sys.argv[1]); reach = Reach(root / 'other')\n"
        "print(reach.holds(root / 'trusted' / 'inner'), reach.overlaps(root / 'trusted'))\n"
        "print(Reach(root / 'other' / 'inner').overlaps(root / 'trusted'))\n"
        '" "$1"'
    )
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, "sh", str(tmp_path), sys.executable],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    if "unshare" in done.stderr or "mount:" in done.stderr:
        pytest.skip("this machine allows no mount")

    assert done.stdout.split() == ["True", "True", "True"], done.stderr
