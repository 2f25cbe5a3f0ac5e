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


# how a refusal begins that is about what a key holds
_BEGINNINGS = {
    "runtime": "no engine is called |engine ",
    "recipe": "recipe ",
    "agent": "no agent is called |agent ",
    "provider": "there is no provider |provider |no agent here speaks to ",
    "model": "model ",
    "brief": "its brief ",
    "gate": "its gate ",
}


def at_its_key(arrival: Arrival, why: str) -> Refusal:
    """A refusal of its run as one of its file: with the line, and no flag that nobody wrote."""
    for flag, key in _FLAGS.items():
        written = re.compile(rf"{flag}(?![\w-])")
        if not written.search(why) or arrival.given(key) is None:
            continue
        if not _is_in_args(arrival, flag):
            said = written.sub(key, why).removeprefix(f"{key} ").removeprefix(": ")
            return arrival.wrong(key, said)
    key = _key_meant(arrival, why)
    if key and arrival.given(key) is not None:
        return arrival.wrong(key, why.removeprefix(f"{key} "))
    if arrival.given("args") is not None and _says_args(arrival, why, key):
        for flag, name in _FLAGS.items():
            if not _is_in_args(arrival, flag):  # nobody wrote that one
                why = re.sub(rf"{flag}(?![\w-])", name, why)
        return arrival.wrong("args", why)
    return Refusal(f"assistant {arrival.name}: {why}")


def _key_meant(arrival: Arrival, why: str) -> str:
    """The key that a refusal begins with, in the words of whoever looked at its value; or ""."""
    for key, beginning in _BEGINNINGS.items():
        if re.match(beginning, why):
            return key
    return ""


def _says_args(arrival: Arrival, why: str, key: str) -> bool:
    """Whether a flag in its args is what a refusal is about."""
    words = [word.partition("=")[0] for word in arrival.written_args]
    named = [f"--{key}"] if key else re.findall(r"--[a-z][a-z-]*", why)
    if why.startswith("kit "):
        named.append("--kit")
    return any(flag in words for flag in named)


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
