"""Where a key comes from: the environment, a file the environment names, or our own store."""

from __future__ import annotations

import os
from pathlib import Path

from relay import Provider
from runs import credentials
from runs.refusal import Refusal


def provider_key(provider: Provider) -> str:
    """The key, or "" when the provider needs none.

    Raises Refusal; the message never holds any of the key.
    """
    name = provider.key_env
    if not name and provider.needs_key:
        raise Refusal(
            f"provider {provider.name} needs a key and names no variable for it: give it a key_env "
            "in SANDUK_HOME/providers.toml, or needs_key = false"
        )
    if not name:
        return ""
    value = value_of(name)
    if not value and provider.needs_key:
        raise Refusal(
            f"provider {provider.name} needs a key: sanduk auth set {provider.name}, or export "
            f"{name}; --provider rehearsal needs none"
        )
    if not (value.isascii() and value.isprintable()) or " " in value:
        raise Refusal(
            f"{name} holds a line break, a space or another character that no key has; "
            "it was not used"
        )
    return value


def value_of(name: str) -> str:
    """A secret by its variable's name, or "". Raises Refusal when its file cannot be read."""
    try:
        return _found(name)
    except (OSError, UnicodeDecodeError):
        raise Refusal(f"{name}_FILE names a file that cannot be read") from None


def source_of(name: str) -> str:
    """Where `value_of` would find it: "environment", "file", "stored", or "" for nowhere."""
    if os.environ.get(name, "").strip():
        return "environment"
    if os.environ.get(f"{name}_FILE"):
        return "file"
    return "stored" if name in credentials.stored() else ""


def held_keys() -> list[str]:
    """Every key this process could see, for checks that none of them gets out."""
    from relay import get_provider, provider_names

    variables = {get_provider(name).key_env for name in provider_names()} - {""}
    found = []
    for variable in variables | set(credentials.stored()):
        try:
            value = _found(variable)
        except (OSError, UnicodeDecodeError):
            continue  # a key that cannot be read cannot get out
        if len(value) >= 8:
            found.append(value)
    return found


def _found(variable: str) -> str:
    """What the variable holds, else the file that `<variable>_FILE` names, else our store."""
    value, file = os.environ.get(variable, ""), os.environ.get(f"{variable}_FILE", "")
    if not value.strip() and file:
        value = Path(file).read_text()
    return value.strip() or credentials.stored().get(variable, "")
