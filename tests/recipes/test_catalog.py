"""Where recipes and kits are found: shipped, the user's, a package's; nowhere else."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from recipes import (
    RecipeError,
    kit_names,
    load,
    load_kit,
    misnamed,
    package_problems,
    recipe_names,
)
from recipes.catalog import find_kit
from tests.recipes.conftest import Write, WriteKit


class Package:
    """An installed package that offers recipes and kits."""

    def __init__(self, site: Path) -> None:
        self.site = site

    def offers(self, name: str, code: str, *, kits: str = "", recipes: str = "") -> None:
        module = f"offering_{name.replace('-', '_')}"
        (self.site / f"{module}.py").write_text(code)
        info = self.site / f"{name}-1.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
        lines = []
        for group, named in (("kits", kits), ("recipes", recipes)):
            if named:
                lines += [f"[sanduk.{group}]", f"{named} = {module}:PATH"]
        (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
        importlib.invalidate_caches()


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Package]:
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))
    yield Package(site)
    for name in [name for name in sys.modules if name.startswith("offering_")]:
        del sys.modules[name]


def own(config_home: Path, kit: Path) -> Path:
    """Put a kit among the user's."""
    place = config_home / "sanduk" / "kits"
    place.mkdir(parents=True, exist_ok=True)
    return kit.parent.rename(place / kit.parent.name) / "kit.json"


def test_a_kit_is_found_among_the_users_and_never_in_the_working_directory(
    write_kit: WriteKit, config_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kit = write_kit("mine")
    monkeypatch.chdir(kit.parent.parent)
    with pytest.raises(RecipeError, match="kit mine: there is none; known are browser, docs"):
        load_kit("mine")
    moved = own(config_home, kit)
    assert load_kit("mine").path == str(moved)
    assert "mine" in kit_names()


def test_the_name_of_a_shipped_kit_cannot_be_taken(write_kit: WriteKit, config_home: Path) -> None:
    own(config_home, write_kit("docs"))
    with pytest.raises(RecipeError, match="shipped kit, which cannot be replaced"):
        load_kit("docs")


def test_a_kit_by_path_is_its_directory_or_its_file(
    write_kit: WriteKit, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    kit = write_kit("k")
    monkeypatch.chdir(kit.parent)
    (tmp_path / "called").symlink_to(kit.parent)
    assert find_kit(str(kit)) == find_kit(f"{kit.parent}/") == find_kit("./") == kit
    assert find_kit("../k") == find_kit("./../k/../k/kit.json").resolve() == kit
    (kit.parent / "other.json").touch()
    with pytest.raises(RecipeError, match=r"a kit's file is called kit\.json"):
        find_kit("./other.json")
    with pytest.raises(RecipeError, match="expected called"):
        load_kit(str(tmp_path / "called"))


@pytest.mark.parametrize("spec", ["", "UP", "a_b", "x\0y", "./none", "~nobody/x", "/"])
def test_a_bad_spec_of_a_kit_is_refused(spec: str) -> None:
    with pytest.raises(RecipeError):
        load_kit(spec)


def test_a_package_offers_a_kit_by_the_path_of_its_directory(
    package: Package, write_kit: WriteKit
) -> None:
    kit = write_kit("lint")
    package.offers("lint-tools", f"PATH = {str(kit.parent)!r}", kits="lint")
    assert load_kit("lint").path == str(kit)
    assert "lint" in kit_names()


def test_a_package_offers_a_recipe_by_its_path(package: Package, write: Write) -> None:
    path = write("theirs")
    package.offers("their-recipes", f"import pathlib; PATH = pathlib.Path({str(path)!r})",
                   recipes="theirs")  # fmt: skip
    assert load("theirs").path == str(path)
    assert "theirs" in recipe_names()


def test_two_that_have_one_name_are_refused_with_both_paths(
    package: Package, write_kit: WriteKit, config_home: Path
) -> None:
    theirs = write_kit("lint")
    moved = own(config_home, theirs)
    theirs = write_kit("lint")
    package.offers("lint-tools", f"PATH = {str(theirs.parent)!r}", kits="lint")
    with pytest.raises(RecipeError) as caught:
        load_kit("lint")
    assert f"both {moved} and package lint-tools have it" in str(caught.value)
    assert str(theirs) in str(caught.value)


def test_two_packages_with_one_name_are_refused(package: Package, write_kit: WriteKit) -> None:
    kit = write_kit("lint")
    for name in ("one", "two"):
        package.offers(name, f"PATH = {str(kit.parent)!r}", kits="lint")
    with pytest.raises(RecipeError, match="both package one and package two have it"):
        load_kit("lint")


def test_a_package_cannot_replace_what_is_shipped_and_is_named(
    package: Package, write: Write, write_kit: WriteKit
) -> None:
    package.offers("taker", f"PATH = {str(write('pi'))!r}", recipes="pi",
                   kits="docs")  # fmt: skip
    assert "/shipped/" in load("pi").path
    assert "/shipped/" in load_kit("docs").path
    for kind, name in (("recipe", "pi"), ("kit", "docs")):
        assert package_problems(kind) == (  # type: ignore[arg-type]
            f"package taker offers {kind} {name}, whose name is shipped with sanduk; left out",
        )


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("raise SystemExit(3)", "cannot be loaded: SystemExit: 3"),
        ("1 / 0", "cannot be loaded: ZeroDivisionError"),
        ("", "cannot be loaded: AttributeError"),
        ("PATH = 5", "offering_bad:PATH is int, not a path"),
        ("PATH = 'relative'", "relative is no file with an absolute path"),
        ("PATH = '/nowhere'", "/nowhere is no file with an absolute path"),
    ],
)
def test_a_broken_offer_is_refused_by_name(package: Package, code: str, sentence: str) -> None:
    package.offers("bad", code, kits="broken")
    with pytest.raises(RecipeError, match="kit broken of package bad") as caught:
        load_kit("broken")
    assert sentence in str(caught.value)


@pytest.mark.parametrize("kind", ["link", "fifo", "directory", "device"])
def test_what_is_no_regular_file_is_listed_and_said_to_be_none(
    config_home: Path, kind: str
) -> None:
    for file in (
        config_home / "sanduk" / "recipes" / "odd.json",
        config_home / "sanduk" / "kits" / "odd" / "kit.json",
    ):
        file.parent.mkdir(parents=True)
        if kind == "link":
            file.symlink_to("nowhere")
        elif kind == "fifo":
            os.mkfifo(file)
        elif kind == "directory":
            file.mkdir()
        else:
            file.symlink_to("/dev/null")
        assert "odd" in (kit_names() if file.name == "kit.json" else recipe_names())
        read = load_kit if file.name == "kit.json" else load
        with pytest.raises(RecipeError, match=r"odd\.json is no regular|kit\.json is no regular"):
            read("odd")
        if kind != "directory":
            with pytest.raises(RecipeError, match="this is no regular file"):
                read(str(file))


def test_a_file_whose_name_is_none_is_told(config_home: Path, write_kit: WriteKit) -> None:
    recipes = config_home / "sanduk" / "recipes"
    recipes.mkdir(parents=True)
    for name in ("My Recipe.json", "fine.json", "notes.txt"):
        (recipes / name).write_text("{}")
    own(config_home, write_kit("Kit_A"))

    assert misnamed("recipe") == (
        f"{recipes}/My Recipe.json: 'My Recipe' is no name: "
        "lower-case letters, digits and hyphens; rename it",
    )
    [said] = misnamed("kit")
    assert said.startswith(f"{config_home}/sanduk/kits/Kit_A/kit.json: 'Kit_A' is no name")
    assert "My Recipe" not in recipe_names()
