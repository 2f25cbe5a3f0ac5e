"""The recipes of hax, minima and prime: downloads from a release page, pinned by their hashes."""

from __future__ import annotations

import re
import subprocess

import pytest

from recipes import load, render
from recipes.catalog import SHIPPED
from recipes.schema import Archive, Binary
from runs.agents import get_agent

NAMES = ("hax", "minima", "prime")
# What each release page offers, by architecture; sanduk 0.3 built from the same.
PINS = {
    "hax": {
        "amd64": (
            "https://github.com/OleksandrChekhovskyi/hax/releases/download/v0.5.0/"
            "hax-0.5.0-linux-x86_64.tar.gz",
            "0b8480b7d7377ffeabbdc674499f4f2b9ac10f90b6ddac49bd622b04d044fc7e",
        ),
        "arm64": (
            "https://github.com/OleksandrChekhovskyi/hax/releases/download/v0.5.0/"
            "hax-0.5.0-linux-aarch64.tar.gz",
            "ead513f65eaf4684ffcca6f0355ff0c3ad6dc214d387029dd07734e06d26c3b0",
        ),
    },
    "minima": {
        "amd64": (
            "https://github.com/shakfu/minima/releases/download/0.3.0/"
            "minima-0.3.0-linux-x86_64.tar.gz",
            "b1efe3d406b7482001339b90254fd9a0293fee77ee40fbe0171de694e5d8d37c",
        ),
        "arm64": (
            "https://github.com/shakfu/minima/releases/download/0.3.0/"
            "minima-0.3.0-linux-aarch64.tar.gz",
            "a55b48969684b9dc308899aa60257dd6729fd60a0928a3adefd21f9876b30617",
        ),
    },
    "prime": {
        "amd64": (
            "https://github.com/PrimeIntellect-ai/prime-agent/releases/download/v0.9.5/"
            "prime-agent-0.9.5-linux-x64-baseline.tar.gz",
            "7888fd9735b97a6c9865738467b00f67ecba72e9e597f1de2480fb584e74a2b0",
        ),
        "arm64": (
            "https://github.com/PrimeIntellect-ai/prime-agent/releases/download/v0.9.5/"
            "prime-agent-0.9.5-linux-arm64.tar.gz",
            "81303f98f31aed99aa641a66ccb87629940de1e45dd86d56ede1d88fd521971c",
        ),
    },
}


@pytest.mark.parametrize("name", NAMES)
def test_the_download_of_each_architecture_is_the_pinned_one(name: str) -> None:
    [section] = [
        placed.section
        for placed in load(name).sections
        if isinstance(placed.section, Binary | Archive)
    ]
    found = {arch: (made.url, made.sha256) for arch, made in section.artifacts.items()}
    assert found == PINS[name]


@pytest.mark.parametrize("name", NAMES)
def test_both_architectures_give_one_context_that_checks_each_download(name: str) -> None:
    recipe = load(name)
    made = render(recipe, arch="amd64")
    assert made == render(recipe, arch="arm64")
    script = made.files[f"steps/{name}-{name}.sh"].content.decode()
    assert subprocess.run(["sh", "-n"], input=script.encode(), check=False).returncode == 0
    for url, sha256 in PINS[name].values():
        assert f"url={url}\n    sha256={sha256}\n" in script
    assert 'if [ "$found" != "$sha256" ]' in script


@pytest.mark.parametrize("name", NAMES)
def test_the_image_is_debian_with_a_user_of_its_own(name: str) -> None:
    recipe = load(name)
    assert (recipe.base, recipe.user, recipe.home) == (
        "docker.io/library/debian:trixie-slim", "agent", "/home/agent",
    )  # fmt: skip
    assert get_agent(recipe.agent).recipe == name
    tools = render(recipe).containerfile.split("no-install-recommends ")[1].split(" \\")[0]
    assert set(tools.split()) >= {"git", "ripgrep", "ca-certificates", "curl", "jq", "python3"}


@pytest.mark.parametrize(("name", "path"), [("hax", "hax"), ("minima", "minima")])
def test_the_program_has_the_agent_s_own_name(name: str, path: str) -> None:
    """hax starts itself by it."""
    made = render(load(name))
    script = made.files[f"steps/{name}-{name}.sh"].content.decode()
    assert f"member={name}\n" in script
    assert f"/usr/local/bin/{path}\n" in script
    assert made.containerfile.endswith(f'ENTRYPOINT ["{name}"]\n')


def test_prime_is_kept_whole_and_prepares_its_python_as_the_agent() -> None:
    made = render(load("prime"))
    script = made.files["steps/prime-prime.sh"].content.decode()
    assert "strip=0\n" in script
    assert "--directory /opt/prime-agent\n" in script
    assert "ln -s /opt/prime-agent/prime-agent /usr/local/bin/prime-agent\n" in script
    lines = made.containerfile.splitlines()
    step = lines.index("RUN umask 0002 && sh -eu /usr/local/share/sanduk/steps/prime-python.sh")
    assert "USER agent:0" in lines[:step]
    assert lines.index("USER agent") < step < lines.index('ENTRYPOINT ["sanduk-prime"]')
    assert b"PRIME_AGENT_INSTALL_UV=1 prime-agent --prime-agent-bootstrap" in (
        made.files["steps/prime-python.sh"].content
    )
    assert 'PATH="/home/agent/.local/bin:$PATH"' in made.containerfile
    assert made.files["files/prime/wrapper"].mode == 0o755


def test_no_recipe_of_theirs_installs_what_is_not_pinned_but_debian_s_packages() -> None:
    for name in NAMES:
        text = (SHIPPED / f"{name}.json").read_text("utf-8")
        assert set(re.findall(r'"type": "(\w+)"', text)) <= {
            "apt", "binary", "archive", "copy", "run",
        }  # fmt: skip
        assert "latest" not in text
