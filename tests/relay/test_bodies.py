"""The body log."""

from __future__ import annotations

import errno
import json
import os
import stat
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

import relay.bodies
from relay.bodies import BodyLog, digest, read_body, read_outcome
from relay.records import CallRecord
from tests.relay.stand import plain, request, saying, standing

BODY = b'{"model":"m","max_tokens":9,"messages":[{},{}],"tools":[{},{},{}],"stream":true}'


def names(directory) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def mode(path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def written(directory, *bodies: bytes, **options) -> BodyLog:
    """A log that has written these bodies and is closed."""
    log = BodyLog(directory, **options)
    for number, body in enumerate(bodies, 1):
        log.request(number, body)
    log.close()
    return log


def test_a_call_is_its_body_its_outcome_and_a_line(tmp_path):
    lines = []
    directory = tmp_path / "bodies"
    log = BodyLog(directory, on_digest=lines.append)
    log.request(7, BODY)
    log.outcome(CallRecord(7, "POST", "/v1/messages", 1.5, status=200, raw_usage={"a": 2**70}))
    log.close()
    assert names(directory) == ["0007.json", "0007.outcome.json", "calls.log"]
    assert read_body(directory, 7) == BODY
    outcome = read_outcome(directory, 7)
    assert (outcome["sequence"], outcome["status"]) == (7, 200)
    assert outcome["raw_usage"] == {"a": 2**70}
    assert (directory / "calls.log").read_text() == f"{lines[0]}\n"
    assert lines == ["0007 0.1 KiB model=m max_tokens=9 messages=2 tools=3 stream=yes"]


def test_nobody_else_can_read_it(tmp_path):
    directory = tmp_path / "bodies"
    previous = os.umask(0)
    try:
        log = BodyLog(directory)
        log.request(1, BODY)
        log.outcome(CallRecord(1, "POST", "/", 0.0))
        log.close()
    finally:
        os.umask(previous)
    assert mode(directory) == 0o700
    assert {mode(path) for path in directory.iterdir()} == {0o600}


def test_nothing_is_overwritten_and_no_link_is_followed(tmp_path):
    directory, victim = tmp_path / "bodies", tmp_path / "victim"
    directory.mkdir()
    victim.write_text("mine")
    (directory / "0001.json").symlink_to(victim)
    (directory / "0002.json").write_text("earlier")
    log = written(directory, BODY, BODY, BODY)
    assert victim.read_text() == "mine"
    assert (directory / "0002.json").read_text() == "earlier"
    assert read_body(directory, 3) == BODY
    assert (log.left_out, log.stopped) == (2, "")


def test_a_linked_digest_file_stops_the_log(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    directory = tmp_path / "bodies"
    directory.mkdir()
    (directory / "calls.log").symlink_to(victim)
    log = written(directory, BODY, BODY)
    assert victim.read_text() == "mine"
    assert log.stopped


def test_a_link_is_no_directory(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(OSError, match=r"link"):
        BodyLog(tmp_path / "link")
    with pytest.raises(OSError, match=r"nowhere"):
        BodyLog(tmp_path / "nowhere" / "bodies")


def test_reading_back_follows_no_link_either(tmp_path):
    (tmp_path / "0001.json").symlink_to(tmp_path / "secret")
    (tmp_path / "secret").write_text("{}")
    with pytest.raises(OSError, match="0001"):
        read_body(tmp_path, 1)
    assert read_body(tmp_path, 2) is None
    assert read_outcome(tmp_path, 2) is None


def test_a_full_disk_stops_the_log_and_not_the_calls(tmp_path, monkeypatch):
    reasons = []
    directory = tmp_path / "bodies"
    log = BodyLog(directory, on_stop=reasons.append)
    log.request(1, BODY)
    log._thread.submit(lambda: None).result()
    real = os.write
    sizes = iter([10])

    def fill(descriptor, data):
        size = next(sizes, None)
        if size is None:
            raise OSError(errno.ENOSPC, "full")
        return real(descriptor, data[:size])

    monkeypatch.setattr("relay.bodies.os.write", fill)
    log.request(2, BODY)
    log._thread.submit(lambda: None).result()
    monkeypatch.undo()
    log.request(3, BODY)
    log.outcome(CallRecord(3, "POST", "/", 0.0))
    log.close()
    assert reasons == ["the body log stopped: No space left on device"]
    assert log.stopped == reasons[0]
    assert log.left_out == 1
    assert names(directory) == ["0001.json", "calls.log"]  # no half of a body is left


def test_the_oldest_calls_make_room(tmp_path):
    bodies = [bytes([48 + n]) * 100 for n in range(9)]
    log = written(tmp_path / "b", *bodies, max_total_bytes=350)
    assert names(tmp_path / "b") == ["0007.json", "0008.json", "0009.json", "calls.log"]
    assert log.left_out == 0


def test_a_single_body_larger_than_the_limit_is_kept(tmp_path):
    written(tmp_path / "b", b"1" * 10, b"2" * 1000, max_total_bytes=100)
    assert names(tmp_path / "b") == ["0002.json", "calls.log"]


def test_what_is_too_old_goes_when_the_log_is_opened_and_nothing_else_does(tmp_path):
    directory = tmp_path / "bodies"
    written(directory, b"old", b"new")
    (directory / "notes.json").write_text("not ours")
    long_ago = time.time() - 1000
    for file in ("0001.json", "notes.json"):
        os.utime(directory / file, (long_ago, long_ago))
    log = BodyLog(directory, max_age_s=500)
    log.close()
    assert names(directory) == ["0002.json", "calls.log", "notes.json"]


def test_what_is_there_already_counts(tmp_path):
    directory = tmp_path / "bodies"
    written(directory, b"1" * 100, b"2" * 100)
    os.utime(directory / "0001.json", (1, time.time() - 5))
    log = BodyLog(directory, max_total_bytes=250)
    log.request(3, b"3" * 100)
    log.close()
    assert names(directory) == ["0002.json", "0003.json", "calls.log"]


def test_a_disk_slower_than_the_calls_costs_bodies_not_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(relay.bodies, "MAX_WAITING_BYTES", 250)
    log = BodyLog(tmp_path / "b")
    log._thread.submit(time.sleep, 0.2)
    for number in range(1, 6):
        log.request(number, b"x" * 100)
    assert log.left_out == 3
    log.close()
    assert names(tmp_path / "b") == ["0001.json", "0002.json", "calls.log"]


def test_a_closed_log_takes_nothing_and_may_be_closed_again(tmp_path):
    log = written(tmp_path / "b", BODY)
    log.request(2, BODY)
    log.outcome(CallRecord(2, "POST", "/", 0.0))
    log.close()
    assert names(tmp_path / "b") == ["0001.json", "calls.log"]
    assert log.left_out == 1


def test_a_listener_that_fails_does_not_stop_the_log(tmp_path, caplog):
    def fail(line):
        raise RuntimeError("listener")

    log = BodyLog(tmp_path / "b", on_digest=fail)
    log.request(1, BODY)
    log.request(2, BODY)
    log.close()
    assert read_body(tmp_path / "b", 2) == BODY
    assert "body log" in caplog.text


@pytest.mark.anyio
async def test_the_relay_logs_what_it_sends_and_what_becomes_of_it(tmp_path):
    log = BodyLog(tmp_path / "b")
    async with standing(saying(plain(b"{}")), max_tokens_cap=5) as stand:
        stand.app.bodies = log
        await stand.raw(request(body=b'{"model":"m","max_tokens":900}'))
        await stand.raw(request(target="/v1/nowhere"))
        await stand.record(2)
        log.close()
        assert read_body(tmp_path / "b", 1) == stand.provider.seen[0].body
        assert b"900" not in read_body(tmp_path / "b", 1)
    assert read_outcome(tmp_path / "b", 1)["status"] == 200
    assert read_outcome(tmp_path / "b", 2)["refusal"] == "path"
    assert read_body(tmp_path / "b", 2) is None


@pytest.mark.anyio
async def test_a_log_that_cannot_write_costs_no_call(tmp_path):
    directory = tmp_path / "b"
    log = BodyLog(directory)
    (directory / "0001.json").mkdir()
    (directory / "calls.log").mkdir()
    async with standing(saying(plain(b"{}"))) as stand:
        stand.app.bodies = log
        for _ in range(3):
            assert (await stand.raw(request())).startswith(b"HTTP/1.1 200 ")
        await stand.record(3)
    log.close()
    assert log.stopped


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"model": "g", "input": [1], "max_output_tokens": 5}, "model=g max_tokens=5 messages=1"),
        ({"max_completion_tokens": 7, "max_tokens": None}, "max_tokens=7"),
        ({"model": "a b\n\x1b[31m"}, "model=a?b??[31m"),
        ({"model": 1, "max_tokens": "9", "messages": {}, "tools": 1, "stream": 1}, ""),
        ({"model": "", "max_tokens": True, "messages": None}, ""),
    ],
)  # fmt: skip
def test_a_digest_tells_what_can_be_read(body, words):
    expected = " ".join(filter(None, [words, "stream=no"]))
    assert digest(1, json.dumps(body).encode()).split("KiB ")[1] == expected


def test_a_digest_of_googles_protocol_reads_its_path():
    body = {
        "contents": [{}, {}, {}],
        "tools": [{"functionDeclarations": [{}, {}]}, {"googleSearch": {}}],
        "generationConfig": {"maxOutputTokens": 64},
    }
    line = digest(1, json.dumps(body).encode(), "/v1beta/models/gem-1:streamGenerateContent")
    assert line == "0001 0.1 KiB model=gem-1 max_tokens=64 messages=3 tools=3 stream=yes"


@pytest.mark.parametrize("body", [b"", b"[]", b"[1]", b"\xff", b"{", b"[" * 100_000])
def test_a_digest_of_no_object_says_so(body):
    assert digest(1, body).endswith("no JSON object")


@given(st.binary(max_size=200) | st.builds(lambda v: json.dumps(v).encode(), st.dictionaries(
    st.sampled_from(["model", "messages", "tools", "generationConfig", "max_tokens", "stream"]),
    st.recursive(st.none() | st.integers() | st.text(), lambda c: st.lists(c) | st.dictionaries(
        st.sampled_from(["functionDeclarations", "maxOutputTokens"]), c), max_leaves=6),
)))  # fmt: skip
def test_a_digest_is_one_line_of_ascii_whatever_comes(body):
    line = digest(1, body)
    assert line.isascii()
    assert line.isprintable()
