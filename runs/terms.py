"""The rules a run was given, only those that were set: for people as flags, for scripts as fields.

They are read from a stored order too, which may be of another version: what it lacks is not set.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

# flag, field of an Order, name in JSON, with its unit
_TERMS = (
    ("--budget", "budget_usd", "budget_usd"),
    ("--token-budget", "token_budget", "budget_tokens"),
    ("--budget-strict", "budget_strict", "budget_strict"),
    ("--unpriced", "unpriced", "unpriced"),
    ("--allow-model", "allow_models", "allow_models"),
    ("--max-tokens-cap", "max_tokens_cap", "max_output_tokens_per_call"),
    ("--max-calls", "max_calls", "max_calls"),
    ("--max-body", "max_body_mb", "max_body_mib"),
    ("--allow-path", "allow_paths", "allow_paths"),
    ("--allow-host", "allow_hosts", "allow_hosts"),
    ("--egress", "egress", "egress"),
    ("--log-bodies", "log_bodies", "log_bodies"),
    ("--log-dir", "log_dir", "log_dir"),
    ("--upstream", "upstream", "upstream"),
    ("--insecure-upstream", "insecure_upstream", "insecure_upstream"),
    ("--upstream-key-env", "upstream_key_env", "upstream_key_env"),
    ("--upstream-idle-timeout", "upstream_idle_timeout_s", "upstream_idle_timeout_s"),
    ("--skip-key-check", "skip_key_check", "skip_key_check"),
    ("--base-url", "base_url", "base_url"),
    ("--network", "network", "network"),
    ("--oci-runtime", "oci_runtime", "oci_runtime"),
    ("--hide", "hide", "hide"),
    ("--effort", "effort", "effort"),
    ("--max-turns", "max_turns", "max_turns"),
    ("--allowed-tools", "allowed_tools", "allowed_tools"),
    ("--permission-mode", "permission_mode", "permission_mode"),
    ("--bare", "bare", "bare"),
    ("--keep", "keep", "keep"),
)
_NOTHING: tuple[Any, ...] = (None, "", False, [], ())
_UNSET = {"egress": "refuse"}  # what a field says when its flag was not given, if not "nothing"


def as_json(order: Mapping[str, Any]) -> dict[str, Any]:
    """The rules that were set, by names that carry their units.

    Args:
        order: a run's stored order.
    """
    return {name: order[field] for _, field, name in _set(order)}


def as_flags(order: Mapping[str, Any]) -> str:
    """The same as one would type them; "" when none was set."""
    words: list[str] = []
    for flag, field, _ in _set(order):
        value = order[field]
        if value is True:
            words.append(flag)
            continue
        for each in value if isinstance(value, list | tuple) else [value]:
            words.append(f"{flag} {shlex.quote(_typed(field, each))}")
    return " ".join(words)


def _set(order: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    return [
        term
        for term in _TERMS
        if (value := order.get(term[1])) not in _NOTHING and value != _UNSET.get(term[1])
    ]


def _typed(field: str, value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return f"{value}s" if field.endswith("_s") else str(value)
