"""The first line of the link is the answer of its probe; without one the run ends with a reason."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from runs import link
from runs.engines.base import EngineError
from runs.seal import ProbeFailed
from tests.accounts import acting_as, needs_root

pytestmark = pytest.mark.anyio


async def linked(out: bytes, err: bytes = b"", *, ended: bool = True) -> link.Link:
    """A link that has said this."""
    streams = []
    for said in (out, err):
        stream = asyncio.StreamReader()
        stream.feed_data(said)
        if ended:
            stream.feed_eof()
        streams.append(stream)
    return link.Link("container", None, *streams)  # type: ignore[arg-type]


async def test_the_first_line_is_the_answer():
    assert await link.answer(await linked(b'{"ms": 1}\nmore', ended=False)) == {"ms": 1}


async def test_a_link_that_ends_before_it_answers_is_told_by_its_last_words():
    silent = await linked(b'{"ms"', b"sh: python3: not found\nstopped\n")

    with pytest.raises(EngineError, match="the link did not start: stopped"):
        await link.answer(silent)


async def test_a_link_that_says_nothing_is_not_waited_for_for_ever(monkeypatch):
    monkeypatch.setattr(link, "ANSWER_S", 0.05)

    with pytest.raises(ProbeFailed, match="said nothing within"):
        await link.answer(await linked(b"", ended=False))


@pytest.mark.parametrize("said", [b"hello\n", b"[]\n", b"\xff\xfe\n", b"{" * 300_000])
async def test_an_answer_that_is_none_has_failed(said):
    with pytest.raises(ProbeFailed):
        await link.answer(await linked(said, ended=False))


async def test_watching_drains_what_it_says_and_ends_with_it():
    talking = await linked(b"x" * 10_000_000, b"y" * 100_000)

    async with asyncio.timeout(5):
        await link.watch(talking)


@needs_root
async def test_the_link_is_never_root_and_may_connect_to_the_socket(tmp_path: Path):
    assert 0 not in link.uid_gid()
    (tmp_path / "relay.sock").touch(mode=0o600)

    link.hand_over(tmp_path / "relay.sock")

    facts = (tmp_path / "relay.sock").stat()
    assert (facts.st_uid, facts.st_gid) == link.uid_gid()
    with acting_as():
        assert link.uid_gid() == (os.geteuid(), os.getegid())
