"""Every provider there is: sanduk's own, then the operator's in SANDUK_HOME/providers.toml."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings

import relay
from relay import Provider
from relay.providers import load_providers
from runs.refusal import Refusal


def known() -> dict[str, Provider]:
    """All of them by name.

    Raises Refusal when the operator's file cannot be read, or takes a name that is taken.
    """
    own, problem = _own()
    if problem:
        raise Refusal(problem)
    return {**_shipped(), **own}


def usable() -> tuple[dict[str, Provider], str]:
    """Those that can be used, and what is wrong with the operator's file, or "".

    For looking around and for keeping keys: both must go on when that file is broken.
    """
    own, problem = _own()
    return {**_shipped(), **own}, problem


def _shipped() -> dict[str, Provider]:
    return {name: relay.get_provider(name) for name in relay.provider_names()}


def _own() -> tuple[dict[str, Provider], str]:
    """The operator's, none of them when one is wrong; and what is wrong, naming the file."""
    path: Path = settings.SANDUK_HOME / "providers.toml"
    try:
        own = load_providers(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}, ""
    except OSError as exc:
        return {}, f"{path} cannot be read: {exc.strerror}"
    except (UnicodeDecodeError, relay.InvalidProvider) as exc:
        return {}, f"{path}: {exc}"
    for name in sorted(set(own) & set(relay.provider_names())):
        return {}, f"{path}: {name} is one of sanduk's own; give yours another name"
    return own, ""
