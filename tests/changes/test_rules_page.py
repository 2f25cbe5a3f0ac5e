"""The page about the operator's rules, held to the code."""

from __future__ import annotations

import re
from pathlib import Path

from changes import added, rules, secrets_found

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "repository-rules.md").read_text()


def table(head: str) -> list[str]:
    """The first column of a table, by its heading row."""
    rows = PAGE.partition(f"| {head} |")[2].partition("\n\n")[0].splitlines()[2:]
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row.split("|")[1])]


def test_the_example_is_a_file_that_is_read_with_every_key():
    example = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)[0]

    found = rules.read(example, name="the page")

    assert all(
        getattr(found, key) != getattr(rules.Rules(), key) for key in found.__struct_fields__
    )


def test_every_key_stands_in_the_table():
    assert sorted(table("key")) == sorted(rules.Rules.__struct_fields__)


def test_every_category_that_is_ever_flagged_stands_in_the_table():
    code = "".join(
        file.read_text()
        for file in (ROOT / "changes").glob("*.py")
        if file.name in ("results.py", "assigned.py", "secrets_found.py")
        or file.name.startswith("risky_")
    )
    used = set(re.findall(r"(?:Flag|_Kind)\(\s*\"([a-z/-]+)\"", code))

    assert len(used) > 20
    assert used == set(table("category"))


def test_the_limits_are_the_ones_that_hold():
    assert f"files above {added.FILE_MAX >> 20} MB" in PAGE
    assert f"{secrets_found.TOTAL_MAX >> 20} MB of added lines" in PAGE.replace("\n", " ")
