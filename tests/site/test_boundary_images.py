"""Before a box is opened, both images it is made of are there."""

from __future__ import annotations

from typing import Any

import pytest

from sanduk_site.boundary import suite


class Ready:
    async def ready(self) -> None:
        return None


def test_the_links_image_is_built_before_a_box_waits_for_it(monkeypatch: pytest.MonkeyPatch):
    built: list[str] = []

    async def ensure(engine: object, image: Any, console: object) -> str:
        built.append(image.tag.partition(":")[0])
        return "facts"

    monkeypatch.setattr(suite, "get_engine", lambda name: Ready())
    monkeypatch.setattr(suite.images, "ensure", ensure)

    made = suite.chosen("docker", "pi", "", console=None)

    assert built == ["sanduk-link", "sanduk-pi"]
    assert (made.agent, made.image) == ("pi", "facts")
