"""Finding the assistant a person named."""

from __future__ import annotations

import difflib

from assistants.models import Assistant
from runs.refusal import Refusal
from runs.visible import visible


def one_assistant(name: str) -> Assistant:
    """The assistant of that name that was not removed. Raises Refusal, with the nearest name."""
    found = Assistant.objects.present().filter(name=name).first()
    if found is not None:
        return found
    names = list(Assistant.objects.present().values_list("name", flat=True))
    near = difflib.get_close_matches(name, names, n=1)
    hint = f"; did you mean {near[0]}?" if near else "; sanduk assistant list names them"
    raise Refusal(f"there is no assistant {visible(name, limit=80)!r}{hint}")
