"""How long something may take here and now."""

from __future__ import annotations

import os
import subprocess
import sys
import time

PYTHON = sys.executable  # before a test puts another in its place
USUAL_START_S = 0.15  # of an interpreter, where nothing else is going on


def stretched(limit_s: float) -> float:
    """A limit for a quiet machine, longer by as much as this one is busy or slow now."""
    began = time.monotonic()
    subprocess.run([PYTHON, "-c", "import asyncio"], check=True)
    slow = (time.monotonic() - began) / USUAL_START_S
    busy = os.getloadavg()[0] / (os.cpu_count() or 1)
    return limit_s * max(1.0, slow, busy)
