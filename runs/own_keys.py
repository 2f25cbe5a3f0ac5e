"""People's own keys: kept on the site, read by nobody, used by assistants they are lent to.

They lie beside the other secrets, under names that no variable and no flag leads to.
"""

from __future__ import annotations

from typing import Any

from relay import Provider
from runs import audit, credentials, keys, providers
from runs.refusal import Refusal


def keyed() -> dict[str, Provider]:
    """Providers that a key can be kept for, by name."""
    return {
        name: each
        for name, each in providers.usable()[0].items()
        if each.key_env and credentials.NAME.fullmatch(each.key_env)
    }


def kept(user: Any) -> list[str]:
    """The providers that a person keeps a key for."""
    stored = credentials.stored()
    return [name for name, each in keyed().items() if keys.persons_name(each, user.pk) in stored]


def keep(user: Any, provider: str, value: str) -> None:
    """Keep a person's key, in place of an earlier one. Raises Refusal; the key is in no message."""
    value = value.strip()
    name = keys.persons_name(_found(provider), user.pk)
    if not value or len(value) > credentials.VALUE_MAX or keys.fault_of(value):
        raise Refusal("what was given is empty, too long, or no single printable word")
    credentials.store(name, value)
    audit.record("key.keep", _subject(user), actor=user, provider=provider)


def forget(user: Any, provider: str) -> bool:
    """Forget it; False when there was none. Raises Refusal."""
    if not credentials.clear(keys.persons_name(_found(provider), user.pk)):
        return False
    audit.record("key.forget", _subject(user), actor=user, provider=provider)
    return True


def _found(provider: str) -> Provider:
    found = keyed().get(provider)
    if found is None:
        raise Refusal("there is no such provider that takes a key here")
    return found


def _subject(user: Any) -> str:
    return f"user:{user.get_username()}"[:100]
