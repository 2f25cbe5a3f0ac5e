"""The bench of the pages works at all, on a few rows."""

from __future__ import annotations

import os
import subprocess
import sys


def test_the_bench_of_the_pages_measures_each_of_them(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench", "pages", "--quick"],
        env={**os.environ, "SANDUK_TEST_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=250,
    )
    assert done.returncode == 0, done.stderr
    for name in ("home", "runs", "run", "outbox", "spend", "spend by model"):
        assert f"queries of {name} " in done.stdout, name
    queries = [line for line in done.stdout.splitlines() if "queries of" in line]
    assert all("MISSED" not in line for line in queries), done.stdout
