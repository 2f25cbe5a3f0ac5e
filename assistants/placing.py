"""What is wrong with an arriving assistant, said at the line and by the key that a person wrote."""

from __future__ import annotations

import os
import re

from django.contrib.auth import get_user_model

from assistants import reach
from assistants.assistant_toml import Arrival
from assistants.config import Config
from assistants.models import OutboxItem
from runs.refusal import Refusal

_RIGHTS = "django.contrib.auth.backends.ModelBackend"
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


def people_missing(config: Config) -> tuple[str, ...]:
    """What to do first where fewer people may approve than its items need; () for nothing."""
    needed = config.approvals + (1 if config.exclude_author else 0)
    if not config.hold or needed == 1:
        return ()
    people = get_user_model().objects.with_perm(
        f"{OutboxItem._meta.app_label}.decide_outboxitem", backend=_RIGHTS
    )
    count = people.count()
    if count >= needed:
        return ()
    besides = ", one of them not its author," if config.exclude_author else ""
    return (
        f"its items need {config.approvals} to approve{besides} and {count} of {needed} site users "
        "may: sanduk user add NAME approver; then what an account of this host decides counts "
        "after: sanduk user map ACCOUNT NAME",
    )


def _is_in_args(arrival: Arrival, flag: str) -> bool:
    return any(word.partition("=")[0] == flag for word in arrival.config.args)
