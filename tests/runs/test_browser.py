"""Who says whether an image holds a browser: a flag, a repository's rules, the environment."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from runs import browser
from runs.order import Order, restored
from runs.plan import make_plan
from runs.refusal import Refusal


@pytest.fixture
def kits_of(tmp_path: Path):
    """kits_of(browser=…, …): the kits in the image that an order amounts to."""

    def made(**fields: Any) -> list[str]:
        given = {"task": "x", "workdir": str(tmp_path / "work"), "agent": "pi"}
        plan = make_plan(Order(**{**given, "provider": "rehearsal", **fields}))
        return [kit.partition("@")[0] for kit in plan.image.kits]

    return made


@pytest.mark.parametrize(
    ("usual", "asked", "there"),
    [
        (False, None, False),
        (True, None, True),
        (False, True, True),
        (True, False, False),
        (True, True, True),
    ],
)
def test_a_flag_goes_before_the_environment(kits_of, settings, usual, asked, there):
    settings.SANDUK_BROWSER = usual

    assert kits_of(browser=asked) == (["browser"] if there else [])
    assert kits_of(browser=asked, recipe="pi") == (["browser"] if there else [])


def test_it_comes_once_and_beside_other_kits(kits_of, settings):
    settings.SANDUK_BROWSER = True

    assert kits_of(kits=("browser",)) == ["browser"]
    assert kits_of(kits=("toolchain",)) == ["toolchain", "browser"]


def test_another_kit_that_provides_one_takes_its_place(kits_of, tmp_path: Path):
    own = tmp_path / "kits" / "firefox"
    own.mkdir(parents=True)
    (own / "kit.json").write_text(json.dumps({"name": "firefox", "provides": ["browser"]}))

    assert kits_of(kits=(str(own),), browser=True) == ["firefox"]


@pytest.mark.parametrize("flag", ["image", "containerfile"])
def test_an_image_used_as_it_is_is_not_given_one(kits_of, settings, tmp_path: Path, flag):
    settings.SANDUK_BROWSER = True
    (tmp_path / "Containerfile").write_text("FROM scratch\n")
    named = {flag: {"image": "mine:1", "containerfile": str(tmp_path / "Containerfile")}[flag]}

    assert kits_of(**named) == []
    with pytest.raises(Refusal, match=f"--browser goes into .* --{flag} is used as it is"):
        kits_of(browser=True, **named)


@pytest.mark.parametrize(("asked", "said"), [(True, "--browser"), (None, "SANDUK_BROWSER")])
def test_an_agent_that_reads_no_skills_is_refused_by_name(settings, asked, said):
    settings.SANDUK_BROWSER = True

    with pytest.raises(Refusal, match=f"^{said}: .* where prime reads skills .* --no-browser"):
        browser.kits("prime", (), wanted=asked)
    assert browser.kits("prime", (), wanted=False) == ()


def test_an_order_of_before_there_were_browsers_says_nothing():
    stored = Order(task="").stored()
    del stored["browser"]

    assert restored(stored, "x").browser is None
