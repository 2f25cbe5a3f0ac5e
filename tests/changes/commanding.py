"""`sanduk change …` and `sanduk skills …` in this process, as a person types them."""

from __future__ import annotations

import json
import signal
from dataclasses import dataclass
from typing import Any

import pytest

from changes.management.commands import sanduk_change, sanduk_skills


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        return json.loads(self.out)


class Terminal:
    """Types words and reads what is answered."""

    def __init__(self, capfd: pytest.CaptureFixture[str]) -> None:
        self.capfd = capfd

    def __call__(self, *words: str) -> Said:
        return self._type(sanduk_change.Command(), "sanduk_change", words)

    def skills(self, *words: str) -> Said:
        return self._type(sanduk_skills.Command(), "sanduk_skills", words)

    def _type(self, command: Any, name: str, words: tuple[str, ...]) -> Said:
        self.capfd.readouterr()
        heard = signal.getsignal(signal.SIGINT)  # a command that is over hears no Ctrl-C
        try:
            with pytest.raises(SystemExit) as ended:
                command.run_from_argv(["sanduk", name, *words])
        finally:
            signal.signal(signal.SIGINT, heard)
        out, err = self.capfd.readouterr()
        return Said(int(ended.value.code or 0), out, err)
