"""kill -9 of any process of `sanduk up`: a part comes back, and without a supervisor all end."""

from __future__ import annotations

import os
import signal
import sqlite3
from pathlib import Path

import pytest

from tests.site.going_site import Site, eventually, is_there, site_up

pytestmark = [
    pytest.mark.timeout(280),
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at /proc"),
]
PARTS = {"web", "sanduk", "runs"}


@pytest.fixture
def site(tmp_path: Path):
    with site_up(tmp_path / "home") as going:
        eventually(lambda: set(going.children()) == PARTS, why=going.said)
        yield going


def killed(site: Site, part: str) -> None:
    """Kill a part, and wait until another process has its place."""
    before = site.children()[part]
    os.kill(before, signal.SIGKILL)
    eventually(lambda: site.children().get(part, before) != before, why=site.said)


def test_each_part_comes_back_when_it_is_killed(site: Site):
    for part in sorted(PARTS):
        killed(site, part)

    eventually(lambda: site.ready()["worker"] == "ok", why=site.said)
    assert site.get("/healthz") == (200, b'{"ok": true}')
    assert site.process.poll() is None
    assert "the process of the site is gone (signal 9); starting it again" in site.said
    assert "the main process of the runs cluster is gone; starting it again" in site.said


def test_who_asks_while_the_site_is_started_again_waits_and_is_answered(site: Site):
    os.kill(site.children()["web"], signal.SIGKILL)

    # the socket is the supervisor's: no connection is refused
    assert site.get("/healthz")[0] == 200


def test_a_site_that_dies_again_and_again_is_given_up_loudly(site: Site):
    for _ in range(5):
        killed(site, "web")
    os.kill(site.children()["web"], signal.SIGKILL)

    assert site.process.wait(60) == 1
    assert "the site died 6 times in a row" in site.said


def test_a_killed_supervisor_leaves_nothing_within_a_minute(site: Site):
    """Also one that is killed before its parts have come to themselves."""
    family = site.family()
    assert len(family) >= 3

    site.process.kill()

    eventually(lambda: not any(map(is_there, family)), why=str(family))


def test_a_stop_ends_all_of_it_and_the_database_is_whole(site: Site, tmp_path: Path):
    family = site.family()

    site.process.send_signal(signal.SIGTERM)

    assert site.process.wait(60) == 0
    assert not any(map(is_there, family))
    with sqlite3.connect(tmp_path / "home" / "sanduk.sqlite3") as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_ctrl_c_does_the_same(site: Site):
    site.process.send_signal(signal.SIGINT)

    assert site.process.wait(60) == 0
