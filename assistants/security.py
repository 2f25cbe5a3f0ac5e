"""What an assistant may reach and who must look, as far as the web may say it.

No command, no path and no address beyond exact host names is among it. What the web said stands
beside the `assistant.toml` it was not written in: `conflicts` finds where the two differ, and
whoever adds the directory again says which of them counts.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from django.db import transaction

from assistants import belonging, briefing
from assistants.config import Config, restored
from assistants.keys import KEYS
from assistants.models import Assistant
from relay.destinations import InvalidHost, parse_allowed_host, show_host_port
from runs import audit, clock
from runs.plan import make_plan
from runs.refusal import Refusal

# open mode, taking approval away and everything that names a file is said on the host alone
MODES = ("sealed", "key-safe")
FIELDS = ("mode", "allow_hosts", "hold", "approvals", "exclude_author", "memory_review")
NAMES = {key.field: key.name for key in KEYS if key.field in FIELDS}  # of assistant.toml
HOSTS_MAX = 100


@dataclass(frozen=True, slots=True)
class Difference:
    """One setting before and after, by its name in assistant.toml."""

    name: str
    before: str
    after: str


def settings_of(assistant: Assistant) -> Config:
    """Raises Refusal when its row is of another version."""
    try:
        return restored(assistant.config)
    except msgspec.ValidationError:
        raise Refusal(f"the settings of {assistant.name} are of another version") from None


def digest(assistant: Assistant) -> str:
    """Names exactly the settings it has: what a person saw when they changed some."""
    return digest_of(assistant.config)


def digest_of(stored: Mapping[str, Any]) -> str:
    """Names exactly these settings, as a row keeps them."""
    return hashlib.sha256(json.dumps(stored, sort_keys=True).encode()).hexdigest()


def wanted(assistant: Assistant, said: Mapping[str, Any]) -> Config:
    """The settings with some of FIELDS said anew.

    Raises Refusal: it is not for the web to say, or could not be run.
    """
    config = settings_of(assistant)
    if beyond := set(said) - set(FIELDS):
        raise Refusal(f"{', '.join(sorted(beyond))}: said on this host alone")
    new = msgspec.structs.replace(config, **said)
    if new.mode not in (*MODES, config.mode):
        raise Refusal(f"mode = {new.mode} is said on this host alone")
    if config.hold and not new.hold:
        raise Refusal("that it needs approval is taken away on this host alone")
    if not 1 <= new.approvals <= 20:
        raise Refusal("approvals: 1 to 20 people")
    if not new.hold and (new.approvals > 1 or new.exclude_author):
        raise Refusal("who must approve means nothing without approval")
    spelled = {_spelled(text): text for text in config.allow_hosts}  # what is there stays as it is
    exact = dict.fromkeys(_exact(text) for text in new.allow_hosts)
    hosts = tuple(spelled.get(each, each) for each in exact)
    if len(hosts) > HOSTS_MAX:
        raise Refusal(f"allow_hosts: at most {HOSTS_MAX} of them")
    new = msgspec.structs.replace(new, allow_hosts=hosts)
    try:
        make_plan(briefing.order(assistant, new, "-", budget_usd=new.budget_usd))
    except briefing.BrokenSettings as exc:
        raise Refusal(str(exc)) from None
    return new


def _exact(text: str) -> str:
    """A host in its one spelling. Raises Refusal for a wildcard, an address inside, the like."""
    try:
        return show_host_port(*parse_allowed_host(text.strip()))
    except InvalidHost as exc:
        raise Refusal(str(exc).removeprefix("--allow-host ")) from None


def differences(before: Config, after: Config) -> list[Difference]:
    """What a change amounts to, in the order of FIELDS."""
    return [
        Difference(NAMES[field], _told(was), _told(now))
        for field in FIELDS
        if (was := getattr(before, field)) != (now := getattr(after, field))
    ]


def _told(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ", ".join(value) or "none"
    return str(value)


def may_change(actor: Any, assistant: Assistant) -> bool:
    """Whether it is theirs to say; the right to change what assistants reach comes on top."""
    return assistant.owner_id is None or belonging.decides(actor, assistant)


def change(
    assistant: Assistant, said: Mapping[str, Any], *, seen: str, actor: Any
) -> list[Difference]:
    """Say some of FIELDS anew; what changed. The next wakeup begins with it.

    Args:
        seen: `digest` of the settings the person read.

    Raises Refusal: nothing would change, it was changed meanwhile, or what `wanted` raises.
    """
    with transaction.atomic():
        rows = Assistant.objects.present().select_for_update(of=("self",))
        found = rows.filter(pk=assistant.pk).first()
        if found is None:
            raise Refusal(f"assistant {assistant.name} was removed meanwhile")
        if not may_change(actor, found):
            raise Refusal(f"only the owner of {found.name} or an administrator may say that")
        if digest(found) != seen:
            raise Refusal(f"the settings of {found.name} were changed meanwhile; look again")
        before, after = settings_of(found), wanted(found, said)
        changed = differences(before, after)
        if not changed:
            raise Refusal("that is what it has already")
        by, at = actor.get_username(), clock.now().isoformat(timespec="seconds")
        names = {field for field in FIELDS if getattr(before, field) != getattr(after, field)}
        found.config = after.stored()
        found.set_on_web = {**found.set_on_web, **{name: {"by": by, "at": at} for name in names}}
        found.save(update_fields=["config", "set_on_web"])
        audit.record(
            "assistant.security",
            f"assistant:{found.name}",
            actor=actor,
            changed={each.name: [each.before, each.after] for each in changed},
        )
    return changed


def conflicts(known: Assistant, arrived: Config) -> dict[str, Difference]:
    """What the web said of it that its file says otherwise, by field: the file's, and the web's."""
    found = {}
    for field in FIELDS:
        if field not in known.set_on_web:
            continue
        by_file, by_web = getattr(arrived, field), _plain(known.config.get(field))
        if field == "allow_hosts":
            by_file, by_web = ({_spelled(each) for each in hosts} for hosts in (by_file, by_web))
            by_file, by_web = tuple(sorted(by_file)), tuple(sorted(by_web))
        if by_file != by_web:
            found[field] = Difference(NAMES[field], _told(by_file), _told(by_web))
    return found


def _spelled(text: str) -> str:
    """A host as it is compared: one that cannot be read is refused elsewhere."""
    try:
        return _exact(text)
    except Refusal:
        return text


def kept(known: Assistant, arrived: Config, fields: Mapping[str, Any]) -> Config:
    """What arrived, with what the web said of these fields."""
    return msgspec.structs.replace(
        arrived, **{field: _plain(known.config[field]) for field in fields}
    )


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def told(assistant: Assistant) -> list[str]:
    """What of it was said on the web since its file was read, a line each."""
    lines = []
    for field, fact in assistant.set_on_web.items():
        at = dt.datetime.fromisoformat(fact["at"])
        lines.append(
            f"{NAMES.get(field, field)} was said on the web by {fact['by']}, {at:%Y-%m-%d %H:%M} "
            f"UTC; to have it in the file: sanduk assistant export {assistant.name}"
        )
    return lines


def unsettled(known: Assistant, found: Mapping[str, Difference], directory: Path) -> Refusal:
    """Why a directory is not taken in: nobody said which of two settings counts."""
    said = "; ".join(
        f"{each.name} is {each.after} as {known.set_on_web[field]['by']} said on the web, and "
        f"{each.before} in the file"
        for field, each in found.items()
    )
    again = f"sanduk assistant add {directory} --security"
    return Refusal(f"{said}: say which counts, {again} web, or {again} file")
