"""docs/memory.md, held to the code."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from assistants.config import Config
from assistants.management.commands import sanduk_memory
from assistants.memory import capture, retention
from tests.bench.memory_cost import FILES, LIMIT

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "memory.md").read_text()


def test_every_command_of_the_page_can_be_typed_as_it_stands():
    parser = sanduk_memory.Command().create_parser("sanduk", "sanduk_memory")
    blocks = "".join(re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL))
    lines = [shlex.split(line, comments=True) for line in blocks.splitlines()]
    seen = {parser.parse_args(words[2:]).action for words in lines}

    assert all(words[:2] == ["sanduk", "memory"] for words in lines)
    assert seen == set(sanduk_memory.ACTIONS)


def test_the_figures_of_the_page_are_those_of_the_code():
    for figure in (
        f"`memory_max_mb` ({Config().memory_max_mb})",
        f"more than {capture.MAX_DEPTH} deep; more than {capture.MAX_ENTRIES:,} entries",
        f"The newest {retention.KEEP} snapshots",
        f"{retention.SLACK} or more at a time",
        f"{FILES:,} files takes at most twice",
    ):
        assert figure in PAGE
    assert LIMIT == 2.0
