"""docs/changes.md, executed: its commands are typed, and what they answer is what it prints."""

from __future__ import annotations

import getpass
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.running import SANDUK, Installation, installed

pytestmark = pytest.mark.engine
PAGE = Path(__file__).parents[2] / "docs" / "changes.md"
HOME = "/home/anna"  # where the page's reader sits
_ID = re.compile(r"\b[0-9a-f]{7,64}\b")
_TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d(?::\d\d)?")


class Shell:
    """One shell, as a person has it open."""

    def __init__(self, place: Installation) -> None:
        self.home = place.ground / "anna"
        self.home.mkdir()
        paths = f"{SANDUK.parent}:{os.environ['PATH']}"
        self._process = subprocess.Popen(
            ["bash", "--norc"], cwd=self.home, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True,
            env={**place.environment, "PATH": paths, "COLUMNS": "120"},
        )  # fmt: skip

    def type(self, command: str) -> tuple[str, int]:
        """What it answers on both streams, and its exit code."""
        typed, answers = self._process.stdin, self._process.stdout
        assert typed is not None
        assert answers is not None
        typed.write(f"{command}\nprintf '\\n@@%s\\n' $?\n")
        typed.flush()
        said = ""
        for line in answers:
            if ended := re.fullmatch(r"@@(\d+)\n", line):
                return said.removesuffix("\n"), int(ended[1])
            said += line
        raise AssertionError(said)

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


@pytest.fixture
def shell(docker_ready: Path) -> Iterator[Shell]:
    with installed("docker", like=docker_ready) as place:
        assert place.sanduk("build", "--agent", "pi", "--quiet", limit_s=600).code == 0
        found = Shell(place)
        yield found
        found.close()


def session() -> Iterator[tuple[str, str]]:
    """Each command of the page, and what it prints there."""
    for block in re.findall(r"```console\n(.*?)```", PAGE.read_text(), re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, answer = part.partition("\n")
            while answer.startswith("> "):
                more, _, answer = answer.removeprefix("> ").partition("\n")
                command += f"\n{more}"
            yield command, answer


def test_every_command_of_the_page_answers_what_it_prints(shell: Shell):
    known: dict[str, str] = {}  # an id on the page, and what it is here

    def here(text: str) -> str:
        return _ID.sub(lambda found: known.get(found[0], found[0]), text)

    typed = list(session())
    assert len(typed) > 15
    for command, printed in typed:
        said, code = shell.type(here(command))

        assert code == 0, said
        plain = _plain(said, shell.home)
        ids, own = _ID.findall(printed), _ID.findall(plain)
        assert len(ids) == len(own), said
        for old, new in zip(ids, own, strict=True):
            # shorter forms of the same id stand in commands
            known |= {old[:length]: new[:length] for length in {7, 12, len(old)}}
        assert plain.rstrip() == _at(here(printed)).rstrip(), command


def _plain(said: str, home: Path) -> str:
    account = getpass.getuser()
    text = said.replace(str(home.resolve()), HOME).replace(str(home), HOME)
    return _at(re.sub(rf"(asked by   |Approved-By: ){re.escape(account)}\b", r"\1anna", text))


def _at(text: str) -> str:
    return _TIME.sub("2026-11-30 02:50", text)
