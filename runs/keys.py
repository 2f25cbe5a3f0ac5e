"""Where a key comes from: the environment, a file the environment names, or our own store."""

from __future__ import annotations

import os
from pathlib import Path

from relay import Provider
from runs import credentials, providers
from runs.refusal import HostRefusal, Refusal

GITHUB_TOKEN = "GITHUB_TOKEN"  # noqa: S105 - the name of a variable; what pushes accepted changes


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
        raise HostRefusal(_missing(provider))
    if fault := fault_of(value):
        raise HostRefusal(f"{name} {fault}; it was not used")
    return value


def persons_key(provider: Provider, person: int) -> str:
    """The key of one person for a provider, and no other.

    Raises Refusal: they keep none for it; the message never holds any of the key.
    """
    value = credentials.stored().get(persons_name(provider, person), "")
    if not value:
        raise Refusal(
            f"whoever lent their key for provider {provider.name} keeps none for it any more"
        )
    return value


def persons_name(provider: Provider, person: int) -> str:
    """What a person's key for a provider is called where it is kept. Raises Refusal."""
    name = f"PERSON_{person}_{provider.key_env}"
    credentials.check_name(name)
    return name


def fault_of(value: str) -> str:
    """What makes a value no key, as words behind its name; "" for nothing. Never any of it."""
    if (value.isascii() and value.isprintable()) and " " not in value:
        return ""
    return "holds a line break, a space or another character that no key has"


def _missing(provider: Provider) -> str:
    name, known = provider.key_env, providers.usable()[0].get(provider.name)
    keeps = credentials.NAME.fullmatch(name) is not None
    if known is not None and known.key_env != name:
        kept = f", or sanduk auth set {name}" if keeps else ""
        return f"--upstream-key-env {name}: this variable is empty or not set; export it{kept}"
    kept = f"sanduk auth set {provider.name}, or " if keeps else ""
    return (
        f"provider {provider.name} needs a key: {kept}export {name}; "
        "--provider rehearsal needs none"
    )


def value_of(name: str) -> str:
    """A secret by its variable's name, or "". Raises Refusal when its file cannot be read."""
    try:
        return _found(name)
    except (OSError, UnicodeDecodeError):
        raise HostRefusal(f"{name}_FILE names a file that cannot be read") from None


def source_of(name: str) -> str:
    """Where `value_of` would find it: "environment", "file", "stored", or "" for nowhere."""
    if os.environ.get(name, "").strip():
        return "environment"
    if os.environ.get(f"{name}_FILE"):
        return "file"
    return "stored" if name in credentials.stored() and not credentials.is_personal(name) else ""


def held_keys() -> list[str]:
    """Every key this process could see, for checks that none of them gets out."""
    variables = {provider.key_env for provider in providers.usable()[0].values()} - {""}
    variables.add(GITHUB_TOKEN)
    found = []
    for variable in variables | set(credentials.stored()):
        try:
            value = _found(variable)
        except (OSError, UnicodeDecodeError):
            continue  # a key that cannot be read cannot get out
        found.append(value)
    personal = (
        value for name, value in credentials.stored().items() if credentials.is_personal(name)
    )
    return [value for value in (*found, *personal) if len(value) >= 8]


def _found(variable: str) -> str:
    """What the variable holds, else the file that `<variable>_FILE` names, else our store."""
    value, file = os.environ.get(variable, ""), os.environ.get(f"{variable}_FILE", "")
    if not value.strip() and file:
        value = Path(file).read_text()
    stored = "" if credentials.is_personal(variable) else credentials.stored().get(variable, "")
    return value.strip() or stored
