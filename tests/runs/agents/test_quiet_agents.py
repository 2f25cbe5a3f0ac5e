"""Agents do their task and nothing else: no updates, no statistics, one version of everything."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import recipes
from relay import get_provider
from runs.agents import get_agent
from runs.agents.base import Request

# what each documents for it: in its environment or in its arguments
SWITCHES = {
    "claude": ("DISABLE_AUTOUPDATER", "DISABLE_TELEMETRY", "DISABLE_ERROR_REPORTING",
               "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"),
    "codex": ("CODEX_DISABLE_UPDATE_CHECK", "check_for_update_on_startup=false",
              "analytics.enabled=false"),
    "pi": ("PI_OFFLINE", "PI_SKIP_VERSION_CHECK", "PI_TELEMETRY"),
}  # fmt: skip
SHIPPED = sorted(path.stem for path in (Path(recipes.__file__).parent / "shipped").glob("*.json"))
_PINNED = {
    "npm": re.compile(r"@?[^@]+@[0-9]+\.[0-9]+\.[0-9]+[0-9A-Za-z.-]*"),
    "pip": re.compile(r"[A-Za-z0-9._-]+==[0-9][0-9A-Za-z.]*"),
}


@pytest.mark.parametrize("name", SWITCHES)
def test_an_agent_looks_for_no_updates_and_reports_to_nobody(name: str):
    """In a sealed run each such call would be an attempt that fails; in open mode it would go out.

    What an agent tries to reach all the same is recorded: `show RUN --egress`.
    """
    launched = get_agent(name).launch(
        Request(), get_provider("rehearsal"), task="x", root="http://127.0.0.1:8080", credential="t"
    )
    said = " ".join([*launched.env, *launched.argv])

    for switch in SWITCHES[name]:
        assert switch in said, switch


@pytest.mark.parametrize("name", SHIPPED)
def test_what_an_image_installs_has_one_version(name: str):
    """Debian's packages follow its release; whatever else comes from outside is pinned."""
    file = Path(recipes.__file__).parent / "shipped" / f"{name}.json"
    for section in json.loads(file.read_text()).get("sections", ()):
        for package in section.get("install", ()) if section["type"] in _PINNED else ():
            assert _PINNED[section["type"]].fullmatch(package), package
        for artifact in section.get("artifacts", {}).values():
            assert re.fullmatch(r"[0-9a-f]{64}", artifact["sha256"])
