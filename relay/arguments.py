"""The flags of `python -m relay`."""

from __future__ import annotations

import argparse
import sys
from typing import Any, NoReturn

from relay.flags import INSTEAD_OF_ALLOW_PATH, Replaced, whole
from relay.providers import provider_names


def complain(text: str) -> None:
    """One line on standard error."""
    line = "".join(one if one.isprintable() else "?" for one in text)
    sys.stderr.write(f"relay: {line}\n")


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        complain(f"{message}; see {self.prog} --help")
        raise SystemExit(2)


_EXAMPLES = """\
examples:
  RUN_TOKEN=secret python -m relay --provider rehearsal --token-env RUN_TOKEN \\
      --listen 127.0.0.1:8080
  curl -H 'authorization: Bearer secret' http://127.0.0.1:8080/v1/models
  python -m relay --provider anthropic --token-env RUN_TOKEN --listen unix:/tmp/relay.sock \\
      --budget 1.50 --allow-model claude-sonnet-4-5

RUN_TOKEN and the provider's key (ANTHROPIC_API_KEY, ...) come from the environment. Everything
that happens is a line of JSON on standard output; SIGINT and SIGTERM end it.
"""


def relay_parser() -> argparse.ArgumentParser:
    """The flags; a policy's have the names that `sanduk run` gives them."""
    parser = _Parser(
        prog="python -m relay",
        description="Start one relay and print its calls as JSON lines.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--provider", required=True, metavar="NAME", help=", ".join(provider_names()))
    add("--providers", metavar="FILE", help="more provider records, in TOML")
    add("--listen", required=True, metavar="HOST:PORT|unix:PATH", help="port 0 takes a free one")
    add("--token-env", required=True, metavar="NAME", help="the variable with the run token")
    add("--upstream", metavar="URL", help="scheme://host:port or unix:PATH, instead of its own")
    add("--insecure-upstream", action="store_true", help="allow plain http to another machine")
    add("--upstream-key-env", metavar="NAME", help="the variable with the key for --upstream")
    add(
        "--upstream-idle-timeout",
        type=float,
        default=300.0,
        metavar="SECONDS",
        help="give an answer up after this long without a byte (300)",
    )
    add("--skip-key-check", action="store_true", help="do not ask the provider about the key")
    add("--log-bodies", metavar="DIRECTORY", help="keep what is sent to the provider there")
    _add_policy(parser)
    _add_egress(parser)
    return parser


def _add_policy(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("policy").add_argument
    more: dict[str, Any] = {"action": "append", "default": []}
    add("--allow-model", **more, metavar="ID", help="only these models; repeatable")
    add("--max-tokens-cap", type=whole(), metavar="N", help="the most output tokens of one call")
    add(
        "--allow-path",
        **more,
        metavar="PATH[=PROTOCOL]",
        help="one more path of the provider's: GET and POST, or with its protocol model calls",
    )
    add(
        "--proxy-allow-path",
        action=Replaced,
        nargs="?",
        const=INSTEAD_OF_ALLOW_PATH,
        help=argparse.SUPPRESS,
    )
    add(
        "--max-calls",
        type=whole(),
        metavar="N",
        help="how many calls may go out; model lists and token counts are free",
    )
    add("--max-body", type=whole(), metavar="MB", help="the largest request (64)")
    add("--budget", type=float, metavar="USD", help="refuse calls when so much is spent")
    add("--token-budget", type=whole(), metavar="N", help="the same in tokens, in and out")
    add("--budget-strict", action="store_true", help="never cross it: allow less output instead")
    add(
        "--unpriced",
        choices=["serial", "refuse"],
        help="a model without a price: one call at a time, where the provider reports what each "
        "cost, or none",
    )
    add("--prices", metavar="FILE", help="a prices.toml laid over sanduk's own")


def _add_egress(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("egress door").add_argument
    more: dict[str, Any] = {"action": "append", "default": []}
    add("--egress-listen", metavar="unix:PATH", help="open a door for HTTP CONNECT there")
    add("--allow-host", **more, metavar="HOST[:PORT]", help="let this host pass (443); exact names")
    add(
        "--egress",
        choices=["refuse", "warn"],
        default="refuse",
        help="warn: let every public host pass, and print it",
    )
    add(
        "--egress-admit",
        **more,
        metavar="ADDRESS:PORT",
        help="a private address that may be reached: for tests of the door",
    )
