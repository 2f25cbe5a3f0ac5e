"""Where a provider's key comes from: the environment, or a file the environment names."""

from __future__ import annotations

import os
from pathlib import Path

from relay import Provider
from runs.refusal import Refusal


def provider_key(provider: Provider) -> str:
    """The key, or "" when the provider needs none.

    Raises Refusal; the message never holds any of the key.
    """
    if not provider.key_env:
        return ""
    try:
        value = _found(provider.key_env)
    except (OSError, UnicodeDecodeError):
        raise Refusal(f"{provider.key_env}_FILE names a file that cannot be read") from None
    if not value and provider.needs_key:
        raise Refusal(
            f"provider {provider.name} needs a key: export {provider.key_env}, or try "
            "--provider rehearsal, which needs none"
        )
    if not (value.isascii() and value.isprintable()) or " " in value:
        raise Refusal(
            f"{provider.key_env} holds a line break, a space or another character that no key "
            "has; it was not used"
        )
    return value


def held_keys() -> list[str]:
    """Every provider key this process could see, for checks that none of them gets out."""
    from relay import get_provider, provider_names

    found = []
    for variable in {get_provider(name).key_env for name in provider_names()} - {""}:
        try:
            value = _found(variable)
        except (OSError, UnicodeDecodeError):
            continue  # a key that cannot be read cannot get out
        if len(value) >= 8:
            found.append(value)
    return found


def _found(variable: str) -> str:
    """What the variable holds, or else the file that `<variable>_FILE` names."""
    value, file = os.environ.get(variable, ""), os.environ.get(f"{variable}_FILE", "")
    return (value or (Path(file).read_text() if file else "")).strip()
