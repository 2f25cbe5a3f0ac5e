"""Which texts are names of images, as docker and podman read them."""

from __future__ import annotations

import pytest

from recipes import RecipeError, load, render
from recipes.image_names import is_image_name
from tests.recipes.conftest import Write

HASH = "a" * 64


@pytest.mark.parametrize(
    "name",
    [
        "debian", "node:22-slim", "docker.io/library/debian:trixie-slim", "localhost/a__b/c-d.e:x",
        "registry.example:5000/team/tool", "HOST:80/a", "Registry.example/a:T_1", "a/b/c",
        f"debian@sha256:{HASH}", f"node:22@sha256:{HASH}", f"sha256:{HASH}", "a---b", "7c2f0a",
        "a" * 255,
    ],
)  # fmt: skip
def test_a_name_that_engines_take(name: str):
    assert is_image_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "", "Node:22", "node:", "node:22:1", "a//b", "/a", "a/", "a/B", "HOST/a", "a..b", "a___b",
        "-a", "a-", "a_", "node:-x", "node:" + "t" * 129, "host:port/a", "a@sha256:12", "a@b",
        f"a@sha256:{HASH}1", f"@sha256:{HASH}", f"a@sha256:{HASH.upper()}",
        "a b", "a\n", "node:22@", "a" * 256, ":22",
        "http://a/b",
    ],
)  # fmt: skip
def test_a_name_that_they_refuse(name: str):
    assert not is_image_name(name)


def test_what_is_built_is_called_by_no_digest():
    assert is_image_name("team/tool:1", digest=False)
    assert not is_image_name(f"team/tool@sha256:{HASH}", digest=False)
    assert not is_image_name(f"sha256:{HASH}", digest=False)


def test_a_recipe_on_an_image_of_no_such_name_loads_and_is_not_built(write: Write):
    path = write("x", from_="Node:22:x")
    parent = write("y", complete=False, inherits="./x.json")

    for file in (path, parent):
        with pytest.raises(RecipeError) as refused:
            render(load(str(file)))
        assert str(refused.value) == (
            f"{path}: $.from (line 1): Node:22:x is no name of an image; write it like "
            "node:22-slim or registry.example:5000/team/tool@sha256:..."
        )
