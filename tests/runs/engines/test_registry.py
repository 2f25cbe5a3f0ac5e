"""Which engine is used."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from runs.engines import engine_names, get_engine, registry
from runs.engines.base import Engine, EngineUnavailable
from runs.engines.docker import Docker


class Third(Docker):
    name = "third"


def install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *clis: str) -> None:
    for cli in clis:
        (tmp_path / cli).write_text("#!/bin/sh\n")
        (tmp_path / cli).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))


def offer(monkeypatch: pytest.MonkeyPatch, **engines: str) -> None:
    points = [EntryPoint(name, value, registry.GROUP) for name, value in engines.items()]
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: points)


@pytest.mark.parametrize(
    ("platform", "clis", "chosen"),
    [
        ("linux", ("docker", "podman", "container"), "docker"),
        ("linux", ("podman",), "podman"),
        ("linux", ("container",), "docker"),
        ("linux", (), "docker"),
        ("darwin", ("docker", "podman", "container"), "apple"),
        ("darwin", ("docker", "podman"), "docker"),
        ("darwin", ("podman",), "podman"),
        ("darwin", (), "apple"),
    ],
)
def test_the_default_is_the_first_installed(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    platform: str,
    clis: tuple[str, ...],
    chosen: str,
):
    monkeypatch.setattr(registry.sys, "platform", platform)
    install(monkeypatch, tmp_path, *clis)

    assert get_engine().name == chosen


@pytest.mark.parametrize("name", ["apple", "docker", "podman"])
def test_an_engine_that_is_named_is_used_installed_or_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
):
    install(monkeypatch, tmp_path)

    assert get_engine(name).name == name
    assert isinstance(get_engine(name), Engine)


def test_an_unknown_engine_is_refused_with_those_there_are():
    with pytest.raises(EngineUnavailable, match=r"no engine is called rkt.*apple, docker, podman"):
        get_engine("rkt")


def test_packages_offer_engines(monkeypatch: pytest.MonkeyPatch):
    offer(monkeypatch, third=f"{__name__}:Third")

    assert isinstance(get_engine("third"), Third)
    assert engine_names() == ("apple", "docker", "podman", "third")
    assert registry.plugin_problems() == ()


def test_no_package_takes_the_place_of_a_built_in(monkeypatch: pytest.MonkeyPatch):
    offer(monkeypatch, docker=f"{__name__}:Third", broken="no.such:Thing")

    assert type(get_engine("docker")) is Docker
    first, second = registry.plugin_problems()
    assert "no.such:Thing" in first
    assert "docker, which is built in" in second


def test_a_class_is_loaded_by_its_path():
    assert isinstance(get_engine(f"{__name__}:Third"), Third)


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("no.such.module:Thing", "cannot be loaded"),
        ("runs.engines.base:Nothing", "cannot be loaded"),
        ("runs.engines.base:Mount", "not a subclass of Engine"),
        ("runs.engines.cli:CliEngine", "lacks"),
        (":", "cannot be loaded"),
    ],
)
def test_what_is_no_engine_is_refused(path: str, says: str):
    with pytest.raises(EngineUnavailable, match=says):
        get_engine(path)


def test_the_engine_in_the_documentation_is_a_complete_one():
    page = Path(__file__).parents[3] / "docs" / "engines.md"
    _, _, rest = page.read_text().partition("```python\n")
    example, _, _ = rest.partition("```")
    names: dict[str, object] = {}
    exec(compile(example, str(page), "exec"), names)  # noqa: S102
    engine = names["Skiff"]

    assert isinstance(engine, type)
    assert isinstance(engine(), Engine)
