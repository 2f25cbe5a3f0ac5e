"""Delivers to a program of the host's: the body on standard input, the rest in its environment."""

from __future__ import annotations

import signal

from assistants.delivery import program
from assistants.delivery.kinds import CommandSettings, environment
from assistants.delivery.parcel import Doubtful, Failed, Parcel


def send(parcel: Parcel, settings: CommandSettings, timeout_s: float) -> str:
    """Run it; what it printed. Raises Failed, Doubtful.

    One that had to be killed may have sent already, so that is for a person to find out.
    """
    env = environment() | {
        "SANDUK_ASSISTANT": parcel.assistant,
        "SANDUK_RUN_ID": parcel.run,
        "SANDUK_DELIVERY_ID": parcel.key,
        "SANDUK_ITEM_ID": str(parcel.item),
    }
    try:
        ended = program.run(settings.argv, parcel.body.encode(), env=env, timeout_s=timeout_s)
    except OSError as exc:
        raise Failed(f"{settings.argv[0]} could not be started: {exc.strerror}") from None
    if ended.code is None:
        why = f"it did not end within {timeout_s:g} s and was killed"
        raise Doubtful(why, output=ended.output)
    if ended.code < 0:
        why = f"it was killed by {signal.Signals(-ended.code).name}"
        raise Doubtful(why, output=ended.output)
    if ended.code:
        raise Failed(f"it exited with {ended.code}", output=ended.output)
    return ended.output
