"""Real sites for a browser: `sanduk up` on a state directory of its own, and a way to its rows."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sanduk_site.first_run import AGENT
from tests.engine.running import Installation, build_missing, installed
from tests.processes import Processes, environment
from tests.site.going_site import Site, site_up

ADMIN, PASSWORD = "ada", "correct horse 4711"


@dataclass
class GoingSite:
    """Args:
    url: its address, without a slash at the end.
    link: the one-time link that makes the first administrator; "" when there is one.
    rows: calls functions of `tests.browser.rows` in a process on the site's database.
    installation: the engine's side; None where no container starts.
    up: its processes; None where the installation has them.
    """

    url: str
    link: str
    rows: Processes
    installation: Installation | None = None
    up: Site | None = None


@contextlib.contextmanager
def going_site(ground: Path) -> Iterator[GoingSite]:
    """No engine and no worker: what the pages show is put in."""
    home = ground / "home"
    more = {
        "SANDUK_ADMIN_USER": ADMIN,
        "SANDUK_ADMIN_PASSWORD": PASSWORD,
        "SANDUK_MIN_FREE_MB": "0",
    }
    with site_up(home, "--no-worker", **more) as up, rows_of(home) as rows:
        yield GoingSite(f"http://127.0.0.1:{up.port}", "", rows, up=up)


@contextlib.contextmanager
def going_site_with_engine(like: Path) -> Iterator[GoingSite]:
    """With its worker, on Docker, before its first run; the sample assistant's image is there."""
    build_missing(AGENT)
    with installed("docker", like=like) as made:
        going = made.start("up", "--port", "0").until("the site is at", limit_s=90)
        said = going.out.read_text() + going.err.read_text()
        url = re.search(r"the site is at (http://[^ ;]+)", said)
        link = re.search(r"for 24 hours: (http\S+)", said)
        assert url, said
        assert link, said
        with rows_of(made.home) as rows:
            yield GoingSite(url[1], link[1], rows, made)


@contextlib.contextmanager
def rows_of(home: Path) -> Iterator[Processes]:
    with Processes(1, "tests.browser.rows", environment(home, "")) as rows:
        yield rows
