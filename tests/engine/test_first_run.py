"""The first run on a real engine: the sample assistant has something to say within a minute."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest

from tests.site.going_site import PASSWORD, Browser, link_in, sanduk, site_up

pytestmark = [pytest.mark.engine, pytest.mark.timeout(280)]
SOCKET = "unix:///var/run/docker.sock"


@pytest.fixture
def home(docker_ready: Path, tmp_path: Path):
    """An installation that has built its agent's image."""
    place = tmp_path / "home"
    built = sanduk(place, "build", "--agent", "pi", "-q", **engine())
    assert built.returncode == 0, built.stderr
    yield place
    sanduk(place, "clean", "--all", **engine())
    shutil.rmtree(tmp_path / "home-sample", ignore_errors=True)


def engine() -> dict[str, str]:
    return {"DOCKER_HOST": os.environ.get("DOCKER_HOST", SOCKET), "DOCKER_BUILDKIT": "0"}


def test_a_result_waits_for_approval_within_a_minute_of_the_last_click(home: Path):
    with site_up(home, **engine()) as site:
        link, browser = link_in(site), Browser()
        url = f"http://127.0.0.1:{site.port}"
        browser.post(link, username="anna", password=PASSWORD, again=PASSWORD)
        browser.post(f"{url}/first-run/team", team="one")
        browser.post(f"{url}/first-run/provider", provider="rehearsal")
        status, page, _ = browser.post(f"{url}/first-run/engine")
        assert status == 200, page
        browser.post(f"{url}/first-run/assistant")

        end, page = time.monotonic() + 60, ""
        while "it waits for you" not in page:
            assert time.monotonic() < end, (page, site.said)
            time.sleep(1)
            page = browser.get(f"{url}/first-run/assistant")[1]

        assert "sample wants to send" in browser.get(f"{url}/")[1]
        assert "All set" in browser.get(f"{url}/first-run")[1]
        assert "Traceback" not in site.said
