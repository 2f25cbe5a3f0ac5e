"""What is wrong with an arriving assistant, said at the line and by the key that a person wrote."""

from __future__ import annotations

import os
import re

from assistants import reach
from assistants.assistant_toml import Arrival
from runs.refusal import Refusal

# the keys that are given to `sanduk run` as flags
_FLAGS = {
    "--mount": "mounts",
    "--allow-host": "allow_hosts",
    **{
        f"--{name.replace('_', '-')}": name
        for name in ("agent", "recipe", "provider", "model", "runtime", "mode", "timeout",
                     "idle_timeout", "budget")
    },
}  # fmt: skip


def at_its_key(arrival: Arrival, why: str) -> Refusal:
    """A refusal of its run as one of its file: with the line, and no flag that nobody wrote."""
    for flag, key in _FLAGS.items():
        written = re.compile(rf"{flag}(?![\w-])")
        if not written.search(why) or arrival.given(key) is None:
            continue
        if not _is_in_args(arrival, flag):
            said = written.sub(key, why).removeprefix(f"{key} ").removeprefix(": ")
            return arrival.wrong(key, said)
    for key in ("brief", "gate"):
        if why.startswith(f"its {key} ") and arrival.given(key) is not None:
            return arrival.wrong(key, why)
    return Refusal(f"assistant {arrival.name}: {why}")


def check_places(arrival: Arrival) -> None:
    """Refuse a gate that is no program, and one place in another's reach. Raises Refusal."""
    if gate := arrival.config.gate:
        path = arrival.directory / gate
        if not path.is_file() or not os.access(path, os.X_OK):
            raise at_its_key(arrival, f"its gate {path} is no program; chmod +x it")
    try:
        reach.check(arrival.name, arrival.directory, arrival.config)
    except Refusal as exc:
        key, _, why = str(exc).partition(": ")
        raise arrival.wrong(key, why) from None
    reach.check_out_of_reach(
        f"assistant {arrival.name}", [arrival.directory], but=str(arrival.directory)
    )


def _is_in_args(arrival: Arrival, flag: str) -> bool:
    return any(word.partition("=")[0] == flag for word in arrival.config.args)
