"""Several processes, each with sanduk's Django set up, that are called at one moment."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import time
import traceback
from pathlib import Path
from types import TracebackType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LEAD_S = 0.1  # between a call and the moment at which all begin


def environment(home: Path, database_url: str) -> dict[str, str]:
    """Of a process that works on this state directory and this database, with nobody's keys."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
    return {
        **kept,
        "DJANGO_SETTINGS_MODULE": "sanduk_site.settings",
        "PYTHONPATH": str(ROOT),
        "SANDUK_HOME": str(home),
        "SANDUK_MIN_FREE_MB": "0",
        "DATABASE_URL": database_url,
    }


class Processes:
    """Use it as a context manager.

    Args:
        module: its functions can be called; they take and return what JSON can hold. Its `number`
            becomes the process's own, from 0.
    """

    def __init__(self, number: int, module: str, environ: dict[str, str]) -> None:
        self._all = [
            subprocess.Popen(
                [sys.executable, "-m", "tests.processes", module, str(each)],
                cwd=ROOT, env=environ, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            )
            for each in range(number)
        ]  # fmt: skip

    def __enter__(self) -> Processes:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for process in self._all:
            process.kill()
            process.communicate()

    def one(self, name: str, *args: Any) -> Any:
        """The first process calls a function."""
        return self._called(self._all[:1], name, args)[0]

    def each(self, name: str, *args: Any) -> list[Any]:
        """All call a function at one moment."""
        return self._called(self._all, name, args)

    def _called(
        self, processes: list[subprocess.Popen[str]], name: str, args: tuple[Any, ...]
    ) -> list[Any]:
        begin = time.time() + LEAD_S
        for process in processes:
            assert process.stdin is not None
            process.stdin.write(json.dumps([name, args, begin]) + "\n")
            process.stdin.flush()
        # all are heard, or the next call would get the answers to this one
        answers = [_answer(process) for process in processes]
        assert not any(trouble for _, trouble in answers), "\n".join(text for _, text in answers)
        return [result for result, _ in answers]


def _answer(process: subprocess.Popen[str]) -> tuple[Any, str]:
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, f"a process ended with code {process.wait()}"
    result, trouble = json.loads(line)
    return result, trouble


def _serve(module: str, number: str) -> None:
    import django

    django.setup()
    found = importlib.import_module(module)
    found.number = int(number)  # type: ignore[attr-defined]
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        name, args, begin = json.loads(line)
        result, trouble = None, ""
        time.sleep(max(begin - time.time(), 0))
        try:
            result = getattr(found, name)(*args)
        except Exception:  # noqa: BLE001 - the test that called is told
            trouble = traceback.format_exc()
        answers.write(json.dumps([result, trouble]) + "\n")
        answers.flush()


if __name__ == "__main__":
    _serve(*sys.argv[1:])
