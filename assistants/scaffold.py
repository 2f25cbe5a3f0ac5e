"""A first assistant: it holds what it says, reviews its memory, and passes its own `add`."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from django.core.exceptions import ValidationError

from assistants.assistant_toml import FILE
from assistants.models.assistant import NAME
from runs.refusal import Refusal
from runs.workspace import UNPRIVILEGED

REHEARSAL = "rehearsal"
_TOML = """\
# What each key means, and what there is more: docs/assistants.md
name = "{name}"
agent = "{agent}"
provider = "{provider}"

# every day at half past seven on the clock of this zone; or every = "30m"
cron = "30 7 * * *"
timezone = "{zone}"
missed = "once-if-younger-than 6h"

timeout = "15m"
# budget = 0.50          # US dollars, of one wakeup
# daily_budget = 2.00

approval = true          # what it wants to say waits for a person: sanduk outbox
memory_review = true     # so does what it remembers: sanduk memory {name} diff
# destinations = ["…"]   # where approved items go: sanduk destination add
"""
# the scripted model reads no prose: this is what it does, so that each wakeup leaves something
_REHEARSED = """\
rehearsal: command date -u >> notes.md; (echo "# My notes"; cat notes.md) > REPORT.md
The line above is for the rehearsal model alone; delete both when a real one reads this.

"""
_BRIEF = """\
Read the messages below, if there are any, and what you kept in this directory. Work on what they
ask for.

Write what a person should read to REPORT.md, at most a page. Keep notes for the next time in
notes.md: it is all you will remember.
"""


def new(name: str, directory: Path, *, agent: str, provider: str, zone: str) -> Path:
    """Write a directory that `sanduk assistant add` takes, and return it.

    Raises Refusal when the name is none, or something is there.
    """
    try:
        NAME(name)
    except ValidationError:
        raise Refusal(f"{name!r} is no name: {NAME.message}") from None
    try:
        directory.mkdir(parents=True)
    except FileExistsError:
        raise Refusal(f"{directory} is there already; choose another, or remove it") from None
    except NotADirectoryError:
        raise Refusal(f"{directory} cannot be made: a file is in the way") from None
    try:
        toml = _TOML.format(name=name, agent=agent, provider=provider, zone=zone)
        (directory / FILE).write_text(toml, encoding="utf-8")
        brief = (_REHEARSED if provider == REHEARSAL else "") + _BRIEF
        (directory / "brief.md").write_text(brief, encoding="utf-8")
        (directory / "reports").mkdir()
        workspace = directory / "workspace"
        workspace.mkdir()
        if os.geteuid() == 0:
            os.chown(workspace, UNPRIVILEGED, UNPRIVILEGED)  # no agent runs as root
    except OSError:
        shutil.rmtree(directory, ignore_errors=True)
        raise
    return directory
