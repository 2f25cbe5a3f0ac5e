"""Two assistants for minutes, their worker killed twice: everything accounted for, nothing doubled.

`daily` is a scripted agent that answers each message by its number, `reader` is pi on the rehearsal
model. SANDUK_TEST_MINUTES says for how long; three unless it is set.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import re
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path

import pytest

from tests.engine.assistants import Home, answering
from tests.engine.running import Going, Installation, eventually

MINUTES = int(os.environ.get("SANDUK_TEST_MINUTES", "3"))
NAMES = ("daily", "reader")
pytestmark = [pytest.mark.engine, pytest.mark.timeout(MINUTES * 60 + 1200)]


@pytest.fixture
def received() -> Iterator[tuple[str, list[str]]]:
    """The address of a receiver on loopback, and the idempotency keys it was given."""
    keys: list[str] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            keys.append(self.headers["Idempotency-Key"])
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/hook", keys
    server.shutdown()
    thread.join()
    server.server_close()


def begin(home: Home) -> Going:
    return home.made.start("worker").until("the worker is up")


def approve_all(home: Home) -> None:
    pending = [str(item["id"]) for item in home.items() if item["state"] == "pending"]
    if pending:
        done = home.made.sanduk("approve", *pending)
        assert done.code == 0, done


def moment(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text)


def places(home: Home, address: str) -> Path:
    """Both assistants' destinations, a webhook and a program; where that notes what it got."""
    sent = home.made.ground / "sent"
    program = home.made.ground / "send"
    program.write_text(f'#!/bin/sh\necho "$SANDUK_DELIVERY_ID" >> {sent}\n')
    program.chmod(0o755)
    for words in (
        ("hook", "--webhook", address, "--allow-lan"),
        ("log", "--command", str(program)),
    ):
        given = [word for name in NAMES for word in ("--for", name)]
        done = home.made.sanduk("destination", "add", *words, *given)
        assert done.code == 0, done
    return sent


def come_to_rest(home: Home) -> None:
    """No slot begins any more, and what was said is read, approved and delivered."""
    eventually(lambda: home.waiting_messages() == [], 180)
    for name in NAMES:
        assert home.made.sanduk("assistant", "disable", name).code == 0
    eventually(lambda: all(row["state"] != "running" for row in home.wakeups()), 120)
    approve_all(home)
    eventually(lambda: {item["state"] for item in home.items()} == {"delivered"}, 120)


def test_every_slot_message_and_item_is_accounted_for_once(docker: Installation, received):
    assert docker.sanduk("build", "--agent", "pi", limit_s=900).code == 0
    home, (address, keys) = Home(docker), received
    home.add("daily", answering(3), every="1m")
    home.add("reader", "Look at every file here.", every="1m", agent="pi", args=[])
    sent = places(home, address)

    worker = begin(home)
    began, asked, kills = time.monotonic(), 0, 0
    while (passed := time.monotonic() - began) < MINUTES * 60:
        if asked <= passed // 20:
            asked += 1
            for name in NAMES:
                assert docker.sanduk("tell", name, f"question-{asked}").code == 0
        approve_all(home)
        if kills < 2 and passed > (kills + 1) * MINUTES * 20:
            kills += 1
            worker.signal(signal.SIGKILL).end()
            worker = begin(home)
        time.sleep(2)
    come_to_rest(home)
    assert worker.signal(signal.SIGTERM).end(limit_s=120).code == 0

    assert kills == 2
    for name in NAMES:
        _slots_are_whole(home, name)
        _memory_is_whole(home, name)
    answered = Counter(re.findall(r"question-\d+", " ".join(i["body"] for i in home.items())))
    assert answered == {f"question-{number}": 1 for number in range(1, asked + 1)}
    _messages_were_read_by_success(home, asked)
    assert len(keys) == len(set(keys)) == len(home.items())
    lines = sent.read_text().split()
    assert len(lines) == len(set(lines)) == len(home.items())
    docker.nothing_left(within_s=5)


def _slots_are_whole(home: Home, name: str) -> None:
    """One row for each minute from the first to the last; each ended, or waits for its time."""
    rows = home.wakeups(name)
    slots = sorted(moment(r["planned_at"]) for r in rows if r["trigger"] == "schedule")
    apart = {(later - earlier).total_seconds() for earlier, later in pairwise(slots)}
    assert apart == {60.0}, [(r["planned_at"], r["outcome"]) for r in rows]
    assert len(slots) >= MINUTES - 1
    allowed = {"succeeded", "interrupted", "overlap", "missed", ""}
    assert {row["outcome"] for row in rows} <= allowed
    good = {row["id"] for row in rows if row["outcome"] == "succeeded"}
    written = [
        item["wakeup_id"]
        for item in home.items()
        if item["assistant_id"] == rows[0]["assistant_id"]
    ]
    assert len(written) == len(set(written))
    assert set(written) == good
    assert len(good) >= MINUTES * 2 // 3


def _messages_were_read_by_success(home: Home, asked: int) -> None:
    """Each message belongs to the one wakeup that succeeded with it."""
    read = home.rows(
        "SELECT m.body, w.outcome FROM assistants_inboxmessage m "
        "JOIN assistants_wakeup w ON w.id = m.consumed_by_id"
    )
    assert {row["outcome"] for row in read} == {"succeeded"}
    each = Counter(row["body"] for row in read)
    assert each == {f"question-{number}": len(NAMES) for number in range(1, asked + 1)}


def _memory_is_whole(home: Home, name: str) -> None:
    """A snapshot before and after each wakeup that ran; `daily` writes a line more each time."""
    found = home.rows("SELECT wakeup_id, moment, digest FROM assistants_memorysnapshot")
    for row in home.wakeups(name):
        if row["outcome"] != "succeeded":
            continue
        mine = {each["moment"]: each["digest"] for each in found if each["wakeup_id"] == row["id"]}
        assert set(mine) == {"before", "after"}
        if name == "daily":
            assert mine["before"] != mine["after"]
    shown = home.made.sanduk("memory", name, "log", "--json")
    assert shown.code == 0, shown
    assert len(json.loads(shown.out)) >= 2
