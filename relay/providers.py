"""Whose model API a run may call: host, routes, protocol, credential header."""

from __future__ import annotations

from dataclasses import dataclass, field

from relay.records import Protocol


@dataclass(frozen=True, slots=True)
class Route:
    """One method and one exact path that may pass."""

    path: str
    methods: frozenset[str] = frozenset({"POST"})
    protocol: Protocol | None = None
    query: frozenset[str] = frozenset()  # the query keys that may pass


@dataclass(frozen=True, slots=True)
class Provider:
    name: str
    scheme: str
    host: str
    port: int | None
    prefix: str  # the path under which its API lives: /v1
    routes: tuple[Route, ...]
    auth_header: str = "authorization"
    auth_scheme: str = "Bearer"  # empty: the bare value
    key_env: str = ""
    needs_key: bool = True
    base_url_env: str = ""
    default_model: str = ""
    reports_cost: bool = False
    adds_usage_option: bool = False

    @property
    def protocols(self) -> tuple[Protocol, ...]:
        """The protocols it serves, in the order of its routes."""
        return tuple(dict.fromkeys(r.protocol for r in self.routes if r.protocol))
