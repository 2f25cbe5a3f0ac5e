"""The first moments of the `sanduk` command: a Ctrl-C while it is loaded is one line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# a Ctrl-C at the first import but those of the command's own two modules
INTERRUPT = """\
import sys
OWN = ("sanduk_site", "sanduk_site.cli", "gc")
def ctrl_c(*_):
    raise KeyboardInterrupt
class CtrlC:
    def find_spec(self, name, path=None, target=None):
        if name.startswith(("encodings", "__future__")) or name in OWN:
            return None
        %s
sys.modules.pop("pathlib", None)
sys.meta_path.insert(0, CtrlC())
from sanduk_site.cli import main
main()
"""
WHERE = {
    "in a function": "ctrl_c()",
    # where Python 3.11 makes a RuntimeError of it
    "while a class is made": """type("C", (), {"x": type("X", (), {"__set_name__": ctrl_c})()})""",
}


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("words", [["runs"], ["run", "--dry-run", "x"], ["--help"], ["nothing"]])
def test_a_ctrl_c_while_it_loads_is_one_line_and_exit_code_130(where, words):
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPT % WHERE[where], *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )

    assert done.stderr == "sanduk: stopped with Ctrl-C\n"
    assert done.returncode == 130
