"""What podman does in its own way, against a shell script in its place."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from runs.engines.base import ContainerSpec, EngineError
from runs.engines.podman import Podman

pytestmark = pytest.mark.anyio
SPEC = ContainerSpec(image="a:1", argv=(), labels={"sanduk.run": "u"}, user="1:1")
LABELS = {"sanduk.run": "u"}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return tmp_path


def put(place: Path, script: str) -> None:
    path = place / "podman"
    path.write_text(f"#!/bin/sh\ncd {place} 2>/dev/null\n{script}\n")
    path.chmod(0o755)


def inspected(container: str, status: str = "running", **state: object) -> dict[str, object]:
    return {
        "Id": container,
        "State": {"Status": status, **state},
        "Config": {"Labels": LABELS},
    }


@pytest.mark.parametrize("complaint", ["container not known", "layer not known", "anything else"])
async def test_a_container_that_goes_between_list_and_look_is_no_error(place: Path, complaint: str):
    put(
        place,
        f"""
case $1 in
ps) echo stays; [ -e gone ] || echo goes;;
inspect)
    if [ -e gone ]; then echo '{json.dumps([inspected("stays")])}'
    else touch gone; echo 'Error: {complaint}' >&2; exit 125; fi;;
esac""",
    )

    assert [row.id for row in await Podman().containers(LABELS)] == ["stays"]


async def test_a_look_that_fails_at_what_stays_is_an_error(place: Path):
    put(place, "case $1 in ps) echo stays;; *) echo 'disk on fire' >&2; exit 125;; esac")

    with pytest.raises(EngineError, match="disk on fire"):
        await Podman().containers(LABELS)


async def test_all_that_were_listed_may_be_gone_when_looked_at(place: Path):
    put(
        place,
        """
case $1 in
ps) [ -e gone ] || echo goes;;
inspect) touch gone; echo 'Error: layer not known' >&2; exit 125;;
esac""",
    )

    assert await Podman().containers(LABELS) == []


async def test_a_start_waits_for_a_creation_that_holds_the_store(place: Path):
    """The copy of an image can take longer than anybody waits for a container that started."""
    put(
        place,
        f"""
case $1 in
create) sleep 0.5; echo created >> log; echo {"a" * 64};;
inspect) echo /;;
start) echo started >> log;;
esac""",
    )
    podman = Podman()
    creating = asyncio.create_task(podman.create(SPEC))
    await asyncio.sleep(0.1)
    process = await podman.start_attached("link")
    await process.communicate()
    await creating

    assert (place / "log").read_text().split() == ["created", "started"]


@pytest.mark.parametrize("noted", [True, False])
async def test_a_note_of_the_kernels_kill_counts_although_podman_does_not_see_it(
    place: Path, noted: bool
):
    """Rootless, podman looks for conmon's note where conmon could not write it."""
    own = place / "container"
    own.mkdir()
    state = json.dumps([inspected("c", "exited", ExitCode=137, OOMKilled=False)])
    put(
        place,
        f"""
case "$1 $2" in
"inspect --format") echo {own};;
inspect*) echo '{state}';;
esac""",
    )
    podman = Podman()
    process = await podman.start_attached("c")
    await process.communicate()
    if noted:
        (own / "oom").touch()

    found = await podman.inspect("c")
    assert found is not None
    assert found.oom_killed is noted


async def test_a_container_is_started_where_podman_removes_what_it_leaves(place: Path):
    own = place / "container"
    own.mkdir()
    path = place / "podman"
    path.write_text(f"#!/bin/sh\n[ $1 = start ] && pwd || echo {own}\n")
    path.chmod(0o755)
    process = await Podman().start_attached("c")
    out, _ = await process.communicate()

    assert out.decode().strip() == str(own)
