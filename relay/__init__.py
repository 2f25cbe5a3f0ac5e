"""What a run may say to the outside: providers, protocols, policy, metering, the ASGI app.

The names below are the public interface. Each is imported when it is first used, since most of
sanduk needs no more than a provider's record and a command must start quickly.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from relay.app import create_app
    from relay.bodies import BodyLog
    from relay.budget import Budget, InvalidBudget
    from relay.credential import Credential, InvalidCredential
    from relay.destinations import InvalidHost, egress_rules
    from relay.egress import EgressAttempt, EgressRules, serving_egress
    from relay.endpoints import Endpoint, InvalidUpstream
    from relay.policy import InvalidPolicy, Policy, extra_route
    from relay.preflight import KeyCheck, check_key
    from relay.prices import InvalidPrices, PriceTable, load_prices, shipped_prices
    from relay.providers import (
        InvalidProvider,
        Provider,
        Route,
        UnknownProvider,
        get_provider,
        load_providers,
        provider_names,
        with_upstream,
    )
    from relay.proxies import InvalidProxy
    from relay.records import CallRecord, Ledger, Protocol, Usage
    from relay.rehearsal import create_rehearsal_app
    from relay.reported_usage import ReportedUsage, tells_usage, usage_today
    from relay.server import serving
    from relay.sockets import bind_unix

_MODULES = {
    "create_app": "app",
    "BodyLog": "bodies",
    "Credential": "credential",
    "InvalidCredential": "credential",
    "InvalidHost": "destinations",
    "egress_rules": "destinations",
    "EgressAttempt": "egress",
    "EgressRules": "egress",
    "serving_egress": "egress",
    "Endpoint": "endpoints",
    "InvalidUpstream": "endpoints",
    "Policy": "policy",
    "InvalidPolicy": "policy",
    "extra_route": "policy",
    "Budget": "budget",
    "InvalidBudget": "budget",
    "InvalidPrices": "prices",
    "PriceTable": "prices",
    "load_prices": "prices",
    "shipped_prices": "prices",
    "load_providers": "providers",
    "KeyCheck": "preflight",
    "check_key": "preflight",
    "InvalidProvider": "providers",
    "Provider": "providers",
    "Route": "providers",
    "UnknownProvider": "providers",
    "get_provider": "providers",
    "provider_names": "providers",
    "with_upstream": "providers",
    "InvalidProxy": "proxies",
    "CallRecord": "records",
    "Ledger": "records",
    "Protocol": "records",
    "Usage": "records",
    "create_rehearsal_app": "rehearsal",
    "ReportedUsage": "reported_usage",
    "tells_usage": "reported_usage",
    "usage_today": "reported_usage",
    "serving": "server",
    "bind_unix": "sockets",
}

__all__ = [
    "BodyLog",
    "Budget",
    "CallRecord",
    "Credential",
    "EgressAttempt",
    "EgressRules",
    "Endpoint",
    "InvalidBudget",
    "InvalidCredential",
    "InvalidHost",
    "InvalidPolicy",
    "InvalidPrices",
    "InvalidProvider",
    "InvalidProxy",
    "InvalidUpstream",
    "KeyCheck",
    "Ledger",
    "Policy",
    "PriceTable",
    "Protocol",
    "Provider",
    "ReportedUsage",
    "Route",
    "UnknownProvider",
    "Usage",
    "bind_unix",
    "check_key",
    "create_app",
    "create_rehearsal_app",
    "egress_rules",
    "extra_route",
    "get_provider",
    "load_prices",
    "load_providers",
    "provider_names",
    "serving",
    "serving_egress",
    "shipped_prices",
    "tells_usage",
    "usage_today",
    "with_upstream",
]


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module 'relay' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"relay.{module}"), name)
    globals()[name] = value
    return value
