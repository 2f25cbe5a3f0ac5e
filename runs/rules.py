"""From an order to the relay's rules: policy, budget, the egress door's list."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from django.conf import settings

import relay
from recipes import Recipe
from relay import EgressRules, Policy, Provider
from relay.budget import Budget, InvalidBudget
from relay.policy import InvalidPolicy, extra_route
from relay.prices import InvalidPrices, PriceTable, load_prices, shipped_prices
from runs.installation import run_directory
from runs.mounts import check_not_in_state
from runs.order import Order
from runs.refusal import Refusal

MIB = 1024 * 1024
# flag and field of everything that only a relay can honour
_RELAY_ONLY = {
    "--allow-model": "allow_models",
    "--max-tokens-cap": "max_tokens_cap",
    "--allow-path": "allow_paths",
    "--max-calls": "max_calls",
    "--max-body": "max_body_mb",
    "--budget": "budget_usd",
    "--token-budget": "token_budget",
    "--budget-strict": "budget_strict",
    "--unpriced": "unpriced",
    "--log-bodies": "log_bodies",
    "--upstream-key-env": "upstream_key_env",
    "--upstream-idle-timeout": "upstream_idle_timeout_s",
}


def check_mode(order: Order) -> None:
    """Refuse what means nothing in the order's mode: it would silently not be enforced."""
    if not order.relayed:
        for flag, field in _RELAY_ONLY.items():
            if getattr(order, field) not in (None, "", (), False):
                raise Refusal(f"{flag} is the relay's, and {order.mode_name} runs have no relay")
    doorless = order.mode != "sealed" or order.no_network
    if doorless and (order.allow_hosts or order.egress != "refuse"):
        raise Refusal(
            f"--allow-host and --egress open a door in a sealed run; {order.mode_name} has none"
        )
    if order.log_dir and not order.log_bodies:
        raise Refusal("--log-dir means nothing without --log-bodies")
    if order.upstream_key_env and not order.upstream:
        raise Refusal("--upstream-key-env means nothing without --upstream")
    check_lent_key(order)


def check_lent_key(order: Order) -> None:
    """Refuse to put a person's own key where somebody could read it, or to send it elsewhere."""
    if order.key_of and (not order.relayed or order.upstream or order.shell):
        raise Refusal(
            "a key that a person lends goes through the relay to its own provider alone: "
            "not with --mode open, --upstream or a shell"
        )


def check_kits(order: Order, recipe: Recipe) -> None:
    """Refuse what a kit, or a recipe's instructions, cannot do under the order's flags."""
    without_network = order.no_network or order.mode == "sealed"
    for kit in recipe.kits:
        if kit.egress and without_network:
            raise Refusal(
                f"kit {kit.name} needs the network, which {order.mode_name} runs do not have; "
                "use --mode key-safe, or leave the kit out"
            )
        for flag, value in (("--allowed-tools", order.allowed_tools), ("--bare", order.bare)):
            if kit.hook and value:
                raise Refusal(
                    f"kit {kit.name} works by hooks, which {flag} would leave out; leave out one"
                )
    if recipe.instructions and order.bare:
        raise Refusal(
            f"--bare leaves out the instructions that recipe {recipe.name} gives; leave out one"
        )


def policy(order: Order, provider: Provider) -> Policy:
    """The relay's rules. Raises Refusal for one that means nothing or contradicts another."""
    try:
        return Policy(
            provider,
            allow_models=frozenset(order.allow_models),
            max_tokens_cap=order.max_tokens_cap,
            extra_routes=tuple(extra_route(text, provider) for text in order.allow_paths),
            max_calls=order.max_calls,
            budget=_budget(order),
            prices=_prices(),
            max_body_bytes=MIB * (64 if order.max_body_mb is None else order.max_body_mb),
            idle_timeout_s=order.upstream_idle_timeout_s or 300.0,
        )
    except (InvalidPolicy, InvalidBudget) as exc:
        raise Refusal(str(exc)) from None


def _budget(order: Order) -> Budget | None:
    if order.budget_usd is None and order.token_budget is None:
        if order.budget_strict or order.unpriced:
            raise Refusal("--budget-strict and --unpriced need --budget or --token-budget")
        return None
    unpriced = order.unpriced or None
    return Budget(order.budget_usd, order.token_budget, order.budget_strict, unpriced)  # type: ignore[arg-type]


def is_free(provider: str) -> bool:
    """Whether the prices in force say that nothing at this provider costs anything."""
    try:
        return (_prices() or shipped_prices()).is_free(provider)
    except Refusal:
        return False


def _prices() -> PriceTable | None:
    path: Path = settings.SANDUK_HOME / "prices.toml"
    try:
        return load_prices(path.read_text("utf-8"), shipped_prices())
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError, InvalidPrices) as exc:
        raise Refusal(f"{path}: {exc}") from None


def egress(order: Order, provider: Provider) -> EgressRules | None:
    """The door's list, or None for a run without a door. Raises Refusal."""
    if not order.allow_hosts and order.egress == "refuse":
        return None
    try:
        return relay.egress_rules(
            order.allow_hosts,
            mode="warn" if order.egress == "warn" else "refuse",
            provider_host=provider.host,
            admit=settings.SANDUK_EGRESS_ADMIT,
        )
    except ValueError as exc:
        raise Refusal(str(exc)) from None


def body_directory(order: Order, uid: str) -> Path:
    """Where a run's request bodies are kept, outside of every mount."""
    return Path(order.log_dir) / uid if order.log_dir else run_directory(uid) / "bodies"


def check_log_directory(order: Order, lent: Iterable[str]) -> None:
    """Refuse a log the agent could reach, or one among our own files.

    Bodies hold what other runs said, too; in a run's private directory they would end with it.

    Args:
        lent: every directory the container gets.
    """
    if not order.log_dir:
        return
    place = Path(os.path.realpath(order.log_dir))
    if not place.is_dir():
        raise Refusal(f"--log-dir {order.log_dir}: there is no such directory")
    check_not_in_state(f"--log-dir {order.log_dir}", place, settings.SANDUK_HOME)
    for directory in lent:
        if place.is_relative_to(directory) or Path(directory).is_relative_to(place):
            raise Refusal(
                f"--log-dir {order.log_dir} and {directory}, which the agent gets, overlap"
            )
