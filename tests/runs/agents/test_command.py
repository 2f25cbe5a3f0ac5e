"""A command in the place of an agent: what it prints is kept, and counts for nothing."""

from __future__ import annotations

import pytest

from runs.agents import agent_names, get_agent
from runs.agents.base import Request
from runs.agents.command import TRACED, Command, Ending
from runs.order import Order
from runs.plan import make_plan
from runs.refusal import Refusal
from runs.stream import Listener


def test_it_is_found_by_its_name_and_listed_nowhere():
    assert get_agent("command").is_command
    assert "command" not in agent_names()


def test_what_it_prints_is_no_record_and_every_byte_is_counted():
    ending = Ending(10)
    listener = Listener(Command(ending).reader())
    said = b'{"type": "result", "ok": true}\n'

    listener.take(said)

    assert listener.hear(said, cut=False) == []
    assert listener.result() is None
    assert (ending.total, ending.read()) == (len(said), said[-10:])


@pytest.mark.parametrize("piece", [1, 3, 10, 11, 64])
def test_the_end_is_kept_wherever_the_output_is_cut(piece: int):
    text = bytes(range(48, 112))
    ending = Ending(10)

    for start in range(0, len(text), piece):
        ending.add(text[start : start + piece])

    assert (ending.total, ending.read()) == (64, text[-10:])


def test_a_gigabyte_of_pieces_keeps_no_more_than_its_end():
    ending, piece = Ending(1000), b"x" * 64

    for _ in range(20_000):
        ending.add(piece)

    assert ending.total == 20_000 * 64
    assert len(ending.read()) == 1000
    assert ending._kept < 1100


def test_the_trace_of_a_flood_of_lines_is_cut_with_a_word():
    reader = Command().reader()

    told = [trace for _ in range(TRACED + 50) for trace in reader.line("x")]

    assert len(told) == TRACED
    assert told[-1].kind == "note"


def test_it_runs_with_sh_in_an_image_of_any_recipe(tmp_path):
    order = Order(
        task="pytest -q", agent="command", recipe="codex", no_network=True,
        report_instruction=False, workdir=str(tmp_path / "w"),
    )  # fmt: skip

    plan = make_plan(order)

    assert plan.image.tag.startswith("sanduk-codex:")
    assert plan.launch("").argv[-3:] == ("/bin/sh", "-c", "pytest -q")
    assert not plan.launch("").task_on_stdin


def test_it_knows_no_model(tmp_path):
    order = Order(task="true", agent="command", report_instruction=False, workdir=str(tmp_path))

    with pytest.raises(Refusal, match="command"):
        make_plan(order)
    assert Command().check(Request(), None) is None
