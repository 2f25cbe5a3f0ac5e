"""What a run may say to the outside: providers, protocols, policy, metering, the ASGI app."""

from relay.providers import Provider, Route
from relay.records import CallRecord, Ledger, Protocol, Usage

__all__ = ["CallRecord", "Ledger", "Protocol", "Provider", "Route", "Usage"]
