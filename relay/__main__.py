"""One relay, started by hand: for benchmarks, bug reports and a look at what a client sends.

    RUN_TOKEN=secret python -m relay --provider rehearsal --listen 127.0.0.1:8080 \\
        --token-env RUN_TOKEN

Everything that happens is a line of JSON on standard output: {"listening": …} first, {"call": …}
for each call that has ended, {"egress": …} for each use of the egress door, {"total": …} last.
SIGINT and SIGTERM end it. Keys and the token come from the environment and never stand in the
command line.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import dataclasses
import json
import os
import signal
import socket
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from relay.app import create_app
from relay.arguments import complain, relay_parser
from relay.bodies import BodyLog
from relay.budget import Budget
from relay.credential import Credential
from relay.destinations import EgressRules, egress_rules
from relay.egress import serving_egress
from relay.endpoints import Endpoint, is_loopback
from relay.policy import MIB, Policy, extra_route
from relay.preflight import check_key
from relay.prices import load_prices, shipped_prices
from relay.providers import (
    Provider,
    get_provider,
    load_providers,
    with_upstream,
)
from relay.records import Ledger
from relay.rehearsal import create_rehearsal_app
from relay.server import serving
from relay.sockets import bind_unix


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until a signal; 0 then, and 2, after one line that says why, when nothing was started."""
    given = relay_parser().parse_args(arguments)
    try:
        policy = _policy(given)
        started = _Started(
            policy,
            _credential(policy.provider, given.upstream_key_env),
            _token(given.token_env),
            _egress(given, policy),
            _listen_at(given.listen),
        )
        asyncio.run(_serve(given, started))
    except (ValueError, OSError, _BadKey) as error:  # every refusal of a value is a ValueError
        complain(_in_words(error))
        return 2
    return 0


_INTERNAL = ("on_call", "last_activity", "sequence")  # fields of the ledger that say nothing


class _BadKey(Exception):
    """The provider does not want this key."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Started:
    """What the arguments amount to."""

    policy: Policy
    credential: Credential | None
    token: str = dataclasses.field(repr=False)
    egress: EgressRules | None
    listen: _Listen


class _Listen(NamedTuple):
    """Where to listen: a host and a port, or, without a host, a unix socket."""

    host: str
    port: int
    path: str = ""


# -- what the arguments say ------------------------------------------------------------------------
def _policy(given: argparse.Namespace) -> Policy:
    provider, upstream = _provider(given), None
    if given.upstream and given.upstream.startswith("unix:"):
        upstream = Endpoint.at_socket(given.upstream.removeprefix("unix:"), provider.host)
        key_env = given.upstream_key_env or ""
        needs_key = provider.needs_key or bool(key_env)
        provider = dataclasses.replace(provider, key_env=key_env, needs_key=needs_key)
    elif given.upstream:
        provider = with_upstream(
            provider,
            given.upstream,
            insecure=given.insecure_upstream,
            key_env=given.upstream_key_env,
        )
    if not 0 < given.upstream_idle_timeout <= 86400:
        raise ValueError("--upstream-idle-timeout takes seconds, at most a day")
    if given.upstream_key_env and not given.upstream:
        raise ValueError("--upstream-key-env means nothing without --upstream")
    sizes = {} if given.max_body is None else {"max_body_bytes": given.max_body * MIB}
    return Policy(
        provider,
        upstream,
        allow_models=frozenset(given.allow_model),
        max_tokens_cap=given.max_tokens_cap,
        extra_routes=tuple(extra_route(text, provider) for text in given.allow_path),
        max_calls=given.max_calls,
        budget=_budget(given),
        prices=load_prices(_text(given.prices), shipped_prices()) if given.prices else None,
        idle_timeout_s=given.upstream_idle_timeout,
        **sizes,
    )


def _provider(given: argparse.Namespace) -> Provider:
    own = load_providers(_text(given.providers)) if given.providers else {}
    return own[given.provider] if given.provider in own else get_provider(given.provider)


def _budget(given: argparse.Namespace) -> Budget | None:
    if given.budget is None and given.token_budget is None:
        if given.budget_strict or given.unpriced:
            raise ValueError("--budget-strict and --unpriced need --budget or --token-budget")
        return None
    return Budget(given.budget, given.token_budget, given.budget_strict, given.unpriced)


def _egress(given: argparse.Namespace, policy: Policy) -> EgressRules | None:
    if given.egress_listen is None:
        if given.allow_host or given.egress != "refuse" or given.egress_admit:
            raise ValueError("the egress door needs --egress-listen unix:PATH")
        return None
    if not given.egress_listen.startswith("unix:") or given.egress_listen == "unix:":
        raise ValueError("--egress-listen takes unix:PATH")
    return egress_rules(
        given.allow_host,
        mode=given.egress,
        provider_host=policy.endpoint.host,
        admit=given.egress_admit,
    )


def _text(path: str) -> str:
    return Path(path).read_text("utf-8")


def _token(name: str) -> str:
    value = os.environ.get(name, "")
    if not value:
        raise ValueError(f"--token-env {name}: this variable is empty or not set")
    if not all("!" <= character <= "~" for character in value):
        raise ValueError(
            f"--token-env {name}: no header can carry this token; visible ASCII, no space, no "
            "line break"
        )
    return value


def _credential(provider: Provider, named: str | None) -> Credential | None:
    value = os.environ.get(provider.key_env, "").strip() if provider.key_env else ""
    if value:
        return Credential(value, provider.key_env)
    if named:
        raise ValueError(f"--upstream-key-env {named}: this variable is empty or not set")
    if provider.needs_key:
        name = provider.key_env or "its key's variable by --upstream-key-env"
        raise ValueError(f"provider {provider.name} needs a key: export {name}")
    return None


# -- serving ---------------------------------------------------------------------------------------
async def _serve(given: argparse.Namespace, started: _Started) -> None:
    policy, credential, upstream = started.policy, started.credential, given.upstream
    if not given.skip_key_check and policy.upstream is None:
        check = await check_key(policy.provider, credential)
        if not check.passes:
            raise _BadKey(f"{check.text}; --skip-key-check starts all the same")
        if check.text:
            complain(check.text)
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    ledger = Ledger(on_call=lambda record: _say(call=_fields(record)))
    async with contextlib.AsyncExitStack() as stack:
        if policy.provider.name == "rehearsal" and not upstream:
            directory = stack.enter_context(tempfile.TemporaryDirectory())
            path = f"{directory}/model.sock"
            await stack.enter_async_context(serving(create_rehearsal_app(), bind_unix(path)))
            policy = dataclasses.replace(policy, upstream=Endpoint.at_socket(path))
            upstream = "the rehearsal model, inside this process"
        if (rules := started.egress) is not None:
            path = given.egress_listen.removeprefix("unix:")
            door = stack.enter_context(_bound_unix(path))
            await stack.enter_async_context(
                serving_egress(rules, door, lambda attempt: _say(egress=_fields(attempt)))
            )
        bodies = BodyLog(given.log_bodies, on_stop=complain) if given.log_bodies else None
        if bodies is not None:
            stack.callback(bodies.close)
        bound = stack.enter_context(_bound(started.listen))
        app = create_app(policy, credential, started.token, ledger, bodies)
        await stack.enter_async_context(serving(app, bound))
        _warn_of_neighbours(started.listen)
        _say(
            listening=_address(given.listen, bound),
            provider=policy.provider.name,
            upstream=policy.endpoint.url if policy.upstream is None else upstream,
        )
        await stop.wait()
    _say(total={key: value for key, value in _fields(ledger).items() if key not in _INTERNAL})


def _listen_at(text: str) -> _Listen:
    if text.startswith("unix:") and text != "unix:":
        return _Listen("", 0, text.removeprefix("unix:"))
    host, separator, port = text.rpartition(":")
    if not separator or not host or not (port.isascii() and port.isdigit()) or int(port) > 65535:
        raise ValueError("--listen takes HOST:PORT or unix:PATH")
    return _Listen(host.removeprefix("[").removesuffix("]"), int(port))


def _warn_of_neighbours(listen: _Listen) -> None:
    if listen.host and not is_loopback(listen.host):
        complain(
            f"{listen.host} is no loopback address: other machines can reach this relay, in "
            "plaintext, and whoever sees its token spends with your key"
        )


@contextlib.contextmanager
def _bound(listen: _Listen) -> Iterator[socket.socket]:
    """A socket bound where the argument says; the file of a unix socket goes with it."""
    if not listen.host:
        with _bound_unix(listen.path) as bound:
            yield bound
        return
    try:
        bound = socket.create_server(
            (listen.host, listen.port),
            family=socket.AF_INET6 if ":" in listen.host else socket.AF_INET,
        )
    except OSError as error:
        raise ValueError(f"{listen.host}:{listen.port}: {error.strerror or error}") from None
    with bound:
        bound.setblocking(False)
        yield bound


@contextlib.contextmanager
def _bound_unix(path: str) -> Iterator[socket.socket]:
    try:
        bound = bind_unix(path)
    except OSError as error:
        raise ValueError(f"unix:{path}: {error.strerror or error}") from None
    with bound:
        try:
            yield bound
        finally:
            Path(path).unlink(missing_ok=True)


def _address(listen: str, bound: socket.socket) -> str:
    """What was asked for, with the port that it became."""
    if listen.startswith("unix:"):
        return listen
    return f"{listen.rpartition(':')[0]}:{bound.getsockname()[1]}"


def _fields(record: Any) -> dict[str, Any]:
    return {field.name: getattr(record, field.name) for field in dataclasses.fields(record)}


def _in_words(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}"
    return str(error)


def _say(**line: Any) -> None:
    print(json.dumps(line, default=dataclasses.asdict), flush=True)


if __name__ == "__main__":
    sys.exit(main())
