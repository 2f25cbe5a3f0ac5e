"""Request bodies, kept outside of every mount and read back."""

from __future__ import annotations

import json
import stat

import pytest

from tests.engine.running import DONE, Installation

pytestmark = pytest.mark.engine
ASK = """curl -s -H "Authorization: Bearer $RELAY_TOKEN" -d '{"model":"rehearsal","messages":[]}' \
$RELAY_URL/chat/completions >/dev/null"""


def test_a_kept_body_is_private_and_can_be_read_back(docker: Installation):
    docker.run(f"{ASK}; {DONE}", "--log-bodies")
    uid = docker.row["uid"]
    (call,) = docker.show()["relay_calls"]
    directory = docker.home / "runs" / uid / "bodies"

    modes = {stat.S_IMODE(each.stat().st_mode) for each in directory.glob("*.json")}
    assert modes == {0o600}
    # the agent's first call is number 1 everywhere; the probe's own are nobody's
    assert call["sequence"] == 1
    assert {each.name for each in directory.iterdir()} == {
        "0001.json", "0001.outcome.json", "calls.log",
    }  # fmt: skip
    assert docker.sanduk("logs", uid, "--calls").out.split()[0] == "1"
    shown = docker.sanduk("show", uid, "--call", "1")
    assert shown.code == 0
    assert '{"model":"rehearsal","messages":[]}' in shown.out
    assert '"status": 200' in shown.out


def test_what_was_not_kept_is_said(docker: Installation):
    docker.run(f"{ASK}; {DONE}")
    done = docker.sanduk("show", docker.row["uid"], "--call", "1")

    assert done.code == 2
    assert "--log-bodies" in done.err


@pytest.mark.parametrize("place", ["inside", "above", "itself"])
def test_a_log_the_agent_could_reach_is_refused(docker: Installation, place: str):
    docker.work.mkdir()
    docker.work.chmod(0o777)
    inside = docker.work / "logs"
    inside.mkdir()
    chosen = {"inside": inside, "above": docker.work.parent, "itself": docker.work}[place]
    if docker.work.stat().st_uid == 0:
        import os

        os.chown(docker.work, 1000, 1000)
    done = docker.run(DONE, "--log-bodies", "--log-dir", str(chosen))

    assert done.code == 2
    assert "overlap" in done.err


def test_bodies_go_where_they_are_asked_to_go(docker: Installation):
    place = docker.ground / "bodies"
    place.mkdir()
    docker.run(f"{ASK}; {DONE}", "--log-bodies", "--log-dir", str(place))

    (kept,) = (place / docker.row["uid"]).glob("*[0-9].json")
    assert json.loads(kept.read_bytes())["model"] == "rehearsal"
