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
from typing import Any

from relay.app import create_app
from relay.bodies import BodyLog
from relay.budget import Budget
from relay.credential import Credential
from relay.destinations import EgressRules, egress_rules
from relay.egress import serving_egress
from relay.endpoints import Endpoint
from relay.policy import Policy, extra_route
from relay.preflight import check_key
from relay.prices import load_prices, shipped_prices
from relay.providers import Provider, get_provider, load_providers, with_upstream
from relay.records import Ledger
from relay.rehearsal import create_rehearsal_app
from relay.server import serving
from relay.sockets import bind_unix


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until a signal; 0 then, 2 for arguments that make no sense, 1 for trouble."""
    parser = _parser()
    given = parser.parse_args(arguments)
    try:
        policy = _policy(given)
        credential = _credential(policy.provider)
        token = _variable(given.token_env)
        rules = _egress(given, policy)
    except (ValueError, OSError) as error:  # every refusal of a value is a ValueError
        parser.error(str(error))
    try:
        asyncio.run(_serve(given, policy, credential, token, rules))
    except (ValueError, OSError, _BadKey) as error:
        _complain(str(error))
        return 1
    return 0


_INTERNAL = ("on_call", "last_activity", "sequence")  # fields of the ledger that say nothing


class _BadKey(Exception):
    """The provider does not want this key."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m relay", description="Start one relay and print its calls as JSON lines."
    )
    add = parser.add_argument
    add("--provider", required=True, metavar="NAME")
    add("--providers", metavar="FILE", help="more provider records, in TOML")
    add("--listen", required=True, metavar="HOST:PORT|unix:PATH", help="port 0 takes a free one")
    add("--token-env", required=True, metavar="NAME", help="the variable with the run token")
    add("--upstream", metavar="URL", help="scheme://host:port or unix:PATH")
    add("--insecure-upstream", action="store_true", help="plaintext to another machine")
    add("--upstream-key-env", metavar="NAME", help="the variable with the key for the upstream")
    add("--upstream-idle-timeout", type=float, default=300.0, metavar="SECONDS")
    add("--skip-key-check", action="store_true", help="do not ask the provider about the key")
    add("--log-bodies", metavar="DIRECTORY", help="keep what is sent to the provider there")
    rules = parser.add_argument_group("policy")
    add = rules.add_argument
    add("--allow-model", action="append", default=[], metavar="MODEL")
    add("--max-tokens-cap", type=int, metavar="N")
    add("--allow-path", action="append", default=[], metavar="PATH[=PROTOCOL]")
    add("--max-calls", type=int, metavar="N")
    add("--max-body-bytes", type=int, metavar="N")
    add("--budget", type=float, metavar="USD")
    add("--token-budget", type=int, metavar="N")
    add("--budget-strict", action="store_true")
    add("--unpriced", choices=["serial", "refuse"])
    add("--prices", metavar="FILE", help="a price table laid over sanduk's own")
    egress = parser.add_argument_group("egress door")
    add = egress.add_argument
    add("--egress-listen", metavar="unix:PATH")
    add("--allow-host", action="append", default=[], metavar="HOST[:PORT]")
    add("--egress", choices=["refuse", "warn"], default="refuse")
    add(
        "--egress-admit",
        action="append",
        default=[],
        metavar="ADDRESS:PORT",
        help="a private address that may be reached: for tests of the door",
    )
    return parser


# -- what the arguments say ------------------------------------------------------------------------
def _policy(given: argparse.Namespace) -> Policy:
    provider, upstream = _provider(given), None
    if given.upstream and given.upstream.startswith("unix:"):
        upstream = Endpoint.at_socket(given.upstream.removeprefix("unix:"), provider.host)
        provider = dataclasses.replace(provider, key_env=given.upstream_key_env or "")
    elif given.upstream:
        provider = with_upstream(
            provider,
            given.upstream,
            insecure=given.insecure_upstream,
            key_env=given.upstream_key_env,
        )
    if not 0 < given.upstream_idle_timeout <= 86400:
        raise ValueError("--upstream-idle-timeout takes seconds, at most a day")
    sizes = {} if given.max_body_bytes is None else {"max_body_bytes": given.max_body_bytes}
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
    if not given.egress_listen.startswith("unix:"):
        raise ValueError("--egress-listen takes unix:PATH")
    return egress_rules(
        given.allow_host,
        mode=given.egress,
        provider_host=policy.endpoint.host,
        admit=given.egress_admit,
    )


def _text(path: str) -> str:
    return Path(path).read_text("utf-8")


def _variable(name: str) -> str:
    value = os.environ.get(name, "")
    if not value:
        raise ValueError(f"the variable {name} is empty or not set")
    return value


def _credential(provider: Provider) -> Credential | None:
    value = os.environ.get(provider.key_env, "") if provider.key_env else ""
    if value:
        return Credential(value.strip(), provider.key_env)
    if provider.needs_key:
        name = provider.key_env or "its key's variable by --upstream-key-env"
        raise ValueError(f"provider {provider.name} needs a key: export {name}")
    return None


# -- serving ---------------------------------------------------------------------------------------
async def _serve(
    given: argparse.Namespace,
    policy: Policy,
    credential: Credential | None,
    token: str,
    rules: EgressRules | None,
) -> None:
    if not given.skip_key_check and policy.upstream is None:
        check = await check_key(policy.provider, credential)
        if not check.passes:
            raise _BadKey(f"{check.text}; --skip-key-check starts all the same")
        if check.text:
            _complain(check.text)
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    ledger = Ledger(on_call=lambda record: _say(call=_fields(record)))
    async with contextlib.AsyncExitStack() as stack:
        if policy.provider.name == "rehearsal" and policy.upstream is None and not given.upstream:
            directory = stack.enter_context(tempfile.TemporaryDirectory())
            path = f"{directory}/model.sock"
            await stack.enter_async_context(serving(create_rehearsal_app(), bind_unix(path)))
            policy = dataclasses.replace(policy, upstream=Endpoint.at_socket(path))
        if rules is not None:
            path = given.egress_listen.removeprefix("unix:")
            door = stack.enter_context(_bound_unix(path))
            await stack.enter_async_context(
                serving_egress(rules, door, lambda attempt: _say(egress=_fields(attempt)))
            )
        bodies = BodyLog(given.log_bodies, on_stop=_complain) if given.log_bodies else None
        if bodies is not None:
            stack.callback(bodies.close)
        bound = stack.enter_context(_bound(given.listen))
        app = create_app(policy, credential, token, ledger, bodies)
        await stack.enter_async_context(serving(app, bound))
        _say(
            listening=_address(given.listen, bound),
            provider=policy.provider.name,
            upstream=policy.endpoint.url,
        )
        await stop.wait()
    _say(total={key: value for key, value in _fields(ledger).items() if key not in _INTERNAL})


@contextlib.contextmanager
def _bound(listen: str) -> Iterator[socket.socket]:
    """A socket bound where the argument says; the file of a unix socket goes with it."""
    if listen.startswith("unix:"):
        with _bound_unix(listen.removeprefix("unix:")) as bound:
            yield bound
        return
    host, separator, port = listen.rpartition(":")
    if not separator or not host or not (port.isascii() and port.isdigit()) or int(port) > 65535:
        raise ValueError("--listen takes HOST:PORT or unix:PATH")
    bound = socket.create_server(
        (host.removeprefix("[").removesuffix("]"), int(port)),
        family=socket.AF_INET6 if ":" in host else socket.AF_INET,
    )
    with bound:
        bound.setblocking(False)
        yield bound


@contextlib.contextmanager
def _bound_unix(path: str) -> Iterator[socket.socket]:
    with bind_unix(path) as bound:
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


def _complain(text: str) -> None:
    print(f"relay: {text}", file=sys.stderr)


def _say(**line: Any) -> None:
    print(json.dumps(line, default=dataclasses.asdict), flush=True)


if __name__ == "__main__":
    sys.exit(main())
